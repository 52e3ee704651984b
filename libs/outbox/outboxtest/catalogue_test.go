package outboxtest_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/outbox/outboxtest"
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
	want := []outboxtest.Field{
		{Name: "model", Type: "string"},
		{Name: "id", Type: "string (UUID)"},
		{Name: "version", Type: "string", Null: true},
		{Name: "reason", Type: "string", Optional: true},
		{Name: "tags", Type: "array of string", Optional: true},
		{Name: "metrics", Type: "object of number"},
		{Name: "rules", Type: "object"},
	}
	if got := outboxtest.Fields(outbox.Declaration{Data: moved{hidden: 1}}); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v\nwant %+v", got, want)
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	d := outbox.Declaration{Namespace: "deploy", Name: "alias_changed", Platform: true}
	for subject, want := range map[string]bool{
		"platform.>": true, "platform.*.deploy.alias_changed": true, "platform.*.deploy.>": true, "platform.*.deploy.*": true,
		"platform.*.drift.>": false, "platform.*.deploy": false, "platform.*.deploy.alias_changed.>": false,
		"platform.platform.deploy.alias_changed": true, "platform.other.deploy.alias_changed": false,
	} {
		if got := outboxtest.Matches(outbox.Subscription{Subjects: []string{subject}}, d); got != want {
			t.Errorf("Matches(%s) = %v, want %v", subject, got, want)
		}
	}
}
