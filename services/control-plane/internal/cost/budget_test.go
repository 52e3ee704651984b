package cost_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/control-plane/internal/alert"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/cost"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// recordSpend records GPU hours of a project, at 2.50 USD each.
func recordSpend(p *controlplanetest.Plane, bearer, project, job string, hours float64) {
	p.T.Helper()
	p.Want(200, "POST", "/costs", bearer, map[string]any{
		"model": "JPCP", "version": "1", "scheduler": "slurm", "job_id": job, "gpu_hours": hours, "cpu_hours": 0, "project": project,
	})
}

func putBudget(p *controlplanetest.Plane, project string, body any) map[string]any {
	p.T.Helper()
	return p.Want(200, "PUT", "/budgets/"+project, controlplanetest.Operator, body).Object(p.T)
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	recordSpend(p, controlplanetest.Operator, "spent", "1", 4)  // 10 USD
	recordSpend(p, controlplanetest.Operator, "old", "2", 1000) // of another month
	p.SQL(`update control_plane.costs set recorded_at = date_trunc('month', now(), 'UTC') - interval '1 microsecond' where project = 'old'`)
	recordSpend(p, controlplanetest.Foreign, "spent", "3", 1000) // of another tenant
	for i, c := range []struct {
		project, body                 string
		costRatio, hoursRatio         any
		consumed, consumedHours       float64
		costBudget, hoursBudget, over any
	}{
		{"spent", `{"cost_budget":20,"period":"monthly"}`, 0.5, nil, 10, 4, 20.0, nil, false},
		{"spent", `{"cost_budget":10}`, 1.0, nil, 10, 4, 10.0, nil, false}, // spending all of it is not over budget
		{"spent", `{"cost_budget":9.999999}`, 1.0, nil, 10, 4, 9.999999, nil, true},
		{"spent", `{"cost_budget":0}`, nil, nil, 10, 4, 0.0, nil, true},
		{"spent", `{}`, nil, nil, 10, 4, nil, nil, false},
		{"spent", `{"cost_budget":null,"gpu_hours_budget":8}`, nil, 0.5, 10, 4, nil, 8.0, false},
		{"spent", `{"cost_budget":20,"gpu_hours_budget":3.2}`, 0.5, 1.25, 10, 4, 20.0, 3.2, true},
		{"spent", `{"gpu_hours_budget":0}`, nil, nil, 10, 4, nil, 0.0, true},
		{"old", `{"cost_budget":1}`, 0.0, nil, 0, 0, 1.0, nil, false},
		{"unspent", `{"cost_budget":0,"gpu_hours_budget":0}`, nil, nil, 0, 0, 0.0, 0.0, false},
		{"HPC%20project%207", `{"cost_budget":5}`, 0.0, nil, 0, 0, 5.0, nil, false},
	} {
		out := putBudget(p, c.project, c.body)
		for name, want := range map[string]any{
			"project": strings.ReplaceAll(c.project, "%20", " "), "period": "monthly", "costBudget": c.costBudget, "consumedCostUsd": c.consumed, "costRatio": c.costRatio,
			"gpuHoursBudget": c.hoursBudget, "consumedGpuHours": c.consumedHours, "gpuHoursRatio": c.hoursRatio, "overBudget": c.over, "updated_by": "operator",
		} {
			if got, ok := out[name]; !ok || got != want {
				t.Errorf("%d: %s is %v, want %v", i, name, got, want)
			}
		}
	}

	list := p.Want(200, "GET", "/budgets?limit=3", controlplanetest.Reader, nil).Object(t)
	var names []any
	for _, b := range list["items"].([]any) {
		names = append(names, b.(map[string]any)["project"])
	}
	rest := p.Want(200, "GET", fmt.Sprint("/budgets?limit=3&cursor=", list["next_cursor"]), controlplanetest.Reader, nil).Object(t)
	if fmt.Sprint(names) != "[HPC project 7 old spent]" || list["consumed_cost_usd"] != 10.0 || rest["consumed_cost_usd"] != 10.0 ||
		len(rest["items"].([]any)) != 1 || rest["next_cursor"] != nil {
		t.Errorf(`%v, %v; want fmt.Sprint(names) == "[HPC project 7 old spent]" && list["consumed_cost_usd"] == 10.0 && rest["consumed_cost_usd"] == 10.0 && len(rest["items"].([]any)) == 1 && …`, list, rest)
	}
	other := p.Want(200, "GET", "/budgets", controlplanetest.Foreign, nil).Object(t)
	if len(other["items"].([]any)) != 0 || other["consumed_cost_usd"] != 2500.0 {
		t.Errorf(`other tenant: %v; want len(other["items"].([]any)) == 0 && other["consumed_cost_usd"] == 2500.0`, other)
	}

	p.Refused(404, "budget_not_found", "DELETE", "/budgets/spent", controlplanetest.Foreign, nil)
	p.Want(204, "DELETE", "/budgets/spent", controlplanetest.Operator, nil)
	p.Refused(404, "budget_not_found", "DELETE", "/budgets/spent", controlplanetest.Operator, nil)
	if n := len(p.Want(200, "GET", "/budgets", controlplanetest.Reader, nil).Object(t)["items"].([]any)); n != 3 {
		t.Errorf("%d budgets; want 3", n)
	}
	set, removed := p.Audits("budget.set"), p.Audits("budget.removed")
	if len(set) != 11 || len(removed) != 1 || removed[0]["target"] != "project:spent" || removed[0]["actor"] != "operator" {
		t.Fatalf(`audit: %v, %v; want len(set) == 11 && len(removed) == 1 && removed[0]["target"] == "project:spent" && removed[0]["actor"] == "operator"`, set, removed)
	}
	details := set[1]["details"].(map[string]any)
	if details["old"].(map[string]any)["cost_budget"] != 20.0 || details["new"].(map[string]any)["cost_budget"] != 10.0 {
		t.Errorf(`audit %v; want details["old"].(map[string]any)["cost_budget"] == 20.0 && details["new"].(map[string]any)["cost_budget"] == 10.0`, details)
	}
}

