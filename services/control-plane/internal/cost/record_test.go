package cost_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// costReport returns the body of a report; over replaces members, and nil removes them.
func costReport(over map[string]any) map[string]any {
	b := map[string]any{"model": "JPCP", "version": "1", "run_id": "r1", "scheduler": "slurm", "job_id": "7", "gpu_hours": 2, "cpu_hours": 8, "project": "power"}
	for k, v := range over {
		if b[k] = v; v == nil {
			delete(b, k)
		}
	}
	return b
}

func recordCost(p *controlplanetest.Plane, over map[string]any) map[string]any {
	p.T.Helper()
	return p.Want(200, "POST", "/costs", controlplanetest.Trainer, costReport(over)).Object(p.T)
}

func getDocument(p *controlplanetest.Plane, path string) map[string]any {
	p.T.Helper()
	return p.Want(200, "GET", path, controlplanetest.Reader, nil).Object(p.T)
}

func getItems(p *controlplanetest.Plane, path string) []any {
	p.T.Helper()
	return getDocument(p, path)["items"].([]any)
}

func expectDocument(t *testing.T, got map[string]any, want map[string]any) {
	t.Helper()
	if err := containsDocument(any(got), any(want)); err != nil {
		t.Errorf("%v: %v", err, got)
	}
}

// Acceptance row 24, the half about costs: a repeated report is one row, and mock figures are outside all sums.
func TestRow24Costs(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	expectDocument(t, recordCost(p, nil), map[string]any{"recorded": true, "cost_usd": 5.0, "kwh": 1.26, "co2e_g": 378.0, "synthetic": false})
	expectDocument(t, recordCost(p, nil), map[string]any{"recorded": false, "cost_usd": 5.0, "kwh": 1.26, "co2e_g": 378.0, "synthetic": false})
	mock := map[string]any{"scheduler": "mock", "job_id": "mock-0a1b2c3d", "gpu_hours": nil, "cpu_hours": nil}
	expectDocument(t, recordCost(p, mock), map[string]any{"recorded": true, "gpu_hours": 20.74, "synthetic": true})
	expectDocument(t, recordCost(p, mock), map[string]any{"recorded": false, "gpu_hours": 20.74, "synthetic": true})
	p.Want(200, "PUT", "/budgets/power", controlplanetest.Operator, `{"cost_budget":10}`)

	rows := getItems(p, "/costs?model=jpcp")
	if len(rows) != 2 || rows[0].(map[string]any)["synthetic"] != true || rows[1].(map[string]any)["synthetic"] != false {
		t.Fatalf(`costs %v; want len(rows) == 2 && rows[0].(map[string]any)["synthetic"] == true && rows[1].(map[string]any)["synthetic"] == false`, rows)
	}
	for path, want := range map[string]map[string]any{
		"/costs/summary": {"cost": map[string]any{
			"rows":            []any{map[string]any{"dimension": "model", "key": "JPCP", "gpuHours": 2.0, "costUsd": 5.0, "runs": 1.0}},
			"total_gpu_hours": 2.0, "total_cost_usd": 5.0,
		}, "unitEconomics": map[string]any{"costPerTrainingRun": 5.0}},
		// Both jobs are of run r1, so they cost one run.
		"/costs/summary?include_synthetic=true": {"cost": map[string]any{"total_gpu_hours": 22.74, "total_cost_usd": 56.85},
			"unitEconomics": map[string]any{"costPerTrainingRun": 56.85}},
		"/budgets":                        {"items": []any{map[string]any{"project": "power", "costRatio": 0.5, "overBudget": false}}, "consumed_cost_usd": 5.0},
		"/budgets?include_synthetic=true": {"items": []any{map[string]any{"project": "power", "costRatio": 5.685, "overBudget": true}}, "consumed_cost_usd": 56.85},
		"/carbon":                         {"totals": map[string]any{"kwh": 1.26, "co2e_g": 378.0}, "co2e_kg": 0.378},
		"/carbon?include_synthetic=true":  {"totals": map[string]any{"kwh": 13.704, "co2e_g": 4111.2}, "co2e_kg": 4.1112},
	} {
		t.Run(path, func(t *testing.T) { expectDocument(t, getDocument(p, path), want) })
	}
}

