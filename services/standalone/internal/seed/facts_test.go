package seed

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/clients/go/controlplane"
)

const servedDigest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// serveRecords plays the routes of the records; the caller holds the lock.
func (s *services) serveRecords(w http.ResponseWriter, r *http.Request) {
	call := r.Method + " " + r.URL.Path
	answers := map[string]string{
		"GET /models/JPCP/meta":     `{"name":"JPCP","project":"samples","lifecycle":[{"name":"Production","metric":"rmse","threshold":50,"direction":"lower"}]}`,
		"GET /runs":                 `{"items":[{"flow_run_id":"f8","model_version":"8"},{"flow_run_id":"f7","model_version":"7","dataset_name":"D","state_type":"COMPLETED","started_at":"2026-01-02T03:00:00Z","ended_at":"2026-01-02T03:30:00Z"}]}`,
		"GET /promotions/JPCP/gate": `{"eval":{"metrics":{"rmse":17,"baseline_rmse":101,"val_rmse":18,"skill":0.8}}}`,
		"GET /costs":                `{"items":[]}`, "GET /evals": `{"items":[]}`, "GET /compliance": `{"items":[]}`, "GET /budgets": `{"items":[]}`,
	}
	maps.Copy(answers, s.known)
	if answer, ok := answers[call]; ok {
		_, _ = io.WriteString(w, answer)
		return
	}
	if r.Method == http.MethodGet || call == s.refuse {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"status":422,"code":"validation_error","detail":"refused"}`)
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.written[call] += string(body)
	_, _ = io.WriteString(w, `{}`)
}

// records are the bodies written, decoded.
func (s *services) records(t *testing.T) map[string]any {
	t.Helper()
	out := map[string]any{}
	for call, body := range s.written {
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatalf("%s was written more than once, or is no JSON: %q (%v)", call, body, err)
		}
		out[call] = v
	}
	return out
}

func TestRecordsWhatTheServicesKnowOfTheServedVersion(t *testing.T) {
	t.Parallel()
	s, o := setupServices(t)
	s.fate["seed:JPCP:1"] = "COMPLETED"
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	type object = map[string]any
	want := object{
		"PUT /jobs/mock/f7": object{
			"cluster": "local", "partition": "inline", "model": "JPCP", "dataset": "D", "state": "COMPLETED", "exitCode": 0.0,
			"resources": object{"nodes": 1.0, "gpus": 0.0, "cpus": 1.0}, "flowRunId": "f7", "trackerRunId": "t7",
			"timing": object{"submit": "2026-01-02T03:00:00Z", "start": "2026-01-02T03:00:00Z", "end": "2026-01-02T03:30:00Z"},
		},
		// No gpu_hours: the control plane's mock figure, which it marks synthetic.
		"POST /costs": object{"model": "JPCP", "version": "7", "scheduler": "mock", "job_id": "f7", "run_id": "t7", "cpu_hours": 0.5},
		"POST /evals": object{
			"model": "JPCP", "version": "7", "suite": "held-out test", "status": "passed", "run_id": "seed:JPCP:7",
			"metrics": []any{object{"metric": "rmse", "value": 17.0, "baseline": 101.0, "passed": true}},
		},
		"PUT /compliance/JPCP/7": object{
			"riskClass": "minimal", "technicalFilePath": "models/t/JPCP/README.md", "provenanceHash": servedDigest,
		},
		"PUT /budgets/samples": object{"cost_budget": 50.0},
	}
	if diff := cmp.Diff(want, s.records(t)); diff != "" {
		t.Fatalf("records, -want +got:\n%s", diff)
	}
	clear(s.written)
	if err := Run(t.Context(), o); err != nil || len(s.written) != 0 {
		t.Fatalf("a second start wrote %v (%v), want nothing", s.records(t), err)
	}
}

// A data directory from before the records has its models, but no records.
func TestAPlatformFromBeforeGetsItsRecordsWithoutTrainingAgain(t *testing.T) {
	t.Parallel()
	s, o := setupServices(t)
	if err := os.WriteFile(o.StateFile, []byte(`{"done":{"JPCP":"3"},"attempts":{"JPCP":1}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if Complete(o.StateFile, o.Models) || !Trained(o.StateFile, o.Models) {
		t.Fatalf("before: complete %v, trained %v; want false, true", Complete(o.StateFile, o.Models), Trained(o.StateFile, o.Models))
	}
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if len(s.keys) != 0 {
		t.Errorf("trained again under the keys %q, want none", s.keys)
	}
	// Version 7 is served now, so the records describe it.
	if _, ok := s.written["PUT /compliance/JPCP/7"]; !ok || len(s.written) != 5 {
		t.Errorf("written: %q, want all five, of version 7", slices.Sorted(maps.Keys(s.written)))
	}
	if !Complete(o.StateFile, o.Models) {
		t.Error("not remembered, so every start would do it again")
	}
}

func TestRecordsOfPeopleStay(t *testing.T) {
	t.Parallel()
	s, o := setupServices(t)
	s.fate["seed:JPCP:1"] = "COMPLETED"
	s.known = map[string]string{
		"GET /costs":      `{"items":[{"version":"7"}]}`,
		"GET /evals":      `{"items":[{"version":"7","status":"failed"}]}`,
		"GET /compliance": `{"items":[{"version":"7","riskClass":"high"}]}`,
		"GET /budgets":    `{"items":[{"project":"samples"}]}`,
	}
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(s.written)); !slices.Equal(got, []string{"PUT /jobs/mock/f7"}) {
		t.Fatalf("written: %q, want only the job", got)
	}
}

