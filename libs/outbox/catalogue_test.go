package outbox

import (
	"encoding/json"
	"reflect"
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
	hidden  int                `json:"-"` //nolint:unused // it shows that "-" is left out
}

func TestFields(t *testing.T) {
	t.Parallel()
	want := []Field{
		{Name: "model", Type: "string"},
		{Name: "id", Type: "string (UUID)"},
		{Name: "version", Type: "string", Null: true},
		{Name: "reason", Type: "string", Optional: true},
		{Name: "tags", Type: "array of string", Optional: true},
		{Name: "metrics", Type: "object of number"},
		{Name: "rules", Type: "object"},
	}
	if got := (Declaration{Data: moved{hidden: 1}}).Fields(); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v", got)
	}
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

func TestSubscriptionWants(t *testing.T) {
	t.Parallel()
	d := Declaration{Namespace: "deploy", Name: "alias_changed", Platform: true}
	for subject, want := range map[string]bool{
		"platform.>": true, "platform.*.deploy.alias_changed": true, "platform.*.deploy.>": true, "platform.*.deploy.*": true,
		"platform.*.drift.>": false, "platform.*.deploy": false, "platform.*.deploy.alias_changed.>": false,
		"platform.platform.deploy.alias_changed": true, "platform.other.deploy.alias_changed": false,
	} {
		if got := (Subscription{Subjects: []string{subject}}).Wants(d); got != want {
			t.Errorf("%s: %v", subject, got)
		}
	}
}
