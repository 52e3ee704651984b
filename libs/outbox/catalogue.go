package outbox

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Declaration says that a service publishes an event, and what is in it. The
// pages that document events are made from declarations, and [Catalogue.Check]
// holds what is emitted against them.
type Declaration struct {
	Namespace, Name string
	// Data is a value of the payload's type, a struct; only its type counts.
	Data any
	// When is what has happened, as half a sentence.
	When string
	// Platform events belong to no tenant: they carry PlatformTenant.
	Platform bool
}

// Type is "<namespace>.<name>".
func (d Declaration) Type() string { return d.Namespace + "." + d.Name }

// AuditDeclaration is that of the facts made by Audit; every service publishes them.
var AuditDeclaration = Declaration{
	Namespace: "audit", Name: "recorded", Data: auditRecord{},
	When: "an act, or its refusal, for the audit ledger",
}

// Subscription says that a consumer of a service wants events.
type Subscription struct {
	Consumer string   // the durable's name
	Subjects []string // as in ConsumerConfig
}

// Wants says whether the subscription's subjects match the event, of whatever
// tenant that can be its.
func (s Subscription) Wants(d Declaration) bool {
	tenant := "t"
	if d.Platform {
		tenant = PlatformTenant
	}
	return slices.ContainsFunc(s.Subjects, func(subject string) bool { return matches(subject, Subject(tenant, d.Namespace, d.Name)) })
}

// matches follows NATS: * is one token, > is all that follow.
func matches(pattern, subject string) bool {
	want, have := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, w := range want {
		switch {
		case w == ">":
			return len(have) > i
		case i >= len(have) || w != "*" && w != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}

// Catalogue is every event of one service.
type Catalogue map[string]Declaration

// NewCatalogue checks declarations and gives them by type; it panics on one that
// is there twice or whose Data is no struct, as a program's own fault.
func NewCatalogue(declared ...Declaration) Catalogue {
	c := make(Catalogue, len(declared))
	for _, d := range declared {
		if _, twice := c[d.Type()]; twice || reflect.TypeOf(d.Data).Kind() != reflect.Struct {
			panic("outbox: bad declaration of " + d.Type())
		}
		c[d.Type()] = d
	}
	return c
}

// Check refuses an event that is not declared, or with other data than declared.
func (c Catalogue) Check(events ...Event) error {
	for _, e := range events {
		d, ok := c[e.Namespace+"."+e.Name]
		switch {
		case !ok:
			return fmt.Errorf("outbox: event %s.%s is not declared", e.Namespace, e.Name)
		case reflect.TypeOf(e.Payload) != reflect.TypeOf(d.Data):
			return fmt.Errorf("outbox: event %s carries a %T, declared is %T", d.Type(), e.Payload, d.Data)
		case d.Platform && e.Tenant != PlatformTenant && e.Tenant != "":
			return fmt.Errorf("outbox: event %s belongs to no tenant, not to %q", d.Type(), e.Tenant)
		}
	}
	return nil
}

// Field is one member of an event's data.
type Field struct {
	Name     string // in JSON
	Type     string // in the words of JSON Schema, such as "string" or "array of string"
	Optional bool   // left out when it has no value
	Null     bool   // may be null
}

// Fields are the members of a declaration's data, in their order.
func (d Declaration) Fields() []Field { return fieldsOf(reflect.TypeOf(d.Data)) }

func fieldsOf(t reflect.Type) []Field {
	var out []Field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			out = append(out, fieldsOf(f.Type)...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		out = append(out, Field{Name: name, Type: jsonType(f.Type), Optional: optional, Null: f.Type.Kind() == reflect.Pointer && !optional})
	}
	return out
}

func jsonType(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[uuid.UUID]():
		return "string (UUID)"
	case reflect.TypeFor[time.Time]():
		return "string (RFC 3339)"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 { // json.RawMessage
			return "object"
		}
		return "array of " + jsonType(t.Elem())
	case reflect.Map:
		return "object of " + jsonType(t.Elem())
	case reflect.Interface:
		return "any"
	}
	return "object"
}
