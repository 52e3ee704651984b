package announce_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/recordstest"
)

var ann = caller.Caller{Subject: "idp-a:ann", Tenant: "a", Role: caller.Viewer}

func TestRecordedFactWaitsInTheOutboxUnderThePersonsName(t *testing.T) {
	t.Parallel()
	pool := recordstest.Pool(t)
	recorder, err := announce.NewRecorder(pool)
	if err != nil {
		t.Fatal(err)
	}
	fact := announce.Fact{Action: "copilot.query", Target: "copilot", Outcome: announce.Failed, Details: map[string]any{"error_code": "agent_busy"}}
	if err := recorder.Record(t.Context(), ann, fact); err != nil {
		t.Fatal(err)
	}
	var payload []byte
	if err := pool.QueryRow(t.Context(), "select payload from outbox where namespace = 'audit'").Scan(&payload); err != nil {
		t.Fatal(err)
	}
	var got struct{ Tenant, Actor, Source, Action, Target, Outcome, Details any }
	if err := json.Unmarshal(payload, &got); err != nil {
		t.Fatal(err)
	}
	want := struct{ Tenant, Actor, Source, Action, Target, Outcome, Details any }{
		"a", "idp-a:ann", "dashboard", "copilot.query", "copilot", "failed", map[string]any{"error_code": "agent_busy"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRecordSaysWhenAFactIsLost(t *testing.T) {
	t.Parallel()
	recorder, err := announce.NewRecorder(recordstest.Pool(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := recorder.Record(ctx, ann, announce.Fact{Action: "a", Target: "b", Outcome: announce.OK}); err == nil {
		t.Error("got no error from a context that has ended, want one")
	}
	if _, err := announce.NewRecorder(nil); err == nil {
		t.Error("took no pool, want a refusal")
	}
}
