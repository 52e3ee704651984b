package governance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/governance"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

func evalMetric(name string, value float64, passed bool) map[string]any {
	return map[string]any{"metric": name, "value": value, "passed": passed}
}

func evalRun(version, suite, status string, metrics ...map[string]any) map[string]any {
	if metrics == nil {
		metrics = []map[string]any{}
	}
	return map[string]any{"model": "jpcp", "version": version, "suite": suite, "status": status, "metrics": metrics}
}

func TestRecordEval(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	withBaseline := evalMetric("rmse", -0.5, true)
	withBaseline["baseline"] = 0
	body := evalRun("3", "regression/v1", "failed", withBaseline, evalMetric("mae,none", math.MaxFloat64, false), evalMetric("bias", 5e-324, true))
	body["run_id"] = "run-1"
	got := p.Want(200, "POST", "/evals", controlplanetest.Trainer, body).Object(t)
	if got["model"] != "JPCP" || got["version"] != "3" || got["suite"] != "regression/v1" || got["status"] != "failed" || got["run_id"] != "run-1" ||
		got["tenant"] != "default" || got["updated_by"] != "trainer" || !strings.HasSuffix(got["updated_at"].(string), "Z") || got["passRate"] != 2.0/3 {
		t.Fatalf(`record %v; want got["model"] == "JPCP" && got["version"] == "3" && got["suite"] == "regression/v1" && got["status"] == "failed" && got["run_id"] == "run-1" && …`, got)
	}
	if m := got["metrics"].([]any); len(m) != 3 || fmt.Sprint(m[0]) != "map[baseline:0 metric:rmse passed:true value:-0.5]" ||
		m[1].(map[string]any)["value"] != math.MaxFloat64 || m[1].(map[string]any)["baseline"] != nil || m[2].(map[string]any)["value"] != 5e-324 {
		t.Fatalf(`metrics %v; want len(m) == 3 && fmt.Sprint(m[0]) == "map[baseline:0 metric:rmse passed:true value:-0.5]" && m[1].(map[string]any)["value"] == math.MaxFloat64 && …`, m)
	}
	// A repeat is that record, and changes nothing.
	if again := p.Want(200, "POST", "/evals", controlplanetest.Operator, body).Object(t); again["id"] != got["id"] || again["updated_by"] != "trainer" {
		t.Fatalf(`repeat %v; want again["id"] == got["id"] && again["updated_by"] == "trainer"`, again)
	}
	audits := p.Audits("eval.recorded")
	if len(audits) != 1 || audits[0]["actor"] != "trainer" || audits[0]["target"] != "model:JPCP" {
		t.Fatalf(`audit %v; want len(audits) == 1 && audits[0]["actor"] == "trainer" && audits[0]["target"] == "model:JPCP"`, audits)
	}
	if d := audits[0]["details"].(map[string]any); d["eval_id"] != got["id"] || d["metrics"] != 3.0 || fmt.Sprint(d["failed"]) != "[mae,none]" || len(d["metrics_sha256"].(string)) != 64 {
		t.Fatalf(`audit %v; want d["eval_id"] == got["id"] && d["metrics"] == 3.0 && fmt.Sprint(d["failed"]) == "[mae,none]" && len(d["metrics_sha256"].(string)) == 64`, d)
	}
	// A record with the same id and other content is refused, whatever differs.
	for name, change := range map[string]func(map[string]any){
		"version": func(b map[string]any) { b["version"] = "4" },
		"model":   func(b map[string]any) { b["model"] = "mack" },
		"suite":   func(b map[string]any) { b["suite"] = "other" },
		"status":  func(b map[string]any) { b["status"] = "passed" },
		"metrics": func(b map[string]any) { b["metrics"] = []any{} },
		"value": func(b map[string]any) {
			b["metrics"] = []any{evalMetric("rmse", 1, true), evalMetric("mae,none", math.MaxFloat64, false), evalMetric("bias", 5e-324, true)}
		},
		"baseline": func(b map[string]any) {
			b["metrics"] = []any{evalMetric("rmse", -0.5, true), evalMetric("mae,none", math.MaxFloat64, false), evalMetric("bias", 5e-324, true)}
		},
	} {
		other := map[string]any{}
		for k, v := range body {
			other[k] = v
		}
		change(other)
		if r := p.Refused(409, "eval_conflict", "POST", "/evals", controlplanetest.Trainer, other).Object(t); r["id"] != got["id"] {
			t.Errorf(`%s: %v; want r["id"] == %v`, name, r, got["id"])
		}
	}
	// Another tenant's run with that id is another run, and neither sees the other's.
	foreign := p.Want(200, "POST", "/evals", controlplanetest.Foreign, evalRun("9", "x", "passed")).Object(t)
	body["suite"] = "theirs"
	p.Want(200, "POST", "/evals", controlplanetest.Foreign, body)
	if got := listItems(t, p, "/evals", controlplanetest.Reader); len(got) != 1 || got[0]["suite"] != "regression/v1" {
		t.Fatalf(`list %v; want len(got) == 1 && got[0]["suite"] == "regression/v1"`, got)
	}
	if got := listItems(t, p, "/evals", controlplanetest.Foreign); len(got) != 2 || got[1]["id"] != foreign["id"] || got[1]["passRate"] != nil {
		t.Fatalf(`foreign list %v; want len(got) == 2 && got[1]["id"] == foreign["id"] && got[1]["passRate"] == nil`, got)
	}
	// All tenants see the platform's facts.
	p.SQL("update control_plane.evals set tenant = 'platform' where id = $1", foreign["id"])
	if got := listItems(t, p, "/evals", controlplanetest.Reader); len(got) != 2 || got[0]["tenant"] != "platform" {
		t.Fatalf(`list %v; want len(got) == 2 && got[0]["tenant"] == "platform"`, got)
	}
}