// A version that was trained elsewhere has no job and no cost here.
func TestWithoutARunNeitherJobNorCostIsMadeUp(t *testing.T) {
	t.Parallel()
	s, o := setupServices(t)
	s.fate["seed:JPCP:1"] = "COMPLETED"
	s.known["GET /runs"] = `{"items":[]}`
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for call := range s.written {
		if strings.Contains(call, "/jobs/") || strings.Contains(call, "/costs") {
			t.Errorf("%s was written of a version that no run here trained", call)
		}
	}
}

func TestARefusedRecordIsReportedAndTriedAgainAtTheNextStart(t *testing.T) {
	t.Parallel()
	s, o := setupServices(t)
	s.fate["seed:JPCP:1"], s.refuse = "COMPLETED", "PUT /compliance/JPCP/7"
	err := Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "JPCP: trained and promoted") || !strings.Contains(err.Error(), "record the compliance") {
		t.Fatalf("error %v, want one that names the model and the record", err)
	}
	if Complete(o.StateFile, o.Models) || !Trained(o.StateFile, o.Models) {
		t.Fatal("the records are remembered as written, or the training is not")
	}
	s.refuse = ""
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if len(s.keys) != 1 || !Complete(o.StateFile, o.Models) {
		t.Fatalf("dispatched under %q, complete %v; want one dispatch, true", s.keys, Complete(o.StateFile, o.Models))
	}
}

func TestJudgesMetricsByBaselineAndThreshold(t *testing.T) {
	t.Parallel()
	rung := &controlplane.Rung{Metric: "accuracy", Threshold: 0.7, Direction: "higher"}
	for _, tt := range []struct {
		name    string
		metrics map[string]float64
		want    string
	}{
		{"beats both baselines; the harder one is shown", map[string]float64{"accuracy": 0.73, "baseline_accuracy": 0.56, "baseline_running_accuracy": 0.64}, "accuracy 0.64 true"},
		{"beats only the easier baseline", map[string]float64{"f1": 0.6, "baseline_f1": 0.56, "baseline_running_f1": 0.64}, "f1 0.64 false"},
		{"equals its baseline", map[string]float64{"rmse": 5, "baseline_rmse": 5}, "rmse 5 false"},
		{"lower is better", map[string]float64{"log_loss": 0.3, "baseline_log_loss": 0.7}, "log_loss 0.7 true"},
		{"beats its baseline, but not the rung", map[string]float64{"accuracy": 0.69, "baseline_accuracy": 0.5}, "accuracy 0.5 false"},
		{"reaches the rung exactly, without a baseline", map[string]float64{"accuracy": 0.7}, "accuracy null true"},
		{"nothing to compare with", map[string]float64{"f1": 0.9, "val_accuracy": 0.9, "skill": 1}, ""},
	} {
		var got []string
		for _, m := range judgeMetrics(tt.metrics, rung) {
			base, _ := json.Marshal(m.Baseline)
			passed, _ := json.Marshal(m.Passed)
			got = append(got, m.Metric+" "+string(base)+" "+string(passed))
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
