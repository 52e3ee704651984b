package inference_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

type driftStatus struct {
	Model, Alias, Version, Status, Overall, Reason string
	DecidedBy                                      string   `json:"decided_by"`
	ZScore                                         *float64 `json:"z_score"`
	ZSE                                            *float64 `json:"z_se"`
	LiveMean                                       *float64 `json:"live_mean"`
	LiveStd                                        *float64 `json:"live_std"`
	BaselineMean                                   *float64 `json:"baseline_mean"`
	Snapshots                                      int      `json:"n_snapshots"`
	Baseline                                       int      `json:"n_baseline"`
	Measures                                       map[string]struct{ Status string }
	Recent                                         []float64
	SetAt                                          string `json:"baseline_set_at"`
}

func (i *instance) drift(query string) []driftStatus {
	i.T.Helper()
	s, body := i.Get("/drift/status" + query)
	if s != 200 {
		i.T.Fatalf("drift status: %d %s; want s == 200", s, body)
	}
	var out []driftStatus
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		i.T.Fatalf("%s: %v", body, err)
	}
	return out
}

// predicts sends x from low, one apart, and waits until n snapshots are written.
func (i *instance) predicts(low, count, n int) {
	i.T.Helper()
	for x := range count {
		i.OK("/predict/tagged", fmt.Sprintf(`{"features": {"x": %d}}`, low+x), nil)
	}
	testenv.Eventually(i.T, 10*time.Second, func() error {
		if got := i.drift("?model=tagged&window=5000")[0].Snapshots; got != n {
			return fmt.Errorf("%d snapshots written, want %d", got, n)
		}
		return nil
	})
}

