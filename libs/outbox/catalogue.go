package outbox

import (
	"fmt"
	"reflect"
)

// Declaration describes an event that a service publishes. The event reference is
// generated from declarations, and [Catalogue.Check] compares published events
// with them.
type Declaration struct {
	Namespace, Name string
	// Data is a value of the payload's type, a struct; only its type counts.
	Data any
	// When describes what happened, as a phrase.
	When string
	// Platform events belong to no tenant: they carry PlatformTenant.
	Platform bool
}

// Type is "<namespace>.<name>".
func (d Declaration) Type() string { return d.Namespace + "." + d.Name }

// AuditDeclaration describes the facts that Audit creates; every service publishes them.
var AuditDeclaration = Declaration{
	Namespace: "audit", Name: "recorded", Data: auditRecord{},
	When: "an action, or a refused action, to be recorded in the audit ledger",
}

// Subscription lists the events that a consumer of a service receives.
type Subscription struct {
	Consumer string   // the durable's name
	Subjects []string // as in ConsumerConfig
}

// Catalogue is every event of one service.
type Catalogue map[string]Declaration

// NewCatalogue checks declarations and indexes them by type. It panics on a duplicate
// and on Data that is not a struct: both are programming errors.
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

// Check rejects an event that is not declared or whose data has another type than declared.
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
