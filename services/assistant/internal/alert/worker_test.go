package alert_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

const apiDown = `{"alertname":"Down","namespace":"shop","deployment":"api"}`

func (b *bundle) accept(body string) {
	b.t.Helper()
	if status, text := b.send(body); status != http.StatusAccepted {
		b.t.Fatalf("got %d %s, want 202", status, text)
	}
}

// A worker that is killed in the middle of an investigation loses nothing, and nothing is told twice.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.accept(body(apiDown))
	assistanttest.KillWhenReached(t, childEnv+"=1", "CHILD_DATABASE="+b.url)
	b.run()
	b.idle()
	told := b.told()
	if len(told) != 2 || told[0].Outcome != "interrupted" || told[1].Outcome != "done" || !strings.Contains(told[1].Answer, "Asked: "+told[1].Query) {
		t.Fatalf("got %+v; want the turn that was cut short, and one that is whole", told)
	}

	// A worker that dies after the answer leaves the notification behind, too.
	if _, err := b.store.Pool().Exec(t.Context(), `insert into alert_notifications (id, key_hash, session_id, principal, request_id, address, body, lease_until, received_at)
		select t.request_id::uuid, g.key_hash, g.session_id, g.principal, 'r', '', '{"status":"firing","alerts":[]}', now(), now() from alert_groups g join turns t on t.number = 2`); err != nil {
		t.Fatal(err)
	}
	b.idle()
	if again := b.told(); len(again) != 2 || b.engine.runs.Load() != 1 {
		t.Errorf("got %d turns and %d investigations; want 2 and 1", len(again), b.engine.runs.Load())
	}
}

// An engine that wants to write can neither propose nor rehearse it.
func TestInvestigationOnlyReads(t *testing.T) {
	t.Parallel()
	b := setup(t)
	scale := assistanttest.ScaleOperation("api", 3)
	var reads, rehearses error
	b.engine.do = func(ctx context.Context, tn turn.Turn, tools turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
		_, reads = tools.Call(ctx, operation.Operation{Verb: operation.List, Kind: "pods", Namespace: "shop"})
		rehearsed := scale
		rehearsed.DryRun = true
		_, rehearses = tools.Call(ctx, rehearsed)
		if tn.Who.Role != "readonly" || !tn.Unspoken || !strings.Contains(tn.Page, "`Down`") {
			t.Errorf("got the role %s, unspoken %v, page %q; want readonly, true, and the alert", tn.Who.Role, tn.Unspoken, tn.Page)
		}
		sink.Token("I would scale it.")
		return turn.Outcome{Write: []operation.Operation{scale}}, nil
	}
	b.accept(body(apiDown))
	b.run()
	b.idle()
	var refused *operation.Fault
	if reads != nil || !errors.As(rehearses, &refused) || refused.Reason != operation.ForbiddenVerb {
		t.Errorf("a read: got %v, want no error; a rehearsal: got %v, want a refusal", reads, rehearses)
	}
	if n := b.count("select count(*) from actions"); n != 0 {
		t.Errorf("got %d actions, want none", n)
	}
	if told := b.told(); len(told) != 1 || told[0].Outcome != "done" || strings.Contains(told[0].Answer, "approv") {
		t.Errorf("got %+v; want one answer without a proposal", told)
	}
}

// What could not be found out is looked at again when the group is sent once more.
func TestFailedInvestigationIsNoAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.engine.do = func(context.Context, turn.Turn, turn.Toolbox, turn.Sink) (turn.Outcome, error) {
		return turn.Outcome{}, errors.New("no")
	}
	b.accept(body(apiDown))
	b.run()
	b.idle()
	b.engine.do = nil
	for range 2 {
		b.accept(body(apiDown))
		b.idle()
	}
	var outcomes []string
	for _, turn := range b.told() {
		outcomes = append(outcomes, turn.Outcome)
	}
	if diff := cmp.Diff([]string{"failed", "done"}, outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

// A notification waits for a cluster that does not answer; other requests in the session continue meanwhile.
func TestAlertWaitsForTheCluster(t *testing.T) {
	t.Parallel()
	b := setup(t)
	down := errors.New("no route to host")
	b.tools.fails.Store(&down)
	b.accept(body(apiDown))
	b.run()
	testenv.Eventually(t, 20*time.Second, func() error {
		if b.count("select count(*) from alert_notifications where attempt = 1 and lease_until > now() + interval '5 seconds'") == 0 {
			return errors.New("the notification was not put off")
		}
		return nil
	})
	if told := b.told(); len(told) > 0 {
		t.Errorf("got %+v; want no turn yet", told)
	}
	b.tools.fails.Store(nil)
	if _, err := b.store.Pool().Exec(t.Context(), "update alert_notifications set lease_until = now()"); err != nil {
		t.Fatal(err)
	}
	b.idle()
	if told := b.told(); len(told) != 1 || told[0].Outcome != "done" {
		t.Errorf("got %+v; want one answer", told)
	}
}

// Neither repeated notifications of one group nor the backlog of one sender keep out the alerts of others.
func TestWaitingAlertsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 5 {
		b.accept(body(fmt.Sprintf(`{"alertname":"Down","n":"%d"}`, i)))
	}
	if n := b.count("select count(*) from alert_notifications where body::text like '%\"4\"%'"); n != 1 || b.count("select count(*) from alert_notifications") != 1 {
		t.Errorf("got %d notifications of one group, %d of them the newest; want that one alone", b.count("select count(*) from alert_notifications"), n)
	}
	fill := func(principal string) {
		t.Helper()
		if _, err := b.store.Pool().Exec(t.Context(), `insert into alert_notifications (id, key_hash, session_id, principal, request_id, address, body, lease_until, received_at)
			select gen_random_uuid(), key_hash, session_id, $1, 'r', '', body, lease_until, received_at from alert_notifications, generate_series(1, 500) where principal = 'ops' limit 500`, principal); err != nil {
			t.Fatal(err)
		}
	}
	other := strings.Replace(body(apiDown), `"groupKey":"g"`, `"groupKey":"other"`, 1)
	fill("somebody else")
	b.accept(other)
	fill("ops")
	if status, text := b.send(strings.Replace(other, "other", "third", 1)); status != http.StatusServiceUnavailable {
		t.Errorf("beyond the bound: got %d %s; want 503", status, text)
	}
}