func TestDriftOfPredictions(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 0), nil))
	i := start(t, reg, slow)

	if d := i.drift("")[0]; d.Status != "NO_BASELINE" || d.Snapshots != 0 || d.Model != "TAGGED" || d.Version != "1" || d.LiveMean != nil {
		t.Errorf(`at first: %+v; want d.Status == "NO_BASELINE" && d.Snapshots == 0 && d.Model == "TAGGED" && d.Version == "1" && d.LiveMean == nil`, d)
	}
	i.predicts(1, 5, 5)
	if s, body := i.Post("/drift/tagged/baseline", nil); s != 409 || inferencetest.ProblemOf(t, s, body).Code != "not_enough_snapshots" {
		t.Errorf(`a baseline of five: %d %s; want s == 409 && inferencetest.ProblemOf(t, s, body).Code == "not_enough_snapshots"`, s, body)
	}
	i.predicts(6, 95, 100)
	var baseline struct {
		Model, Alias string
		N            int
		Mean, Std    float64
	}
	i.OK("/drift/Tagged/baseline", `{"alias": "production"}`, &baseline)
	if baseline.N != 100 || baseline.Mean != 50.5 || baseline.Std < 28.8 || baseline.Std > 28.9 || baseline.Alias != "Production" {
		t.Errorf(`baseline %+v; want baseline.N == 100 && baseline.Mean == 50.5 && baseline.Std >= 28.8 && baseline.Std <= 28.9 && baseline.Alias == "Production"`, baseline)
	}
	if d := i.drift("?alias=Production")[0]; d.Status != "OK" || d.Overall != "OK" || *d.ZScore != 0 || d.Baseline != 100 || d.SetAt == "" ||
		len(d.Recent) != 24 || d.Recent[23] != 100 || len(d.Measures) != 4 {
		t.Errorf(`against itself: %+v; want d.Status == "OK" && d.Overall == "OK" && *d.ZScore == 0 && d.Baseline == 100 && d.SetAt != "" && len(d.Recent) == 24 && d.Recent[23] == 100 && len(d.Measures) == 4`, d)
	}
	var reset struct{ Deleted int }
	i.OK("/drift/tagged/reset", nil, &reset)
	if reset.Deleted != 100 {
		t.Errorf("reset %+v; want reset.Deleted == 100", reset)
	}
	i.predicts(500, 9, 9)
	if d := i.drift("")[0]; d.Status != "INSUFFICIENT" || d.Baseline != 100 {
		t.Errorf(`nine predictions: %+v; want d.Status == "INSUFFICIENT" && d.Baseline == 100`, d)
	}
	i.predicts(509, 21, 30)
	if d := i.drift("?z_mode=standard_error&window=20")[0]; d.Status != "CRITICAL" || d.Snapshots != 20 || *d.ZScore != *d.ZSE || *d.ZScore < 10 {
		t.Errorf(`moved far: %+v; want d.Status == "CRITICAL" && d.Snapshots == 20 && *d.ZScore == *d.ZSE && *d.ZScore >= 10`, d)
	}
	for _, bad := range []string{"?window=5", "?window=x", "?z_mode=huh", "?alias=Champion", "?limit=0", "?cursor=x"} {
		if s, body := i.Get("/drift/status" + bad); s != 422 {
			t.Errorf("%s: %d %s; want s == 422", bad, s, body)
		}
	}
	for path, status := range map[string]int{"/drift/nosuch/reset": 404, "/drift/nosuch/baseline": 404} {
		if s, body := i.Post(path, nil); s != status {
			t.Errorf("%s: %d %s; want s == %v", path, s, body, status)
		}
	}
	if s, body := i.Post("/drift/tagged/reset", `{"aliass": "Production"}`); s != 422 {
		t.Errorf("an unknown field: %d %s; want s == 422", s, body)
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		for _, e := range i.events("drift", "status_changed") {
			if e["model"] == "TAGGED" && e["alias"] == "Production" && e["kind"] == "prediction" && e["status"] == "CRITICAL" {
				return nil
			}
		}
		return fmt.Errorf("no drift.status_changed to CRITICAL: %v", i.events("drift", "status_changed"))
	})
	if n := len(i.events("drift", "baseline_set")); n != 1 {
		t.Errorf("%d events baseline_set; want 1", n)
	}
	if n := len(i.events("drift", "reset")); n != 1 {
		t.Errorf("%d events reset; want 1", n)
	}
	var actions []string
	for _, f := range i.events("audit", "recorded") {
		actions = append(actions, fmt.Sprint(f["action"], " ", f["target"], " by ", f["actor"]))
	}
	if got := strings.Join(actions, "; "); got != "drift.baseline_set model:TAGGED@Production by anonymous; drift.reset model:TAGGED@Production by anonymous" {
		t.Errorf(`audit facts: %s; want "drift.baseline_set model:TAGGED@Production by anonymous; drift.reset model:TAGGED@Production by anonymous"`, got)
	}
}