// A project whose name needs escapes has one budget, and separate spend, however the path was written.
func TestBudgetOfEscapedProject(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	recordSpend(p, controlplanetest.Operator, "hpc/ml", "1", 1)
	for _, path := range []string{"hpc%2Fml", "hpc%2fml", "%68pc%2Fml"} {
		if out := putBudget(p, path, `{"cost_budget":0}`); out["project"] != "hpc/ml" || out["consumedCostUsd"] != 2.5 || out["overBudget"] != true {
			t.Errorf(`%s: %v; want out["project"] == "hpc/ml" && out["consumedCostUsd"] == 2.5 && out["overBudget"] == true`, path, out)
		}
	}
	if items := p.Want(200, "GET", "/budgets", controlplanetest.Operator, nil).Object(t)["items"].([]any); len(items) != 1 {
		t.Errorf("budgets %v; want len(items) == 1", items)
	}
	p.Want(204, "DELETE", "/budgets/hpc%2fml", controlplanetest.Operator, nil)
}

func TestBadBudgets(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	for _, c := range []struct{ path, body, field string }{
		{"a", `{"cost_budget":-1}`, "cost_budget"}, {"a", `{"cost_budget":1e13}`, "cost_budget"}, {"a", `{"cost_budget":"1"}`, "cost_budget"},
		{"a", `{"gpu_hours_budget":-0.1}`, "gpu_hours_budget"}, {"a", `{"cost_budget":1e999}`, "cost_budget"}, {"a", `{"period":"weekly"}`, "period"},
		{"a", `{"project":"b"}`, "project"}, {"%00", `{"cost_budget":1}`, "project"}, {"a%0Ab", `{"cost_budget":1}`, "project"},
		{strings.Repeat("x", 129), `{"cost_budget":1}`, "project"},
	} {
		if r := p.Refused(422, "validation_error", "PUT", "/budgets/"+c.path, controlplanetest.Operator, c.body); !strings.Contains(string(r.Body), c.field) {
			t.Errorf("%s does not name %s; want strings.Contains(string(r.Body), c.field)", r.Body, c.field)
		}
	}
	p.Refused(404, "budget_not_found", "DELETE", "/budgets/%00", controlplanetest.Operator, nil)
	for _, query := range []string{"limit=0", "cursor=x", "include_synthetic=maybe"} {
		p.Refused(422, "validation_error", "GET", "/budgets?"+query, controlplanetest.Reader, nil)
	}
	if n := len(p.Want(200, "GET", "/budgets", controlplanetest.Reader, nil).Object(t)["items"].([]any)); n != 0 {
		t.Errorf("%d budgets; want 0", n)
	}
}