// A repeat updates hours and price; run and project stay unless it names them.
func TestRepeatUpdates(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	recordCost(p, nil)
	first := getItems(p, "/costs")[0].(map[string]any)
	expectDocument(t, recordCost(p, map[string]any{"gpu_hours": 3, "run_id": nil, "project": nil}), map[string]any{"recorded": false, "cost_usd": 7.5})
	rows := getItems(p, "/costs")
	if len(rows) != 1 {
		t.Fatalf("%v; want len(rows) == 1", rows)
	}
	expectDocument(t, rows[0].(map[string]any), map[string]any{
		"id": first["id"], "run_id": "r1", "project": "power", "gpu_hours": 3.0, "recorded_at": first["recorded_at"], "updated_by": "trainer",
	})
	recordCost(p, map[string]any{"gpu_hours": 3, "project": "other", "run_id": "r2"})
	expectDocument(t, getItems(p, "/costs")[0].(map[string]any), map[string]any{"run_id": "r2", "project": "other"})
	if a := p.Audits("cost.recorded"); len(a) != 1 || a[0]["actor"] != "trainer" || a[0]["target"] != "model:JPCP" {
		t.Errorf(`recorded: %v; want len(a) == 1 && a[0]["actor"] == "trainer" && a[0]["target"] == "model:JPCP"`, a)
	}
	a := p.Audits("cost.updated")
	if len(a) != 2 {
		t.Fatalf("updated: %v; want len(a) == 2", a)
	}
	expectDocument(t, a[0]["details"].(map[string]any), map[string]any{"old": map[string]any{"gpu_hours": 2.0}, "new": map[string]any{"gpu_hours": 3.0}})

	// A change of any of the five makes another record.
	for _, over := range []map[string]any{{"model": "MACK"}, {"version": "2"}, {"scheduler": "flux"}, {"job_id": "8"}} {
		if out := recordCost(p, over); out["recorded"] != true {
			t.Errorf(`%v: %v; want out["recorded"] == true`, over, out)
		}
	}
	if out := p.Want(200, "POST", "/costs", controlplanetest.Foreign, costReport(nil)).Object(t); out["recorded"] != true {
		t.Errorf(`other tenant: %v; want out["recorded"] == true`, out)
	}
	if n := len(getItems(p, "/costs")); n != 5 {
		t.Errorf("%d records; want 5", n)
	}
}

// Many concurrent reports of one job are one row, recorded once. The reporter may know the job's prices better than the
// service does.
func TestPricesOfTheReport(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	expectDocument(t, recordCost(p, map[string]any{"gpu_cost_per_hour": 9}), map[string]any{"recorded": true, "cost_usd": 18.0})
	flux := map[string]any{"scheduler": "flux", "job_id": "f1", "gpu_cost_per_hour": 0, "cpu_cost_per_hour": 0.5}
	expectDocument(t, recordCost(p, flux), map[string]any{"recorded": true, "cost_usd": 4.0})
	expectDocument(t, recordCost(p, nil), map[string]any{"recorded": false, "cost_usd": 5.0}) // without them, by the service's
	for _, wrong := range []any{-1, 10_001} {
		p.Want(422, "POST", "/costs", controlplanetest.Trainer, costReport(map[string]any{"gpu_cost_per_hour": wrong}))
	}
}

func TestReportsAtOnce(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	const n = 16
	var wg sync.WaitGroup
	out := make([]controlplanetest.Response, n)
	for i := range n {
		wg.Go(func() {
			out[i], _ = p.Try("POST", "/costs", controlplanetest.Trainer, costReport(map[string]any{"gpu_hours": i}))
		})
	}
	wg.Wait()
	recorded := 0
	for _, r := range out {
		if r.Status != 200 {
			t.Fatalf("%d %s; want r.Status == 200", r.Status, r.Body)
		}
		if r.Object(t)["recorded"] == true {
			recorded++
		}
	}
	if rows := getItems(p, "/costs"); recorded != 1 || len(rows) != 1 {
		t.Fatalf("%d recorded, %v; want recorded == 1 && len(rows) == 1", recorded, rows)
	}
	if a := len(p.Audits("cost.recorded")); a != 1 {
		t.Errorf("%d audit facts; want 1", a)
	}
}