func TestEvalsRefuseBadInput(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	many := make([]map[string]any, governance.MaxMetrics+1)
	for i := range many {
		many[i] = evalMetric(fmt.Sprint(i), 1, true)
	}
	without := func(key string) map[string]any {
		b := evalRun("1", "s", "passed", evalMetric("a", 1, true))
		delete(b, key)
		return b
	}
	bare := func(key string) map[string]any {
		m := evalMetric("a", 1, true)
		delete(m, key)
		return evalRun("1", "s", "passed", m)
	}
	for name, c := range map[string]struct {
		body any
		loc  string
	}{
		"no model":          {without("model"), "[body model]"},
		"no version":        {without("version"), "[body version]"},
		"no suite":          {without("suite"), "[body suite]"},
		"no status":         {without("status"), "[body status]"},
		"no metrics":        {without("metrics"), "[body metrics]"},
		"running":           {evalRun("1", "s", "running"), "[body status]"},
		"colon in suite":    {evalRun("1", "a:b", "passed"), "[body suite]"},
		"version of spaces": {evalRun(" ", "s", "passed"), "[body version]"},
		"501 metrics":       {evalRun("1", "s", "passed", many...), "[body metrics]"},
		"twice":             {evalRun("1", "s", "passed", evalMetric("a", 1, true), evalMetric("a", 2, true)), "[body metrics 1 metric]"},
		"nameless":          {evalRun("1", "s", "passed", evalMetric("", 1, true)), "[body metrics 0 metric]"},
		"no value":          {bare("value"), "[body metrics 0 value]"},
		"no verdict":        {bare("passed"), "[body metrics 0 passed]"},
		"no metric":         {bare("metric"), "[body metrics 0 metric]"},
		"empty run id":      {map[string]any{"model": "a", "version": "1", "suite": "s", "status": "passed", "metrics": []any{}, "run_id": ""}, "[body run_id]"},
	} {
		r := p.Refused(422, "validation_error", "POST", "/evals", controlplanetest.Trainer, c.body).Object(t)
		if got := fmt.Sprint(r["errors"].([]any)[0].(map[string]any)["loc"]); got != c.loc {
			t.Errorf("%s: %v, want %s", name, r, c.loc)
		}
	}
	for _, value := range []string{"NaN", `"1"`, "1e999", "Infinity"} {
		p.Refused(422, "validation_error", "POST", "/evals", controlplanetest.Trainer,
			`{"model":"a","version":"1","suite":"s","status":"passed","metrics":[{"metric":"a","passed":true,"value":`+value+`}]}`)
	}
	p.Refused(403, "insufficient_scope", "POST", "/evals", controlplanetest.Reader, evalRun("1", "s", "passed"))
	for _, query := range []string{"latest=1", "limit=0", "limit=501", "cursor=x", "latest=true&latest=true"} {
		p.Refused(422, "validation_error", "GET", "/evals?"+query, controlplanetest.Reader, nil)
	}
	if got := p.Audits("eval.recorded"); len(got) != 0 {
		t.Fatalf("audit %v; want len(got) == 0", got)
	}
	if got := p.Want(200, "POST", "/evals", controlplanetest.Trainer, evalRun("1", "s", "passed", many[:governance.MaxMetrics]...)).Object(t); len(got["metrics"].([]any)) != governance.MaxMetrics || got["passRate"] != 1.0 {
		t.Fatalf(`record %v; want len(got["metrics"].([]any)) == governance.MaxMetrics && got["passRate"] == 1.0`, got["passRate"])
	}
}

