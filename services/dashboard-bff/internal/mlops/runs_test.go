package mlops_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/viewtest"
)

// trackerRun is one that the recorded tracker knows.
const trackerRun = "77c786e47e864d6ba071a5ae0a87012f"

// runOf returns a completed run of JPCP as the control plane lists it, with other members where they are given.
func runOf(id, version, more string) string {
	if version != "null" {
		version = `"` + version + `"`
	}
	return fmt.Sprintf(`{"flow_run_id":%q,"model_id":"JPCP","dataset_name":"JobsPower","origin":"modelrepo","state_type":"COMPLETED","commit_sha":"c0ffee",
		"approval_id":null,"model_version":%s,"started_at":"2026-11-22T22:00:00Z","ended_at":"2026-11-22T22:01:30Z","is_dummy":false,
		"requested_by":"bob","requesters":["alice","bob"]%s}`, id, version, more)
}

// withRuns makes the control plane list runs, and the recorded costs of JPCP as those of the tenant.
func (f *fixture) withRuns(runs ...string) *fixture {
	f.ControlPlane.Answer("/runs", http.StatusOK, `{"items":[`+strings.Join(runs, ",")+`],"next_cursor":null}`)
	f.ControlPlane.Answer("/costs", http.StatusOK, `{"items":[
		{"model":"JPCP","version":"1","cost_usd":51.85,"gpu_hours":20.74,"synthetic":true},
		{"model":"JPCP","version":"1","cost_usd":7.5,"gpu_hours":3,"synthetic":false},
		{"model":"JPCP","version":"1","cost_usd":2.5,"gpu_hours":1,"synthetic":false},
		{"model":"JPCP","version":"2","cost_usd":51.85,"gpu_hours":20.74,"synthetic":true}],"next_cursor":null}`)
	return f
}

func (f *fixture) runs(t testing.TB) viewtest.Answer {
	t.Helper()
	return viewtest.Get(t, f.views.Runs, "/api/v1/runs", "/api/v1/runs")
}

func TestRunsCarryMetricChangeCauseAndCost(t *testing.T) {
	t.Parallel()
	f := setup(t).withRuns(
		runOf("r3", "3", `,"metrics":{"rmse":12},"tracker_run_id":"t3"`),
		runOf("r2", "2", `,"metrics":{"rmse":9.5},"approval_id":"019ab3f7-0000-7000-8000-000000000001"`),
		runOf("r1", "1", `,"metrics":{"rmse":10}`), // in Production
	)
	got := f.runs(t)
	got.WantPartial()
	got.Want(map[string]any{
		"runs.truncated": false, "runs.items.0.flow_run_id": "r3", "runs.items.0.duration_s": 90, "runs.items.0.cause": "change",
		"runs.items.0.requester": "alice", "runs.items.0.approved_by": nil, "runs.items.1.approved_by": "bob",
		"runs.items.0.metric": map[string]any{"state": "measured", "name": "rmse", "better": "lower", "value": 12},
		"runs.items.0.change": map[string]any{"state": "measured", "version": "1", "from": 10, "difference": 2, "verdict": "worse"},
		"runs.items.1.change": map[string]any{"state": "measured", "version": "1", "from": 10, "difference": -0.5, "verdict": "better"},
		"runs.items.2.change": map[string]any{"state": "not_measured", "version": "1", "reason": "this is the version in Production"},
		"runs.items.0.cost":   map[string]any{"state": "not_measured", "reason": "no cost was recorded for version 3"},
		"runs.items.1.cost":   map[string]any{"state": "measured", "usd": 51.85, "gpu_hours": 20.74, "synthetic": true},
		"runs.items.2.cost":   map[string]any{"state": "measured", "usd": 10, "gpu_hours": 4, "synthetic": false},
	})
}

func TestRunMetricWhereMoreIsBetter(t *testing.T) {
	t.Parallel()
	f := setup(t).withRuns(runOf("r2", "2", `,"metrics":{"rmse":9.5}`), runOf("r1", "1", `,"metrics":{"rmse":10}`))
	f.ControlPlane.Edit("/promotion-policies", func(body string) string { return strings.Replace(body, `"lte"`, `"gte"`, 1) })
	f.runs(t).Want(map[string]any{"runs.items.0.metric.better": "higher", "runs.items.0.change.verdict": "worse"})
}