// Filters, pages, tenants.
func TestListAndSummary(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.Tracker.Add("gone", controlplanetest.Version{})
	for i, over := range []map[string]any{
		{"model": "jpcp", "version": "1", "project": "a", "gpu_hours": 0.1},
		{"model": "JPCP", "version": "2", "project": "a", "gpu_hours": 0.2},
		{"model": "MACK", "version": "1", "project": "b", "gpu_hours": 4},
		{"model": "GONE", "version": "1", "project": nil, "gpu_hours": 4},         // no longer in a repository
		{"model": "RuntimeClass", "version": "9", "project": nil, "gpu_hours": 1}, // its model's project
	} {
		over["job_id"], over["run_id"] = fmt.Sprint(i), nil
		recordCost(p, over)
	}
	p.Want(200, "POST", "/costs", controlplanetest.Foreign, costReport(map[string]any{"gpu_hours": 1000}))
	for query, want := range map[string]int{
		"": 5, "?model=jpcp": 2, "?project=a": 2, "?model=JPCP&version=2": 1, "?project=default": 1, "?project=samples": 1, "?model=NOPE": 0, "?version=1": 3,
	} {
		if got := getItems(p, "/costs"+query); len(got) != want {
			t.Errorf("%s: %v; want len(got) == %v", query, got, want)
		}
	}
	first := getDocument(p, "/costs?limit=2")
	rest := getDocument(p, fmt.Sprint("/costs?limit=3&cursor=", first["next_cursor"]))
	if a, b := first["items"].([]any), rest["items"].([]any); len(a) != 2 || len(b) != 3 || rest["next_cursor"] != nil ||
		a[0].(map[string]any)["model"] != "RUNTIMECLASS" || b[2].(map[string]any)["gpu_hours"] != 0.1 {
		t.Errorf(`pages %v, %v; want len(a) == 2 && len(b) == 3 && rest["next_cursor"] == nil && a[0].(map[string]any)["model"] == "RUNTIMECLASS" && b[2].(map[string]any)["gpu_hours"] == 0.1`, first, rest)
	}

	row := func(key string, hours, usd, runs float64) any {
		return map[string]any{"key": key, "gpuHours": hours, "costUsd": usd, "runs": runs}
	}
	// By cost, then key; 0.1 + 0.2 is 0.3.
	expectDocument(t, getDocument(p, "/costs/summary"), map[string]any{"cost": map[string]any{
		"rows":            []any{row("GONE", 4, 10, 1), row("MACK", 4, 10, 1), row("RUNTIMECLASS", 1, 2.5, 1), row("JPCP", 0.3, 0.75, 2)},
		"total_gpu_hours": 9.3, "total_cost_usd": 23.25,
	}, "unitEconomics": map[string]any{"costPerTrainingRun": 4.65}, "next_cursor": nil})
	expectDocument(t, getDocument(p, "/costs/summary?by=project&project=a"), map[string]any{"cost": map[string]any{
		"rows": []any{map[string]any{"dimension": "project", "key": "a", "costUsd": 0.75, "runs": 2.0}}, "total_cost_usd": 0.75,
	}})
	expectDocument(t, getDocument(p, "/costs/summary?model=mack"), map[string]any{"cost": map[string]any{"rows": []any{row("MACK", 4, 10, 1)}, "total_cost_usd": 10.0}})
	// Pages carry the totals of all.
	var keys []string
	next := ""
	for range 4 {
		page := getDocument(p, "/costs/summary?limit=1&cursor="+next)
		cost := page["cost"].(map[string]any)
		keys = append(keys, cost["rows"].([]any)[0].(map[string]any)["key"].(string))
		if cost["total_cost_usd"] != 23.25 {
			t.Errorf(`page of %s: %v; want cost["total_cost_usd"] == 23.25`, keys, cost)
		}
		next, _ = page["next_cursor"].(string)
	}
	if got := strings.Join(keys, " "); got != "GONE MACK RUNTIMECLASS JPCP" || next != "" {
		t.Errorf(`%s, then %q; want got == "GONE MACK RUNTIMECLASS JPCP" && next == ""`, got, next)
	}
	page := getDocument(p, "/carbon?limit=3")
	last := getDocument(p, fmt.Sprint("/carbon?limit=3&cursor=", page["next_cursor"]))
	if a, b := page["byModel"].([]any), last["byModel"].([]any); len(a) != 3 || len(b) != 1 || b[0].(map[string]any)["model"] != "RUNTIMECLASS" ||
		fmt.Sprint(page["totals"]) != fmt.Sprint(last["totals"]) {
		t.Errorf(`carbon %v, %v; want len(a) == 3 && len(b) == 1 && b[0].(map[string]any)["model"] == "RUNTIMECLASS" && fmt.Sprint(page["totals"]) == fmt.Sprint(last["totals"])`, page, last)
	}
	for _, path := range []string{"/costs", "/costs/summary", "/carbon", "/budgets"} {
		if r := p.Want(200, "GET", path, controlplanetest.Foreign, nil); strings.Contains(string(r.Body), "GONE") {
			t.Errorf(`%s shows another tenant's: %s; want !strings.Contains(string(r.Body), "GONE")`, path, r.Body)
		}
	}
}