// After its patience an alert is reported without the cluster, and the report says so; an alert that cannot be
// processed at all does not block those behind it.
func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ change, told string }{
		"a cluster that does not answer": {"", "it is not known whether the labels name anything that is there"},
		"a body that nobody can read":    {", body = '[]'", ""},
	} {
		b := setup(t)
		down := errors.New("no route to host")
		b.tools.fails.Store(&down)
		b.accept(body(apiDown))
		if _, err := b.store.Pool().Exec(t.Context(), "update alert_notifications set received_at = now() - interval '1 hour'"+row.change); err != nil {
			t.Fatal(err)
		}
		b.run()
		b.idle()
		told := b.told()
		if (len(told) > 0) != (row.told != "") || len(told) > 0 && !strings.Contains(told[0].Answer, row.told) {
			t.Errorf("%s: got %+v; want %q", name, told, row.told)
		}
	}
}

// The question concerns what the labels name, as far as it exists.
func TestSubjects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.run()
	for name, row := range map[string]struct {
		labels []string
		want   string
	}{
		"a pod before its deployment": {[]string{`{"namespace":"shop","pod":"api-1","deployment":"api","service":"api"}`}, "What is wrong with pod/api-1 in namespace shop?"},
		"a pod that is gone":          {[]string{`{"namespace":"shop","pod":"api-0","deployment":"api"}`}, "What is wrong with deployment/api in namespace shop?"},
		"a label of the metric": {
			[]string{`{"namespace":"monitoring","pod":"kube-state-metrics-1","exported_namespace":"shop","exported_pod":"api-1"}`}, "What is wrong with pod/api-1 in namespace shop?",
		},
		"a node":                {[]string{`{"node":"node-1"}`}, "What is wrong with node/node-1?"},
		"an absent object":      {[]string{`{"namespace":"shop","deployment":"none"}`}, "What is wrong in namespace shop?"},
		"an absent namespace":   {[]string{`{"namespace":"none","deployment":"api"}`}, "What is wrong?"},
		"no name":               {[]string{`{"namespace":"shop and delete it","deployment":"api; reboot"}`}, "What is wrong?"},
		"nothing":               {[]string{`{"severity":"none"}`}, "What is wrong?"},
		"two alerts":            {[]string{`{"namespace":"shop","deployment":"api"}`, `{"namespace":"shop","deployment":"web"}`}, "What is wrong with deployment/api in namespace shop? What is wrong with deployment/web in namespace shop?"},
		"the same object twice": {[]string{`{"namespace":"shop","deployment":"api","x":"1"}`, `{"namespace":"shop","deployment":"api","x":"2"}`}, "What is wrong with deployment/api in namespace shop?"},
		"many objects of one place": {[]string{`{"namespace":"shop","deployment":"api"}`, `{"namespace":"shop","deployment":"web"}`, `{"namespace":"shop","deployment":"cart"}`, `{"namespace":"shop","deployment":"ledger"}`},
			"What is wrong in namespace shop?"},
	} {
		b.accept(strings.Replace(body(row.labels...), `"groupKey":"g"`, `"groupKey":"`+name+`"`, 1))
		b.idle()
		if n := b.count("select count(*) from turns where query = '" + row.want + "' and started_at = (select max(started_at) from turns)"); n != 1 {
			t.Errorf("%s: got %+v; want the question %q", name, b.told(), row.want)
		}
	}
}

// TestRunbooksOfAlerts: what the team wrote down for an alert is quoted before the investigation, and given to the engine as data.
func TestRunbooksOfAlerts(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, match := range map[string]string{"down.md": "{alerts: ['Do*'], namespaces: [shop]}", "api.md": "{alerts: [Down], kinds: [deployment], names: [api]}", "web.md": "{alerts: [Down], names: [web]}", "up.md": "{alerts: [Up]}"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("---\ntitle: "+name+"\nmatches: "+match+"\n---\nCall the owner of "+name+".\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := setup(t)
	var err error
	if b.tools.runbooks, err = runbook.Open(t.Context(), folder, nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	var page string
	b.engine.do = func(_ context.Context, tn turn.Turn, _ turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
		page = tn.Page
		sink.Token("Asked: " + tn.Query)
		return turn.Outcome{}, nil
	}
	b.accept(body(apiDown))
	b.run()
	b.idle()
	told := b.told()
	if len(told) != 1 {
		t.Fatalf("got %+v; want one turn", told)
	}
	for _, text := range []string{told[0].Answer, page} {
		for _, want := range []string{"The team's own runbook `down.md`, from file `down.md`, quoted and not checked:\n\n    Call the owner of down.md.", "    Call the owner of api.md."} {
			if !strings.Contains(text, want) {
				t.Errorf("%s\nwant %q", text, want)
			}
		}
		if strings.Contains(text, "web.md") || strings.Contains(text, "up.md") {
			t.Errorf("%s\nwant nothing of other alerts and objects", text)
		}
	}
}
