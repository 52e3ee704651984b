package action_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
)

// What an action would write is forgotten however it ends, and kept until then.
func TestEndedActionsForgetTheirValues(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-Correct"
	for name, end := range map[string]func(t *testing.T, b *bundle, id uuid.UUID){
		"denied": func(t *testing.T, b *bundle, id uuid.UUID) {
			if _, err := b.Decide(t.Context(), ann, id, action.Decision{Reason: "password=" + secret}); err != nil {
				t.Fatal(err)
			}
		},
		"expired": func(t *testing.T, b *bundle, _ uuid.UUID) {
			b.clock.Forward(2 * time.Hour)
			if err := b.ExpireDue(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"stale": func(t *testing.T, b *bundle, id uuid.UUID) {
			b.cluster.Edit(t, "api", 7)
			fresh, err := b.Decide(t.Context(), ann, id, yes)
			wantCode(t, err, "action_stale")
			if _, err := b.Decide(t.Context(), ann, fresh.ID, no); err != nil {
				t.Fatal(err)
			}
		},
		"succeeded": func(t *testing.T, b *bundle, id uuid.UUID) {
			if _, err := b.Decide(t.Context(), ann, id, yes); err != nil {
				t.Fatal(err)
			}
			if got, err := b.Execute(t.Context(), id, nil); err != nil || got.Verification == "" {
				t.Fatalf(`%+v, %v; want got.Verification != ""`, got, err)
			}
		},
		"failed": func(t *testing.T, b *bundle, id uuid.UUID) {
			if _, err := b.Decide(t.Context(), ann, id, yes); err != nil {
				t.Fatal(err)
			}
			b.cluster.Edit(t, "api", 7)
			if _, err := b.Execute(t.Context(), id, nil); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, action.Config{})
			op := scaleOperations("api", 3)
			op[0].Set = map[string]string{"DB_PASSWORD": secret}
			op[0].Patch, op[0].Manifest = `{"p":"`+secret+`"}`, "p: "+secret+"\n"
			plan, err := b.cluster.Plan(t.Context(), ann.Role, op)
			if err != nil {
				t.Fatal(err)
			}
			a, err := b.Propose(t.Context(), action.Proposal{Session: "s-1", Turn: 1, Who: ann, Plan: plan})
			if err != nil {
				t.Fatal(err)
			}
			if waits, err := b.Get(t.Context(), a.ID); err != nil || waits.Operations[0].Set["DB_PASSWORD"] != secret {
				t.Fatalf(`%+v, %v; want waits.Operations[0].Set["DB_PASSWORD"] == secret`, waits.Operations, err)
			}
			end(t, b, a.ID)
			var rows string
			if err := b.Store.Pool().QueryRow(t.Context(), "select json_agg(a)::text || (select json_agg(o)::text from outbox o) from actions a").Scan(&rows); err != nil || strings.Contains(rows, secret) {
				t.Errorf("kept: %s, %v; want !strings.Contains(rows, secret)", rows, err)
			}
			ended, err := b.Get(t.Context(), a.ID)
			if doc, _ := json.Marshal(ended.Operations); err != nil || string(ended.State) != name || !strings.Contains(string(doc), "DB_PASSWORD") || ended.Digest != a.Digest {
				t.Errorf(`%s is left as %s, %v; want string(ended.State) == name && strings.Contains(string(doc), "DB_PASSWORD") && ended.Digest == a.Digest`, ended.State, doc, err)
			}
		})
	}
}