// Without records there are zeros, and no price of a run.
func TestEmpty(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "CARBON_GPU_WATTS=700", "CARBON_GRID_G_PER_KWH=41.5")
	expectDocument(t, getDocument(p, "/costs/summary"), map[string]any{"cost": map[string]any{"rows": []any{}, "total_gpu_hours": 0.0, "total_cost_usd": 0.0},
		"unitEconomics": map[string]any{"costPerTrainingRun": nil}, "next_cursor": nil})
	carbon := getDocument(p, "/carbon")
	expectDocument(t, carbon, map[string]any{"totals": map[string]any{"kwh": 0.0, "co2e_g": 0.0}, "co2e_kg": 0.0, "uncertainty": 0.3, "scope": "operational", "byModel": []any{}})
	for _, value := range []string{"700 W", "5 W", "PUE 1.5", "41.5 g/kWh"} {
		if !strings.Contains(carbon["methodology"].(string), value) {
			t.Errorf(`methodology lacks %s: %v; want strings.Contains(carbon["methodology"].(string), value)`, value, carbon["methodology"])
		}
	}
	expectDocument(t, getDocument(p, "/costs"), map[string]any{"items": []any{}, "next_cursor": nil})
}

func TestBadReports(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	for i, c := range []struct {
		over  map[string]any
		field string
	}{
		{map[string]any{"model": nil}, "model"}, {map[string]any{"model": "a/b"}, "model"}, {map[string]any{"version": ""}, "version"},
		{map[string]any{"job_id": nil}, "job_id"}, {map[string]any{"job_id": strings.Repeat("x", 129)}, "job_id"}, {map[string]any{"job_id": "a\nb"}, "job_id"},
		{map[string]any{"scheduler": "pbs"}, "scheduler"}, {map[string]any{"scheduler": nil}, "scheduler"}, {map[string]any{"scheduler": "SLURM"}, "scheduler"},
		{map[string]any{"gpu_hours": -0.001}, "gpu_hours"}, {map[string]any{"gpu_hours": 1e8 + 1}, "gpu_hours"}, {map[string]any{"gpu_hours": "2"}, "gpu_hours"},
		{map[string]any{"gpu_hours": nil}, "gpu_hours"}, {map[string]any{"cpu_hours": nil}, "cpu_hours"}, {map[string]any{"cpu_hours": -1}, "cpu_hours"},
		{map[string]any{"project": ""}, "project"}, {map[string]any{"project": "a\u0000"}, ""}, {map[string]any{"run_id": " "}, "run_id"},
		{map[string]any{"cost_usd": 1}, "cost_usd"}, {map[string]any{"scheduler": "mock", "gpu_hours": -1}, "gpu_hours"},
	} {
		if r := p.Refused(422, "validation_error", "POST", "/costs", controlplanetest.Operator, costReport(c.over)); !strings.Contains(string(r.Body), c.field) {
			t.Errorf("%d: %s does not name %s; want strings.Contains(string(r.Body), c.field)", i, r.Body, c.field)
		}
	}
	p.Refused(422, "validation_error", "POST", "/costs", controlplanetest.Operator, strings.Replace(controlplanetest.MustJSON(costReport(nil)), `"gpu_hours":2`, `"gpu_hours":1e400`, 1))
	for _, path := range []string{
		"/costs?limit=0", "/costs?cursor=x", "/costs/summary?by=version", "/costs/summary?include_synthetic=yes", "/costs/summary?limit=501", "/costs/summary?cursor=e30",
		"/carbon?include_synthetic=1", "/carbon?cursor=eyJhZnRlciI6Ilx1MDAwMCJ9", "/costs?model=%00",
	} {
		p.Refused(422, "validation_error", "GET", path, controlplanetest.Reader, nil)
	}
	if rows := getItems(p, "/costs"); len(rows) != 0 {
		t.Errorf("recorded %v; want len(rows) == 0", rows)
	}
	// The limits themselves are accepted.
	expectDocument(t, recordCost(p, map[string]any{"gpu_hours": 1e8, "cpu_hours": 0, "job_id": strings.Repeat("x", 128)}), map[string]any{"cost_usd": 2.5e8})
	expectDocument(t, recordCost(p, map[string]any{"gpu_hours": 0.0000004, "job_id": "tiny"}), map[string]any{"gpu_hours": 0.0, "cost_usd": 0.0})
}
