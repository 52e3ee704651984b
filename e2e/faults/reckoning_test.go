//go:build e2e || faults

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/e2e/harness"
)

// settle limits the time from the last answer until everything is at rest: runs followed, events published and handled,
// the ledger written.
const settle = 90 * time.Second

// run is one run at the orchestrator.
type run struct {
	ID        string
	Key       string `json:"idempotency_key"`
	StateType string `json:"state_type"`
	Count     int    `json:"run_count"`
}

func (w *world) runs(t *testing.T) []run {
	t.Helper()
	var all []run
	for {
		var page []run
		a := harness.Want(t, 200, "POST", w.orchestrator+"/flow_runs/filter", "", map[string]any{"limit": 200, "offset": len(all), "sort": "ID_DESC"})
		if err := json.Unmarshal(a.Body, &page); err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

// ranOnce checks that each command is one run at the orchestrator, carried out once, and that there is
// no other.
func (w *world) ranOnce(t *testing.T, commands []*command) {
	t.Helper()
	runs := map[string]run{}
	keys := map[string]string{}
	for _, r := range w.runs(t) {
		if other, ok := keys[r.Key]; ok {
			t.Errorf("runs %s and %s have one key %q; want !ok", r.ID, other, r.Key)
		}
		runs[r.ID], keys[r.Key] = r, r.ID
		if r.StateType != "COMPLETED" || r.Count != 1 {
			t.Errorf(`run %s is %s after %d starts; want r.StateType == "COMPLETED" && r.Count == 1`, r.ID, r.StateType, r.Count)
		}
	}
	mine := map[string]*command{}
	for _, c := range commands {
		if other, ok := mine[c.flowRun]; ok {
			t.Errorf("%s and %s were answered with one run %s; want !ok", c.name(), other.name(), c.flowRun)
		}
		mine[c.flowRun] = c
		r, ok := runs[c.flowRun]
		if !ok {
			t.Errorf("%s: the orchestrator has no run %q; want ok", c.name(), c.flowRun)
		} else if c.kind == "approval" && r.Key != "approval:"+c.approval {
			t.Errorf(`%s: run %s has the key %q; want (c.kind != "approval" || r.Key == "approval:" + c.approval)`, c.name(), r.ID, r.Key)
		}
	}
	for id, r := range runs {
		if mine[id] == nil {
			t.Errorf("run %s with key %q belongs to no command; want mine[id] != nil", id, r.Key)
		}
	}
}

// atRest waits until the control planes have no work left, and checks the results.
func (w *world) atRest(t *testing.T, commands []*command) {
	t.Helper()
	harness.Eventually(t, settle, func() error {
		for what, sql := range map[string]string{
			"runs followed":                "select count(*) from runs where not terminal",
			"commands being dispatched":    "select count(*) from commands where status = 'dispatching'",
			"approvals without a decision": "select count(*) from approvals where status <> 'approved'",
			"events not published":         "select count(*) from outbox where published_at is null",
		} {
			n, err := queryInt(w.plane, sql)
			if err != nil {
				return err
			}
			if n != 0 {
				return fmt.Errorf("%d %s", n, what)
			}
		}
		return nil
	})
	for _, c := range []struct{ what, sql string }{
		{"commands that succeeded", "select count(*) from commands where status = 'succeeded'"},
		{"runs recorded", "select count(*) from runs"},
		{"events job.dispatched", "select count(distinct payload->>'flow_run_id') from outbox where namespace = 'job' and name = 'dispatched'"},
		{"events job.completed", "select count(*) from outbox where namespace = 'job' and name = 'completed'"},
	} {
		if n, err := queryInt(w.plane, c.sql); err != nil || n != len(commands) {
			t.Errorf("%s: %d of %d, %v; want n == len(commands)", c.what, n, len(commands), err)
		}
	}
	if n, err := queryInt(w.plane, "select count(*) from outbox where namespace = 'job' and name = 'dispatched'"); err != nil || n != len(commands) {
		t.Errorf("%d events job.dispatched of %d commands, %v; want n == len(commands)", n, len(commands), err)
	}
}

// arrivedOnce checks that the consumer has handled each event of the outbox once, and returns their number.
func (w *world) arrivedOnce(t *testing.T) int {
	t.Helper()
	if n, err := queryInt(w.plane, "select count(*) from outbox where poison_at is not null or refusals > 0"); err != nil || n != 0 {
		t.Errorf("%d events were refused, %v; want n == 0", n, err)
	}
	sent := queryStrings(t, w.plane, "select id::text from outbox")
	var got []string
	harness.Eventually(t, settle, func() error {
		n, err := queryInt(w.inbox, "select count(*) from handled")
		if err == nil && n < len(sent) {
			err = fmt.Errorf("%d of %d events were handled", n, len(sent))
		}
		return err
	})
	// Events written meanwhile, such as the ledger's own, may be in both or in one.
	got = queryStrings(t, w.inbox, "select event_id::text from handled")
	times := map[string]int{}
	for _, id := range got {
		if times[id]++; times[id] == 2 {
			t.Errorf("event %s was handled twice; want times[id] != 2", id)
		}
	}
	lost := 0
	for _, id := range sent {
		if times[id] == 0 {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d events were never handled", lost, len(sent))
	}
	if n, err := queryInt(w.inbox, "select count(*) from dead_letter"); err != nil || n != 0 {
		t.Errorf("%d dead letters, %v; want n == 0", n, err)
	}
	return len(sent)
}

// ledgerHolds checks that each tenant's chain verifies and that every audit fact is in one. It returns their number.
func (w *world) ledgerHolds(t *testing.T) int {
	t.Helper()
	facts := queryStrings(t, w.plane, "select id::text from outbox where namespace = 'audit' and name = 'recorded'")
	harness.Eventually(t, settle, func() error {
		n, err := queryInt(w.plane, "select count(*) from audit_events")
		if err == nil && n < len(facts) {
			err = fmt.Errorf("%d of %d facts are in the ledger", n, len(facts))
		}
		return err
	})
	held := map[string]bool{}
	for _, id := range queryStrings(t, w.plane, "select event_id::text from audit_events") {
		if held[id] {
			t.Errorf("fact %s is in the ledger twice; want !held[id]", id)
		}
		held[id] = true
	}
	for _, id := range facts {
		if !held[id] {
			t.Errorf("fact %s is not in the ledger; want held[id]", id)
		}
	}
	for _, tenant := range tenants {
		n, err := queryInt(w.plane, "select count(*) from audit_events where tenant = $1", tenant)
		if err != nil {
			t.Fatal(err)
		}
		v := harness.Want(t, 200, "GET", w.replicas[0]+"/audit/verify", tokenOf(tenant), nil).JSON(t)
		if checked, _ := v["checked"].(float64); v["verified"] != true || checked < float64(n) {
			t.Errorf(`ledger of %s with %d facts: %v; want v["verified"] == true && checked >= float64(n)`, tenant, n, v)
		}
	}
	return len(facts)
}

func queryInt(pool *pgxpool.Pool, sql string, args ...any) (n int, err error) {
	rows, err := pool.Query(context.Background(), sql, args...)
	if err != nil {
		return 0, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
}

func queryStrings(t *testing.T, pool *pgxpool.Pool, sql string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// report prints the work done and its duration.
func (w *world) report(t *testing.T, l *load, took time.Duration, events, facts int) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-34s %8s %14s\n", "process", "kill -9", "longest start")
	for _, p := range w.parts {
		fmt.Fprintf(&b, "%-34s %8d %14s\n", p.name, p.kills, p.back.Round(10*time.Millisecond))
	}
	var times []time.Duration
	for _, c := range l.commands {
		times = append(times, c.took)
	}
	slices.Sort(times)
	fmt.Fprintf(&b, "\n%-34s %8d\n%-34s %8d\n%-34s %8d\n", "commands, each one run", len(l.commands), "events, each handled once", events, "audit facts, each in the ledger", facts)
	fmt.Fprintf(&b, "%-34s %8s\n%-34s %8.1f\n%-34s %8.1f\n", "time", took.Round(time.Second), "commands/s", float64(len(l.commands))/took.Seconds(), "events/s", float64(events)/took.Seconds())
	fmt.Fprintf(&b, "%-34s %8s %8s %8s\n", "a command: half, 99 %, longest", times[len(times)/2].Round(10*time.Millisecond), times[len(times)*99/100].Round(10*time.Millisecond), times[len(times)-1].Round(10*time.Millisecond))
	b.WriteString("\nasked again because of:\n")
	for _, name := range slices.Sorted(maps.Keys(l.faults)) {
		fmt.Fprintf(&b, "  %-40s %8d\n", name, l.faults[name])
	}
	t.Log(b.String())
}