// A check or benchmark must not become the traffic that drift is judged by.
func TestProbesLeaveNoSnapshots(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 0), nil))
	i := start(t, reg, slow)
	probe := func(path, body string, want int) {
		t.Helper()
		if s, _, out := i.Do("POST", path, body, "X-Platform-Probe", "1"); s != want {
			t.Errorf("%s: got %d %s, want %d", path, s, out, want)
		}
	}
	for range 20 {
		probe("/predict/tagged", `{"features": {"x": 7}}`, 200)
	}
	probe("/predict/tagged", `{"features": {"y": 7}}`, 500)
	probe("/predict/tagged", `{"features"`, 422)
	probe("/predict/nosuch", `{"features": {"x": 7}}`, 404)
	if s, _, out := i.Do("POST", "/predict/tagged", `{"features": {"x": 1}}`, "X-Platform-Probe", "0"); s != 200 {
		t.Errorf("not a probe: got %d %s, want 200", s, out)
	}
	i.predicts(2, 2, 3) // rows are written in order, so any rows of the probes would be there already
	if d := i.drift("?model=tagged")[0]; d.Snapshots != 3 || fmt.Sprint(d.Recent) != "[1 2 3]" {
		t.Errorf("got %d snapshots %v, want [1 2 3]", d.Snapshots, d.Recent)
	}
	_, metrics := i.Get("/metrics")
	for _, want := range []string{
		`predict_probes_total{alias="Production",model="TAGGED",status="success"} 20`,
		`predict_probes_total{alias="Production",model="TAGGED",status="mismatch"} 1`,
		`predict_probes_total{alias="Production",model="TAGGED",status="invalid"} 1`,
		`predict_probes_total{alias="",model="other",status="not_found"} 1`,
		`predict_requests_total{alias="Production",model="TAGGED",status="success"} 3`,
		`predict_requests_total{alias="",model="other",status="not_found"} 0`,
		`predict_seconds_count{alias="Production",model="TAGGED"} 3`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// The level over all measures is told when it changes, also where z stays well.
func TestOverallLevelIsTold(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 0), nil))
	i := start(t, reg, slow)
	i.predicts(1, 100, 100)
	i.OK("/drift/tagged/baseline", nil, nil)
	i.OK("/drift/tagged/reset", nil, nil)
	i.predicts(45, 12, 12) // the middle of 1 to 100
	i.predicts(45, 12, 24)
	i.predicts(45, 12, 36)
	if d := i.drift("")[0]; d.Status != "OK" || *d.ZScore > 0.1 || d.Overall != "CRITICAL" || d.DecidedBy != "psi" {
		t.Errorf("got status %s, z %v, overall %s by %q; want OK, below 0.1, CRITICAL by psi", d.Status, *d.ZScore, d.Overall, d.DecidedBy)
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		for _, e := range i.events("drift", "status_changed") {
			if e["status"] == "OK" && e["overall"] == "CRITICAL" && e["decided_by"] == "psi" {
				return nil
			}
		}
		return fmt.Errorf("no drift.status_changed with overall CRITICAL: %v", i.events("drift", "status_changed"))
	})
}

func TestPipeline(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("jpcp", "Production", reg.Register("jpcp", fixturetest.Linear(t, "jpcp", 0,
		fixturetest.Column{Name: "embedding", Kind: "vector", Length: 384, Weight: 1}, fixturetest.Column{Name: "num_nodes", Kind: "number", Weight: 10}), nil))
	i := start(t, reg, slow)
	embedding := make([]float64, 384)
	embedding[0], embedding[383] = 3, 4
	var p inferencetest.Prediction
	i.OK("/infer-pipeline/infer", map[string]any{"embedding": embedding, "num_nodes": 2, "user_id": "alice", "job_id": "job-1"}, &p)
	if p.Prediction != 27.0 || p.JobID != "job-1" || p.ModelName != "JPCP" {
		t.Errorf(`%+v; want p.Prediction == 27.0 && p.JobID == "job-1" && p.ModelName == "JPCP"`, p)
	}
	i.OK("/infer-pipeline/infer", map[string]any{"features": map[string]any{"embedding": embedding, "num_nodes": 1}}, &p)
	if p.Prediction != 17.0 {
		t.Errorf("%+v; want p.Prediction == 17.0", p)
	}
	// The row is recorded as the vector's norm, mean and deviation.
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, i.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	testenv.Eventually(t, 10*time.Second, func() error {
		var source, job string
		var norm, mean, std, predicted float64
		err := conn.QueryRow(ctx, "select source, job_id, norm, mean, std, prediction from inference.snapshots where job_id is not null").Scan(&source, &job, &norm, &mean, &std, &predicted)
		if err != nil {
			return err
		}
		if source != "pipeline" || job != "job-1" || norm != 5 || mean != 7.0/384 || predicted != 27 {
			t.Errorf(`snapshot: %s %s %v %v %v %v; want source == "pipeline" && job == "job-1" && norm == 5 && mean == 7.0 / 384 && predicted == 27`, source, job, norm, mean, std, predicted)
		}
		return nil
	})
}
