package alert_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/alert"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/recordstest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	path   = "/api/v1/alerts"
	budget = "budget:spent"
	eval   = "eval:JPCP:nightly:rmse"
)

type replica struct {
	*recordstest.App
	plane *recordstest.ControlPlane
	views *recordstest.Views
	pool  *pgxpool.Pool
}

func newReplica(t *testing.T, plane *recordstest.ControlPlane, pool *pgxpool.Pool) replica {
	t.Helper()
	views := recordstest.NewViews(t, 2*time.Second)
	i, err := alert.New(alert.Config{Pool: pool, Clients: recordstest.Clients(t, plane.URL), Views: views.Pool})
	if err != nil {
		t.Fatal(err)
	}
	app := recordstest.NewApp(t)
	app.Echo.GET(path, i.List)
	app.Echo.POST(path+"/:alert_id/ack", i.Ack)
	return replica{app, plane, views, pool}
}

func start(t *testing.T) replica {
	t.Helper()
	return newReplica(t, recordstest.NewControlPlane(t), recordstest.Pool(t))
}

// read lists the alerts of a fresh inbox.
func (r replica) read(query string) api.AlertView {
	r.T.Helper()
	r.views.Age()
	return recordstest.Decode[api.AlertView](r.Want(200, recordstest.Viewer, "GET", path+query, nil))
}

// states returns id and state of a list, in order.
func states(v api.AlertView) []string {
	out := []string{}
	for _, a := range v.Inbox.Alerts {
		out = append(out, a.Id+" "+string(a.State))
	}
	return out
}

func wantStates(t *testing.T, got api.AlertView, want ...string) {
	t.Helper()
	if s := states(got); !slices.Equal(s, want) {
		t.Errorf("got %q, want %q", s, want)
	}
}

func (r replica) ack(who caller.Caller, id string) api.Ack {
	r.T.Helper()
	return recordstest.Decode[api.Ack](r.Want(200, who, "POST", path+"/"+id+"/ack", nil))
}

// fire returns a changed copy of an alert of the recorded list.
func fire(t *testing.T, change func(*controlplane.Alert)) controlplane.Alert {
	t.Helper()
	a := recordstest.Recorded[controlplane.AlertList](t, "alerts").Items[0]
	change(&a)
	return a
}

func TestInboxListsWhatFiresBySeverityThenAge(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.plane.SetAlerts("platform", fire(t, func(a *controlplane.Alert) {
		a.Id, a.Source, a.Severity, a.Labels = "deploy:MACK:Production", "deploy", "critical", nil
	}), fire(t, func(a *controlplane.Alert) {
		a.Id, a.Severity, a.Since = "drift:X:Production", "warn", a.Since.Add(-time.Hour)
	}))
	got := r.read("")
	wantStates(t, got, "deploy:MACK:Production firing", budget+" firing", "drift:X:Production firing", eval+" firing")
	if c := got.Inbox.Counts; c.Critical != 1 || c.Error != 1 || c.Warn != 2 || got.Inbox.Count != 4 || *got.Inbox.Unacknowledged != 4 || got.Inbox.Stale != nil {
		t.Errorf("got %+v, %d alerts, %d unacknowledged, stale %v; want 1, 1, 2 of 4", c, got.Inbox.Count, *got.Inbox.Unacknowledged, got.Inbox.Stale)
	}
	want := recordstest.Recorded[controlplane.AlertList](t, "alerts").Items[0]
	if a := got.Inbox.Alerts[1]; a.Title != want.Title || fmt.Sprint(a.Labels) != fmt.Sprint(want.Labels) || !a.Since.Equal(want.Since) || a.Source != "budget" {
		t.Errorf("got %+v, want as the control plane says: %+v", a, want)
	}
	r.Refused(422, "validation_failed", recordstest.Viewer, "GET", path+"?state=firing", nil)
	r.Refused(422, "validation_failed", recordstest.Viewer, "GET", path+"?status=all", nil)
}

