package outbox

import (
	"fmt"
	"reflect"
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
