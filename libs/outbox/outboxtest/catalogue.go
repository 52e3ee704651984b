// Package outboxtest checks a service's catalogue of events and reads its declarations: the subscriptions that get an
// event, and the fields of its data. The page of all events is generated from it and compared with it.
package outboxtest

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
)

// Matches reports whether the subscription's subjects match the event, for every possible tenant.
func Matches(s outbox.Subscription, d outbox.Declaration) bool {
	tenant := "t"
	if d.Platform {
		tenant = outbox.PlatformTenant
	}
	return slices.ContainsFunc(s.Subjects, func(subject string) bool { return matchesSubject(subject, outbox.Subject(tenant, d.Namespace, d.Name)) })
}

// matchesSubject follows NATS: * is one token, > is all that follow.
func matchesSubject(pattern, subject string) bool {
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

// Field is one member of an event's data.
type Field struct {
	Name     string // in JSON
	Type     string // in the words of JSON Schema, such as "string" or "array of string"
	Optional bool   // left out when it has no value
	Null     bool   // may be null
}

// Fields are the members of a declaration's data, in their order.
func Fields(d outbox.Declaration) []Field { return fieldsOf(reflect.TypeOf(d.Data)) }

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