func TestRunChangeIsNotMeasuredWhereNothingIsComparable(t *testing.T) {
	t.Parallel()
	inProduction := runOf("r1", "1", `,"metrics":{"rmse":10}`)
	for name, c := range map[string]struct {
		runs           []string
		metric, change string // reasons
	}{
		"no version": {[]string{runOf("r2", "null", "")}, "the run produced no version", "the run produced no version"},
		"it runs": {
			[]string{strings.Replace(runOf("r2", "null", ""), `"2026-11-22T22:01:30Z"`, "null", 1)}, "the run has not ended", "the run has not ended",
		},
		"no such metric": {[]string{runOf("r2", "2", `,"metrics":{"mae":1}`)}, "the trainer reported no rmse of version 2", "the trainer reported no rmse of version 2"},
		"an older control plane": {
			[]string{runOf("r2", "2", "")}, "the trainer reported no rmse of version 2", "the trainer reported no rmse of version 2",
		},
		"Production from elsewhere": {[]string{runOf("r2", "2", `,"metrics":{"rmse":1}`)}, "", "the run that produced Production v1 is not known here"},
		"another data set": {
			[]string{strings.Replace(runOf("r2", "2", `,"metrics":{"rmse":1}`), "JobsPower", "Others", 1), inProduction}, "", "Production v1 was trained on another data set, JobsPower",
		},
		"a dummy": {
			[]string{strings.Replace(runOf("r2", "2", `,"metrics":{"rmse":1}`), `"is_dummy":false`, `"is_dummy":true`, 1), inProduction}, "", "one of the two was a dummy run, on generated rows",
		},
		"Production without the metric": {
			[]string{runOf("r2", "2", `,"metrics":{"rmse":1}`), runOf("r1", "1", `,"metrics":{}`)}, "", "the trainer reported no rmse of Production v1",
		},
		"a model without a policy": {
			[]string{strings.Replace(runOf("r2", "2", `,"metrics":{"rmse":1}`), "JPCP", "EXTERNAL-MODEL", 1)},
			"no promotion policy names the model's key metric", "no promotion policy names the model's key metric",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t).withRuns(c.runs...)
			want := map[string]any{"runs.items.0.metric.reason": c.metric, "runs.items.0.change.state": "not_measured", "runs.items.0.change.reason": c.change}
			if c.metric == "" {
				want["runs.items.0.metric.reason"] = nil
			}
			f.runs(t).Want(want)
		})
	}
}

func TestRunOfAModelWithoutProductionIsComparedWithNothing(t *testing.T) {
	t.Parallel()
	f := setup(t).withRuns(runOf("r2", "2", `,"metrics":{"rmse":1}`), runOf("r1", "1", `,"metrics":{"rmse":10}`))
	f.Tracker.Edit("/api/2.0/mlflow/registered-models/search", func(body string) string { return strings.ReplaceAll(body, `"Production"`, `"Other"`) })
	f.runs(t).Want(map[string]any{"runs.items.0.change": map[string]any{"state": "not_measured", "reason": "the model has no version in Production"}})
}

func TestRunCauseFollowsItsOrigin(t *testing.T) {
	t.Parallel()
	for origin, cause := range map[string]string{"ci": "change", "modelrepo": "change", "drift": "drift", "api": "manual", "new": "other"} {
		f := setup(t).withRuns(strings.Replace(runOf("r", "null", ""), "modelrepo", origin, 1))
		f.runs(t).Want(map[string]any{"runs.items.0.cause": cause})
	}
	f := setup(t).withRuns(strings.Replace(runOf("r", "null", ""), `"is_dummy":false`, `"is_dummy":true`, 1))
	f.runs(t).Want(map[string]any{"runs.items.0.cause": "dummy", "runs.items.0.is_dummy": true})
}

