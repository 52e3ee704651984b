package outbox

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
)

type base struct {
	Model string `json:"model"`
}

type moved struct {
	base
	ID      uuid.UUID          `json:"id"`
	Version *string            `json:"version"`
	Reason  *string            `json:"reason,omitempty"`
	Tags    []string           `json:"tags,omitempty"`
	Metrics map[string]float64 `json:"metrics"`
	Rules   json.RawMessage    `json:"rules"`
}

func TestCatalogueCheck(t *testing.T) {
	t.Parallel()
	c := NewCatalogue(AuditDeclaration, Declaration{Namespace: "deploy", Name: "moved", Data: moved{}, Platform: true}, Declaration{Namespace: "job", Name: "begun", Data: base{}})
	for _, tt := range []struct {
		e     Event
		fault string
	}{
		{Event{Namespace: "deploy", Name: "moved", Payload: moved{}}, ""},
		{Event{Namespace: "deploy", Name: "moved", Payload: moved{}, Tenant: PlatformTenant}, ""},
		{Event{Namespace: "deploy", Name: "moved", Payload: moved{}, Tenant: "a"}, "belongs to no tenant"},
		{Event{Namespace: "deploy", Name: "moved", Payload: base{}}, "declared is outbox.moved"},
		{Event{Namespace: "deploy", Name: "moved"}, "carries a <nil>"},
		{Event{Namespace: "deploy", Name: "gone", Payload: moved{}}, "not declared"},
		{Event{Namespace: "job", Name: "begun", Payload: base{}, Tenant: "a"}, ""},
		{Audit(AuditFact{Tenant: "a", Action: "x"}), ""},
	} {
		err := c.Check(tt.e)
		if (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("%+v: %v, want %q", tt.e, err, tt.fault)
		}
	}
}