func TestAcknowledgementKeepsNameAndTimeOverARestart(t *testing.T) {
	t.Parallel()
	r := start(t)
	first := r.ack(recordstest.Viewer, budget) // not listed yet
	if !first.Acked || !first.Audited || *first.AckedBy != "local:viewer" || time.Since(*first.AckedAt) > time.Minute {
		t.Errorf("got %+v; want it acked by local:viewer now", first)
	}
	after := newReplica(t, r.plane, r.pool)
	got := after.read("")
	wantStates(t, got, budget+" acknowledged", eval+" firing")
	if a := got.Inbox.Alerts[0]; *a.AckedBy != "local:viewer" || !a.AckedAt.Equal(*first.AckedAt) || *got.Inbox.Unacknowledged != 1 {
		t.Errorf("got %+v, %d unacknowledged; want local:viewer at %v", a, *got.Inbox.Unacknowledged, first.AckedAt)
	}
	if again := after.ack(recordstest.Admin, budget); !again.Acked || *again.AckedBy != "local:viewer" || !again.AckedAt.Equal(*first.AckedAt) {
		t.Errorf("repeated by another: got %+v, want the first", again)
	}
	facts, events := recordstest.Audits(t, r.pool, "alert.ack"), recordstest.Events(t, r.pool, "alert.acked")
	if len(facts) != 1 || facts[0]["actor"] != "local:viewer" || facts[0]["target"] != "alert:"+budget || facts[0]["tenant"] != "default" {
		t.Errorf("got facts %v, want one by local:viewer", facts)
	}
	if len(events) != 1 || events[0].Tenant != "default" || events[0].Data["id"] != budget || events[0].Data["actor"] != "local:viewer" {
		t.Errorf("got events %v, want one", events)
	}
	r.Refused(404, "alert_not_found", recordstest.Viewer, "POST", path+"/drift:none/ack", nil)
}

func TestResolvedAlertsStayForADayAndCannotBeTaken(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.ack(recordstest.Viewer, budget)
	r.plane.SetAlerts("default", recordstest.Recorded[controlplane.AlertList](t, "alerts_later").Items...)
	wantStates(t, r.read(""), eval+" firing")
	gone := r.read("?state=resolved")
	wantStates(t, gone, budget+" resolved")
	if a := gone.Inbox.Alerts[0]; a.ResolvedAt == nil || a.AckedBy == nil || *a.AckedBy != "local:viewer" || gone.Inbox.Counts.Error != 1 {
		t.Errorf("got %+v, counts %+v; want who took it and when it ended", a, gone.Inbox.Counts)
	}
	wantStates(t, r.read("?state=all"), budget+" resolved", eval+" firing")
	r.Refused(409, "alert_resolved", recordstest.Viewer, "POST", path+"/"+budget+"/ack", nil)
	if _, err := r.pool.Exec(t.Context(), "update alert_states set resolved_at = now() - interval '25 hours' where state = 'resolved'"); err != nil {
		t.Fatal(err)
	}
	wantStates(t, r.read("?state=all"), eval+" firing")
	r.Refused(404, "alert_not_found", recordstest.Viewer, "POST", path+"/"+budget+"/ack", nil)
	var left int
	if err := r.pool.QueryRow(t.Context(), "select count(*) from alert_states").Scan(&left); err != nil || left != 1 {
		t.Errorf("got %d rows, %v; want those of a day ago gone", left, err)
	}
}

func TestWorseAndNewAlertsFireAgain(t *testing.T) {
	t.Parallel()
	r := start(t)
	set := func(severity controlplane.AlertSeverity, since time.Duration) {
		r.plane.SetAlerts("default", fire(t, func(a *controlplane.Alert) { a.Severity, a.Since = severity, a.Since.Add(since) }))
	}
	set("error", 0)
	r.ack(recordstest.Viewer, budget)
	set("warn", 0)
	wantStates(t, r.read(""), budget+" acknowledged") // better: still taken
	set("critical", 0)
	worse := r.read("")
	wantStates(t, worse, budget+" firing")
	if a := worse.Inbox.Alerts[0]; a.Severity != "critical" || a.AckedBy != nil || a.AckedAt != nil {
		t.Errorf("got %+v; want it critical and taken by nobody", a)
	}
	r.views.Age()
	r.ack(recordstest.Admin, budget)
	set("critical", time.Hour)
	wantStates(t, r.read("?state=all"), budget+" resolved", budget+" firing")
	wantStates(t, r.read(""), budget+" firing")
	set("critical", 0) // the earlier firing, missing from one reading: its acknowledgement remains
	wantStates(t, r.read(""), budget+" acknowledged")
}

func TestSilentSourceResolvesNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range []recordstest.Mode{recordstest.Broken, recordstest.Hanging, recordstest.Unauthorized} {
		r := start(t)
		wantStates(t, r.read(""), budget+" firing", eval+" firing")
		r.plane.Set(mode)
		got := r.read("")
		wantStates(t, got, budget+" firing", eval+" firing")
		if got.Inbox.Stale == nil || !*got.Inbox.Stale || !slices.Equal(got.Partial, []string{"alerts"}) {
			t.Errorf("mode %d: got stale %v, partial %v; want both", mode, got.Inbox.Stale, got.Partial)
		}
		r.ack(recordstest.Viewer, eval) // from the last known state
		wantStates(t, recordstest.Decode[api.AlertView](r.Want(200, recordstest.Viewer, "GET", path, nil)), budget+" firing", eval+" acknowledged")
	}
}