// Only the latest run of each model, and pages without gaps.
func TestLatestEvals(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	post := func(model, suite, status string) {
		t.Helper()
		b := evalRun("1", suite, status)
		b["model"] = model
		p.Want(200, "POST", "/evals", controlplanetest.Trainer, b)
	}
	post("jpcp", "a", "failed")
	post("mack", "a", "passed")
	post("jpcp", "b", "error")
	post("llama-8b", "a", "passed") // hosted models are evaluated too
	post("jpcp", "a", "passed")
	if got := listItems(t, p, "/evals?latest=true", controlplanetest.Reader); len(got) != 3 || got[0]["model"] != "JPCP" || got[0]["status"] != "passed" || got[1]["model"] != "LLAMA-8B" || got[2]["model"] != "MACK" {
		t.Fatalf(`latest %v; want len(got) == 3 && got[0]["model"] == "JPCP" && got[0]["status"] == "passed" && got[1]["model"] == "LLAMA-8B" && got[2]["model"] == "MACK"`, got)
	}
	if got := listItems(t, p, "/evals?latest=true&model=JpCp", controlplanetest.Reader); len(got) != 1 || got[0]["suite"] != "a" {
		t.Fatalf(`latest %v; want len(got) == 1 && got[0]["suite"] == "a"`, got)
	}
	if got := listItems(t, p, "/evals?model=jpcp&latest=false", controlplanetest.Reader); len(got) != 3 || got[0]["status"] != "passed" || got[2]["status"] != "failed" {
		t.Fatalf(`list %v; want len(got) == 3 && got[0]["status"] == "passed" && got[2]["status"] == "failed"`, got)
	}
	for query, want := range map[string]int{"limit=2": 5, "limit=2&latest=true": 3} {
		seen, cursor := map[any]bool{}, ""
		for {
			page := p.Want(200, "GET", "/evals?"+query+"&cursor="+cursor, controlplanetest.Reader, nil).Object(t)
			for _, v := range page["items"].([]any) {
				seen[v.(map[string]any)["id"]] = true
			}
			if page["next_cursor"] == nil {
				break
			}
			cursor = page["next_cursor"].(string)
		}
		if len(seen) != want {
			t.Errorf("%s: %d runs; want len(seen) == %v", query, len(seen), want)
		}
	}
}

// Ten concurrent writers of one run make one record; of two that differ, one gets the conflict.
func TestConcurrentEvalWriters(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids, statuses := map[any]bool{}, map[int]int{}
	for i := range 10 {
		wg.Go(func() {
			body := evalRun("1", "s", "passed", evalMetric("a", float64(i%2), true))
			body["run_id"] = "r"
			r, err := p.Try("POST", "/evals", controlplanetest.Trainer, body)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			statuses[r.Status]++
			ids[r.Object(t)["id"]] = true
		})
	}
	wg.Wait()
	if len(ids) != 1 || statuses[200] != 5 || statuses[409] != 5 || len(p.Audits("eval.recorded")) != 1 {
		t.Fatalf(`%v, records %v; want len(ids) == 1 && statuses[200] == 5 && statuses[409] == 5 && len(p.Audits("eval.recorded")) == 1`, statuses, ids)
	}
}

func TestEvalAlerts(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.Want(200, "POST", "/evals", controlplanetest.Trainer, evalRun("1", "s", "failed", evalMetric("old", 1, false)))
	p.Want(200, "POST", "/evals", controlplanetest.Trainer, evalRun("2", "s", "failed", evalMetric("a", 1, false), evalMetric("b", 2, true), evalMetric("c", 3, false)))
	p.Want(200, "POST", "/evals", controlplanetest.Trainer, evalRun("2", "t", "failed", evalMetric("a", 1, false)))
	p.Want(200, "POST", "/evals", controlplanetest.Foreign, evalRun("3", "s", "passed", evalMetric("d", 1, false)))
	pool, err := postgres.Open(t.Context(), p.Database, store.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := governance.NewEvals(store.Open(pool), time.Now)
	firing := func(ctx context.Context) string {
		t.Helper()
		got, err := s.Firing(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, a := range got {
			if a.Source != "eval" || a.Severity != "warn" || a.Labels["model"] != "JPCP" || !strings.Contains(a.Title, a.Labels["metric"]) {
				t.Errorf(`alert %+v; want a.Source == "eval" && a.Severity == "warn" && a.Labels["model"] == "JPCP" && strings.Contains(a.Title, a.Labels["metric"])`, a)
			}
			out = append(out, a.Tenant+" "+a.Key)
		}
		return strings.Join(out, ", ")
	}
	if got := firing(t.Context()); got != "default JPCP:s:a, default JPCP:s:c, default JPCP:t:a, other JPCP:s:d" {
		t.Fatalf(`firing %s; want "default JPCP:s:a, default JPCP:s:c, default JPCP:t:a, other JPCP:s:d"`, got)
	}
	p.Want(200, "POST", "/evals", controlplanetest.Trainer, evalRun("3", "s", "passed", evalMetric("a", 1, true)))
	p.Want(200, "POST", "/evals", controlplanetest.Trainer, evalRun("3", "t", "error"))
	if got := firing(t.Context()); got != "other JPCP:s:d" {
		t.Fatalf(`firing %s; want "other JPCP:s:d"`, got)
	}
}

// The documentation's exchange.
func TestDocumentedEval(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../docs/governance.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```http\nPOST /evals\n(.*?)\n\n200\n(.*?)```").FindSubmatch(text)
	if found == nil {
		t.Fatal("no exchange")
	}
	var want map[string]any
	if err := json.Unmarshal(found[2], &want); err != nil {
		t.Fatal(err)
	}
	got := controlplanetest.Start(t).Want(200, "POST", "/evals", controlplanetest.Operator, string(found[1])).Object(t)
	for key, v := range want {
		if !reflect.DeepEqual(got[key], v) {
			t.Errorf("%s is %v, want %v", key, got[key], v)
		}
	}
}