func TestRunsWithoutASource(t *testing.T) {
	t.Parallel()
	const broken = `{"code":"internal","status":500,"title":"x","detail":"x"}`
	two := []string{runOf("r2", "2", `,"metrics":{"rmse":9.5}`), runOf("r1", "1", `,"metrics":{"rmse":10}`)}
	t.Run("runs", func(t *testing.T) {
		f := setup(t).withRuns(two...)
		f.ControlPlane.Answer("/runs", http.StatusInternalServerError, broken)
		got := f.runs(t)
		got.WantPartial("runs")
		got.Want(map[string]any{"runs": nil})
	})
	t.Run("policies", func(t *testing.T) {
		f := setup(t).withRuns(two...)
		f.ControlPlane.Answer("/promotion-policies", http.StatusInternalServerError, broken)
		got := f.runs(t)
		got.WantPartial("promotion")
		got.Want(map[string]any{
			"runs.items.0.metric": map[string]any{"state": "failed", "reason": "the promotion policies gave no answer"}, "runs.items.0.change.state": "failed", "runs.items.1.cost.usd": 10,
		})
	})
	t.Run("tracker", func(t *testing.T) {
		f := setup(t).withRuns(two...)
		f.Tracker.Break()
		got := f.runs(t)
		got.WantPartial("tracker")
		got.Want(map[string]any{"runs.items.0.metric.value": 9.5, "runs.items.0.change": map[string]any{"state": "failed", "reason": "the tracker gave no answer about Production"}})
	})
	t.Run("cost", func(t *testing.T) {
		f := setup(t).withRuns(two...)
		f.ControlPlane.Answer("/costs", http.StatusInternalServerError, broken)
		got := f.runs(t)
		got.WantPartial("cost")
		got.Want(map[string]any{"runs.items.1.cost": map[string]any{"state": "failed", "reason": "the cost records gave no answer"}, "runs.items.0.change.verdict": "better"})
	})
}

// manyRuns lists so many runs, page by page.
func (f *fixture) manyRuns(n int) *fixture {
	f.withRuns()
	f.ControlPlane.Handle("/runs", func(w http.ResponseWriter, r *http.Request) {
		at := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &at)
		page := make([]string, 0, 500)
		for ; len(page) < 500 && at < n; at++ {
			page = append(page, runOf(fmt.Sprint("r", at), fmt.Sprint(n-at), `,"metrics":{"rmse":10}`))
		}
		next := "null"
		if at < n {
			next = fmt.Sprintf("%q", fmt.Sprint(at))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"items":[%s],"next_cursor":%s}`, strings.Join(page, ","), next)
	})
	return f
}

func TestRunsAreTheNewestFiveThousand(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]struct {
		rows      int
		truncated bool
	}{5000: {5000, false}, 5001: {5000, true}} {
		got := setupWithin(t, time.Minute).manyRuns(n).runs(t)
		rows, _ := got.At("runs.items").([]any)
		if len(rows) != want.rows || got.At("runs.truncated") != want.truncated {
			t.Errorf("of %d runs %d are listed, truncated %v; want %d, %v", n, len(rows), got.At("runs.truncated"), want.rows, want.truncated)
		}
	}
}

func (f *fixture) run(t *testing.T, id string) viewtest.Answer {
	t.Helper()
	return viewtest.Do(t, viewtest.Request{Route: "/api/v1/runs/:id", Path: "/api/v1/runs/" + id, Handler: f.views.Run})
}

func TestRunShowsWhatTheTrackerRecorded(t *testing.T) {
	t.Parallel()
	f := setup(t).withRuns(runOf("r1", "1", `,"metrics":{"rmse":10},"tracker_run_id":"`+trackerRun+`"`), runOf("r0", "null", ""))
	got := f.run(t, "r1")
	got.WantPartial()
	got.Want(map[string]any{"run.flow_run_id": "r1", "record.state": "measured"})
	if params, _ := got.At("record.params").(map[string]any); len(params) == 0 {
		t.Errorf("record.params is %v, want those of the recorded run", got.At("record.params"))
	}
	f.run(t, "r0").Want(map[string]any{"record": map[string]any{"state": "not_measured", "reason": "the run has recorded nothing at the tracker"}})
	f.run(t, "nosuch").WantProblem(404, "run_not_found")
}

func TestRunWithoutTheTrackersAnswer(t *testing.T) {
	t.Parallel()
	f := setup(t).withRuns(runOf("r1", "1", `,"tracker_run_id":"gone"`))
	f.Tracker.Answer("/api/2.0/mlflow/runs/get", http.StatusNotFound, `{"error_code":"RESOURCE_DOES_NOT_EXIST","message":"no such run"}`)
	f.run(t, "r1").Want(map[string]any{"record": map[string]any{"state": "not_measured", "reason": "the tracker no longer has the run"}})

	f = setup(t).withRuns(runOf("r1", "1", `,"tracker_run_id":"t1"`))
	f.Tracker.Break()
	got := f.run(t, "r1")
	got.WantPartial("tracker")
	got.Want(map[string]any{"run.flow_run_id": "r1", "record": map[string]any{"state": "failed", "reason": "the tracker gave no answer"}})

	f = setup(t)
	f.ControlPlane.Break()
	got = f.run(t, "r1")
	got.WantPartial("cost", "promotion", "runs")
	got.Want(map[string]any{"run": nil, "record": nil})
}