func TestAlertsOfAnotherTenantLookAbsent(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.plane.SetAlerts("platform", fire(t, func(a *controlplane.Alert) { a.Id = "drift:X:Production" }))
	r.read("")
	r.ack(recordstest.Viewer, "drift:X:Production")
	foreign := recordstest.Decode[api.AlertView](r.Want(200, recordstest.Stranger, "GET", path+"?state=all", nil))
	wantStates(t, foreign, "drift:X:Production firing") // all may see it; the acknowledgement is the other tenant's
	r.Refused(404, "alert_not_found", recordstest.Stranger, "POST", path+"/"+budget+"/ack", nil)
}

// A slow answer of one replica must neither restore an alert that a newer answer of another has ended, nor end a new
// one.
func TestOlderReadingOfAnotherReplicaChangesNothing(t *testing.T) {
	t.Parallel()
	a := start(t)
	b := newReplica(t, a.plane, recordstest.Reopen(t, a.pool.Config().ConnString()))
	a.read("")
	for _, newer := range [][]controlplane.Alert{recordstest.Recorded[controlplane.AlertList](t, "alerts_later").Items, recordstest.Recorded[controlplane.AlertList](t, "alerts").Items} {
		release := a.plane.Hold()
		before := a.plane.Calls()
		done := make(chan struct{})
		a.views.Age()
		go func() { defer close(done); a.Do(recordstest.Viewer, "GET", path, nil) }()
		testenv.Eventually(t, 20*time.Second, func() error { // the slow request has arrived
			if a.plane.Calls() == before {
				return fmt.Errorf("got %d calls", before)
			}
			return nil
		})
		a.plane.SetAlerts("default", newer...)
		want := states(b.read(""))
		release()
		<-done
		// Read from the table: another reading would repair the damage of the old one.
		if got := open(t, a.pool); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// open returns the firings that the table holds as not resolved, most severe first.
func open(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	var out []string
	if err := pool.QueryRow(t.Context(), "select array_agg(alert_id || ' ' || state order by severity, alert_id) from alert_states where state <> 'resolved'").Scan(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReadingKeepsAnAcknowledgementThatIsBeingMade(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.read("")
	tx, err := r.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "update alert_states set state = 'acknowledged', acked_by = 'idp-a:1', acked_at = now() where alert_id = $1", budget); err != nil {
		t.Fatal(err)
	}
	r.plane.SetAlerts("default", fire(t, func(a *controlplane.Alert) { a.Title = "Even more is spent." }))
	done := make(chan struct{})
	r.views.Age()
	go func() { defer close(done); r.Do(recordstest.Viewer, "GET", path, nil) }()
	testenv.Eventually(t, 20*time.Second, func() error { // the reading waits for the acknowledgement
		var waiting int
		err := r.pool.QueryRow(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").Scan(&waiting)
		if err == nil && waiting == 0 {
			err = errors.New("got nobody waiting")
		}
		return err
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
	if got := open(t, r.pool); !slices.Equal(got, []string{budget + " acknowledged"}) {
		t.Errorf("got %q, want it acknowledged", got)
	}
}

func TestTwoReplicasAcknowledgeOnce(t *testing.T) {
	t.Parallel()
	a := start(t)
	b := newReplica(t, a.plane, recordstest.Reopen(t, a.pool.Config().ConnString()))
	var wg sync.WaitGroup
	actors := make(chan string, 8)
	for i := range 8 {
		who, r := recordstest.Viewer, a
		if who.Subject = fmt.Sprintf("idp-a:%d", i); i%2 == 0 {
			r = b
		}
		wg.Go(func() {
			if got := r.Do(who, "POST", path+"/"+budget+"/ack", nil); got.Status == 200 {
				actors <- *recordstest.Decode[api.Ack](got).AckedBy
			} else {
				actors <- fmt.Sprint(got.Status)
			}
		})
		wg.Go(func() { r.Do(recordstest.Viewer, "GET", path, nil) })
	}
	wg.Wait()
	close(actors)
	seen := map[string]int{}
	for who := range actors {
		seen[who]++
	}
	if len(seen) != 1 {
		t.Errorf("got %v, want one name in all answers", seen)
	}
	if n := len(recordstest.Events(t, a.pool, "alert.acked")); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}

func TestLongListsAreReadToTheEnd(t *testing.T) {
	t.Parallel()
	r := start(t)
	many := make([]controlplane.Alert, 1100)
	for i := range many {
		many[i] = fire(t, func(a *controlplane.Alert) { a.Id = fmt.Sprintf("budget:%04d", i) })
	}
	r.plane.SetAlerts("default", many...)
	if got := r.read(""); got.Inbox.Count != 1100 || got.Inbox.Counts.Error != 1100 {
		t.Errorf("got %d alerts, want 1100", got.Inbox.Count)
	}
}