// Concurrent writes of one budget leave one of them.
func TestConcurrentBudgetPuts(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	var wg sync.WaitGroup
	out := make([]controlplanetest.Response, 12)
	for i := range out {
		wg.Go(func() {
			out[i], _ = p.Try("PUT", "/budgets/a", controlplanetest.Operator, fmt.Sprintf(`{"cost_budget":%d}`, i+1))
		})
	}
	wg.Wait()
	for i, r := range out {
		if r.Status != 200 || r.Object(t)["costBudget"] != float64(i+1) {
			t.Fatalf(`%d: %d %s; want r.Status == 200 && r.Object(t)["costBudget"] == float64(i + 1)`, i, r.Status, r.Body)
		}
	}
	rows := p.Want(200, "GET", "/budgets", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	if len(rows) != 1 {
		t.Fatalf("%v; want len(rows) == 1", rows)
	}
	// The facts show the order of the writes: each old value is the new one of another, and one had none.
	old, set := map[any]bool{}, map[any]bool{}
	for _, a := range p.Audits("budget.set") {
		d := a["details"].(map[string]any)
		set[d["new"].(map[string]any)["cost_budget"]] = true
		if before, ok := d["old"].(map[string]any); ok {
			old[before["cost_budget"]] = true
		}
	}
	last := rows[0].(map[string]any)["costBudget"]
	if len(set) != len(out) || len(old) != len(out)-1 || old[last] {
		t.Errorf("last %v, old %v, new %v; want len(set) == len(out) && len(old) == len(out) - 1 && !old[last]", last, old, set)
	}
}

// A project over its budget fires, for its tenant and in its month.
func TestBudgetAlerts(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t)
	p.Serve()
	putBudget(p, "over", `{"cost_budget":10}`)
	putBudget(p, "hours", `{"gpu_hours_budget":1,"cost_budget":100}`)
	putBudget(p, "within", `{"cost_budget":10}`)
	putBudget(p, "nolimit", `{}`)
	putBudget(p, "made", `{"cost_budget":0}`)
	p.Want(200, "PUT", "/budgets/over", controlplanetest.Foreign, `{"cost_budget":0}`)
	for i, project := range []string{"over", "hours", "nolimit"} {
		recordSpend(p, controlplanetest.Operator, project, fmt.Sprint(i), 5)
	}
	recordSpend(p, controlplanetest.Operator, "within", "9", 4)
	recordSpend(p, controlplanetest.Foreign, "over", "1", 0.5)
	p.Want(200, "POST", "/costs", controlplanetest.Operator, `{"model":"JPCP","version":"1","scheduler":"mock","job_id":"m","project":"made"}`)

	pool, err := postgres.Open(t.Context(), p.Database, store.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	now := time.Now
	s := cost.NewBudgets(store.Open(pool), func() time.Time { return now() })
	got, err := s.Firing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []alert.Alert{
		{Tenant: "default", Key: "hours", Title: "Project hours is over its budget of this month: 5.00 of 1.00 GPU hours."},
		{Tenant: "default", Key: "over", Title: "Project over is over its budget of this month: 12.50 of 10.00 USD."},
		{Tenant: "other", Key: "over", Title: "Project over is over its budget of this month: 1.25 of 0.00 USD."},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v; want len(got) == len(want)", got)
	}
	for i, w := range want {
		if g := got[i]; g.Source != "budget" || g.Severity != alert.Error || g.Tenant != w.Tenant || g.Key != w.Key || g.Title != w.Title || g.Labels["project"] != w.Key {
			t.Errorf("%+v, want %+v", g, w)
		}
	}
	// In the next month nothing is spent yet.
	now = func() time.Time { return time.Now().AddDate(0, 1, 0) }
	if got, err = s.Firing(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("next month: %v %v; want len(got) == 0", got, err)
	}
}

// A budget that is removed while it is set exists afterwards or not; no caller sees a fault.
func TestConcurrentBudgetPutAndDelete(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	var wg sync.WaitGroup
	sets, removals := make([]controlplanetest.Response, 24), make([]controlplanetest.Response, 24)
	for i := range sets {
		wg.Go(func() {
			sets[i], _ = p.Try("PUT", "/budgets/a", controlplanetest.Operator, fmt.Sprintf(`{"cost_budget":%d}`, i+1))
		})
		wg.Go(func() { removals[i], _ = p.Try("DELETE", "/budgets/a", controlplanetest.Operator, nil) })
	}
	wg.Wait()
	gone := 0
	for i, r := range sets {
		if r.Status != 200 || r.Object(t)["costBudget"] != float64(i+1) {
			t.Errorf(`PUT: %d %s; want r.Status == 200 && r.Object(t)["costBudget"] == float64(i + 1)`, r.Status, r.Body)
		}
		switch r := removals[i]; r.Status {
		case 204:
			gone++
		case 404:
		default:
			t.Errorf("DELETE: %d %s", r.Status, r.Body)
		}
	}
	// A removal reports what it removed, and a budget set after one is new.
	fresh := 0
	for _, a := range p.Audits("budget.set") {
		if _, was := a["details"].(map[string]any)["old"]; !was {
			fresh++
		}
	}
	left := len(p.Want(200, "GET", "/budgets", controlplanetest.Reader, nil).Object(t)["items"].([]any))
	if n := len(p.Audits("budget.removed")); n != gone || fresh != gone+left {
		t.Errorf("%d of %d removals told; %d began anew, %d are left; want n == gone && fresh == gone + left", n, gone, fresh, left)
	}
}
