package training

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/trainer/internal/controlplane"
)

const samples = "../../../../deploy/modelrepo"

// remote simulates a tracker and a control plane that fail on command; the real ones cannot be made to fail between two
// given calls. It records the requests.
type remote struct {
	mu        sync.Mutex
	calls     map[string]int
	run       map[string]any // of runs/create
	params    map[string]string
	tags      map[string]string
	metrics   map[string]float64
	artifacts map[string][]byte
	status    string
	version   map[string]any // of model-versions/create
	vtags     map[string]string
	asked     map[string]any // of POST /versions
	auth      string
	tag       string // runs/search finds the run by this tag alone; empty: by any
	// before may answer a call instead, by a status other than 0; n counts the calls of that path from 1.
	before func(path string, n int) int
	// refuse may answer a call with a problem document instead.
	refuse func(path string, n int) (status int, problem object)
	// after is called once a call has taken effect, and may lose the answer the same way.
	after func(path string, n int) int
}

func newRemote(t *testing.T) (*remote, *Trainer) {
	t.Helper()
	r := &remote{
		calls: map[string]int{}, params: map[string]string{}, tags: map[string]string{}, metrics: map[string]float64{},
		artifacts: map[string][]byte{}, vtags: map[string]string{},
	}
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)
	control, err := controlplane.New(srv.URL, "a-token-of-the-trainer")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New(Config{
		Tracker: tracker.New(srv.URL, service.HTTPClient(tracker.DefaultTimeout)), Control: control, ModelRepoDir: samples,
		CacheDir: t.TempDir(), RetryDelays: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}, GPUCostPerHour: 2.5,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, tr
}

// findBy lets searches find the run by this tag alone: the one of another process has another training_id.
func (r *remote) findBy(tag string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tag = tag
}

func (r *remote) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	p := strings.TrimPrefix(req.URL.Path, "/api/2.0/mlflow/")
	if i := strings.Index(p, "/artifacts/"); i >= 0 {
		p = "artifacts"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[p]++
	if r.before != nil {
		if status := r.before(p, r.calls[p]); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	if r.refuse != nil {
		if status, problem := r.refuse(p, r.calls[p]); status != 0 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(problem)
			return
		}
	}
	answer := r.answer(p, req, body)
	if r.after != nil {
		if status := r.after(p, r.calls[p]); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

type object = map[string]any

func (r *remote) answer(p string, req *http.Request, body []byte) any {
	in := object{}
	if p != "artifacts" {
		_ = json.Unmarshal(body, &in)
	}
	pairs := func(from any, into map[string]string) {
		list, _ := from.([]any)
		for _, e := range list {
			into[e.(object)["key"].(string)] = e.(object)["value"].(string)
		}
	}
	status := "RUNNING"
	if r.status != "" {
		status = r.status
	}
	var tags []any
	for _, name := range []string{"failure_reason", "training_id", "hpc_scheduler", "hpc_job_id"} {
		if v := r.tags[name]; v != "" {
			tags = append(tags, object{"key": name, "value": v})
		}
	}
	run := object{"run": object{"info": object{"run_id": "r1", "experiment_id": "7", "status": status, "artifact_uri": "mlflow-artifacts:/7/r1/artifacts"}, "data": object{"tags": tags}}}
	switch p {
	case "experiments/get-by-name", "experiments/create":
		return object{"experiment_id": "7", "experiment": object{"experiment_id": "7", "name": "x"}}
	case "runs/create":
		r.run = in
		pairs(in["tags"], r.tags)
		return run
	case "runs/search":
		if filter, _ := in["filter"].(string); r.run == nil || !strings.Contains(filter, r.tag) {
			return object{}
		}
		return object{"runs": []any{run["run"]}}
	case "runs/get":
		return run
	case "runs/log-batch":
		pairs(in["params"], r.params)
		pairs(in["tags"], r.tags)
		list, _ := in["metrics"].([]any)
		for _, m := range list {
			r.metrics[m.(object)["key"].(string)] = m.(object)["value"].(float64)
		}
	case "runs/set-tag":
		r.tags[in["key"].(string)] = in["value"].(string)
	case "runs/update":
		r.status, _ = in["status"].(string)
	case "artifacts":
		_, name, _ := strings.Cut(req.URL.Path, "/7/r1/artifacts/")
		r.artifacts[name] = body
	case "registered-models/create":
		return object{"registered_model": object{"name": in["name"]}}
	case "model-versions/search":
		if r.version == nil {
			return object{}
		}
		return object{"model_versions": []any{object{"name": r.version["name"], "version": "3"}}}
	case "model-versions/create":
		r.version = in
		pairs(in["tags"], r.vtags)
		return object{"model_version": object{"name": in["name"], "version": "3"}}
	case "model-versions/set-tag":
		r.vtags[in["key"].(string)] = in["value"].(string)
	case "/versions":
		r.asked, r.auth = in, req.Header.Get("Authorization")
		return object{"rungs": []any{object{"alias": "Staging", "pass": true}}, "aliases_set": []string{"Staging"}, "promotion_id": "p1"}
	}
	return object{}
}

// dummy is a training that takes little time: a small forest on 500 rows.
func dummy() Request {
	small := map[string]any{"hyperparameters": map[string]any{"n_estimators": 5, "max_depth": 4}}
	return Request{Parameters: small, Model: "jpcp", Dummy: true, FlowRunID: "f1", CommitSHA: "c0ffee", RequestedBy: "ci", ApprovalID: "a1", RequestID: "req-1"}
}

func TestTrainRecordsEverything(t *testing.T) {
	t.Parallel()
	r, tr := newRemote(t)
	var mu sync.Mutex
	done := map[string]float64{}
	var order []string
	res, err := tr.Train(t.Context(), dummy(), func(stage string, f float64, _ string) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(order, stage) {
			order = append(order, stage)
		}
		if f < done[stage] {
			t.Errorf("%s went back from %v to %v; want f >= done[stage]", stage, done[stage], f)
		}
		done[stage] = f
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(order, Stages) {
		t.Errorf("stages %v; want slices.Equal(order, Stages)", order)
	}
	for _, s := range Stages {
		if done[s] != 1 {
			t.Errorf("stage %s ended at %v; want done[s] == 1", s, done[s])
		}
	}
	if res.RunID != "r1" || res.Model != "JPCP" || res.Dataset != "JobEmbeddings" || res.Version != "3" || res.PromotionID != "p1" || !slices.Equal(res.Aliases, []string{"Staging"}) {
		t.Errorf(`result %+v; want res.RunID == "r1" && res.Model == "JPCP" && res.Dataset == "JobEmbeddings" && res.Version == "3" && res.PromotionID == "p1" && …`, res)
	}
	if r.run["run_name"] != "JPCP_JobEmbeddings" || r.status != "FINISHED" {
		t.Errorf(`run %v, status %s; want r.run["run_name"] == "JPCP_JobEmbeddings" && r.status == "FINISHED"`, r.run["run_name"], r.status)
	}
	for name, want := range map[string]string{
		"prefect_flow_run_id": "f1", "requested_by": "ci", "approval_id": "a1", "tenant": "default", "dummy": "true", "data_origin": "generated",
		"hpc_scheduler": "mock", "dataset_backend": "local", "training_rows": "400", "requested_commit": "c0ffee",
		"dataset_uri": "generator:embedding_families?seed=42&rows=500", "dataset_version": "generator:embedding_families?seed=42&rows=500",
	} {
		if r.tags[name] != want {
			t.Errorf("tag %s is %q, want %q", name, r.tags[name], want)
		}
	}
	if id := r.tags["hpc_job_id"]; len(id) != 13 || !strings.HasPrefix(id, "mock-") || r.tags["slurm_job_id"] != id {
		t.Errorf(`job id %q; want len(id) == 13 && strings.HasPrefix(id, "mock-") && r.tags["slurm_job_id"] == id`, id)
	}
	for name, want := range map[string]string{"model_name": "JPCP", "dataset": "JobEmbeddings", "estimator": "random_forest", "seed": "42", "n_estimators": "5", "max_depth": "4"} {
		if r.params[name] != want {
			t.Errorf("parameter %s is %q, want %q", name, r.params[name], want)
		}
	}
	for _, name := range []string{"rmse", "mse", "mae", "mape", "r2", "male", "val_rmse", "baseline_rmse", "skill"} {
		if _, ok := r.metrics[name]; !ok {
			t.Errorf("no metric %s; want ok", name)
		}
	}
	for _, name := range []string{"model/MLmodel", "model/model.onnx", "model/platform.json", "report.json", "charts/predicted_actual.svg", "charts/importance.svg"} {
		if len(r.artifacts[name]) == 0 {
			t.Errorf("no artifact %s; want len(r.artifacts[name]) != 0", name)
		}
	}
	var rep Report
	if err := json.Unmarshal(r.artifacts["report.json"], &rep); err != nil || rep.Rows.Test != 100 || rep.Residuals == nil || len(rep.Predictions.Deciles) != 9 {
		t.Errorf("report %+v, %v; want rep.Rows.Test == 100 && rep.Residuals != nil && len(rep.Predictions.Deciles) == 9", rep, err)
	}
	if imp := rep.Importance; imp == nil || imp.Metric != "rmse" || imp.Rows != 100 || len(imp.Features) != 1 || imp.Features[0].Worse <= 0 {
		t.Errorf("importance %+v; want the rmse of 100 rows to get worse without the only feature", imp)
	}
	if total := sum(rep.Residuals.Counts); total != 100 {
		t.Errorf("the histogram holds %d rows; want 100", total)
	}
	if r.version["name"] != "jpcp" || r.version["source"] != "mlflow-artifacts:/7/r1/artifacts/model" || r.version["run_id"] != "r1" {
		t.Errorf(`version %v; want r.version["name"] == "jpcp" && r.version["source"] == "mlflow-artifacts:/7/r1/artifacts/model" && r.version["run_id"] == "r1"`, r.version)
	}
	for _, name := range []string{"framework", "artifact_digest", "definition_digest", "data_origin", "dummy", "gpu_hours", "cost_usd", "cost_synthetic"} {
		if r.vtags[name] == "" {
			t.Errorf(`version has no tag %s; want r.vtags[name] != ""`, name)
		}
	}
	// The samples are a folder inside another repository, whose commit is meaningless here.
	for _, tags := range []map[string]string{r.tags, r.vtags} {
		if tags["modelrepo_dirty"] != "true" || tags["modelrepo_commit"] != "" || len(tags["definition_digest"]) != 64 {
			t.Errorf("provenance: got %v, want a dirty definition and no commit", tags)
		}
	}
	if r.asked["model"] != "JPCP" || r.asked["version"] != "3" || r.asked["flow_run_id"] != "f1" || r.auth != "Bearer a-token-of-the-trainer" {
		t.Errorf(`control plane was asked %v by %q; want r.asked["model"] == "JPCP" && r.asked["version"] == "3" && r.asked["flow_run_id"] == "f1" && r.auth == "Bearer a-token-of-the-trainer"`, r.asked, r.auth)
	}
}

func sum(v []int) (total int) {
	for _, x := range v {
		total += x
	}
	return total
}

func TestSameSeedSameBytes(t *testing.T) {
	t.Parallel()
	a, ta := newRemote(t)
	b, tb := newRemote(t)
	one, err := ta.Train(t.Context(), dummy(), nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := tb.Train(t.Context(), dummy(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range a.artifacts {
		if !bytes.Equal(data, b.artifacts[name]) {
			t.Errorf("%s differs", name)
		}
	}
	if one.Digest == "" || one.Digest != two.Digest {
		t.Errorf(`digests %s, %s; want one.Digest != "" && one.Digest == two.Digest`, one.Digest, two.Digest)
	}
	req := dummy()
	req.Parameters["seed"] = 7.0
	three, err := tb.Train(t.Context(), req, nil)
	if err != nil || three.Digest == one.Digest || b.params["seed"] != "7" {
		t.Errorf(`another seed: %v, digest %s, seed %s; want three.Digest != one.Digest && b.params["seed"] == "7"`, err, three.Digest, b.params["seed"])
	}
}

// Each call fails twice before it succeeds; writes whose answer is lost must not happen twice.
func TestTransientFaultsAreWaitedOut(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"experiments/get-by-name", "runs/create", "runs/log-batch", "artifacts", "model-versions/create", "model-versions/set-tag", "/versions", "runs/update"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			r, tr := newRemote(t)
			r.before = func(p string, n int) int {
				if p == path && n <= 2 {
					return http.StatusServiceUnavailable
				}
				return 0
			}
			if _, err := tr.Train(t.Context(), dummy(), nil); err != nil || r.status != "FINISHED" {
				t.Errorf(`%v, run %s; want r.status == "FINISHED"`, err, r.status)
			}
		})
	}
	for _, path := range []string{"runs/create", "model-versions/create"} {
		t.Run("lost answer of "+path, func(t *testing.T) {
			t.Parallel()
			r, tr := newRemote(t)
			r.after = func(p string, n int) int {
				if p == path && n == 1 {
					return http.StatusBadGateway
				}
				return 0
			}
			res, err := tr.Train(t.Context(), dummy(), nil)
			if err != nil || r.calls[path] != 1 || res.RunID != "r1" || res.Version != "3" {
				t.Errorf(`%v, %d calls, %+v; want r.calls[path] == 1 && res.RunID == "r1" && res.Version == "3"`, err, r.calls[path], res)
			}
		})
	}
}

func TestFailuresAreRecorded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		req    func(*Request)
		path   string
		status int
		calls  int
		reason string
	}{
		"backend not in this build": {func(r *Request) { r.Dummy, r.Backend = false, "dataplane" }, "", 0, 0, `extract: data set JobEmbeddings: it declares no backend "dataplane"`},
		"upload refused":            {nil, "artifacts", http.StatusForbidden, 1, "log: "},
		"tracker stays away":        {nil, "model-versions/create", http.StatusServiceUnavailable, 4, "register: "},
		"control plane refuses":     {nil, "/versions", http.StatusUnauthorized, 1, "ladder: control plane refused version 3 of JPCP"},
		"control plane stays away":  {nil, "/versions", http.StatusBadGateway, 4, "ladder: control plane unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, tr := newRemote(t)
			r.before = func(p string, n int) int {
				if p == c.path {
					return c.status
				}
				return 0
			}
			req := dummy()
			if c.req != nil {
				c.req(&req)
			}
			_, err := tr.Train(t.Context(), req, nil)
			if err == nil || r.status != "FAILED" || !strings.HasPrefix(r.tags["failure_reason"], c.reason) || r.calls[c.path] != c.calls {
				t.Errorf("%v\nrun %s, reason %q, %d calls; want an error && r.status == \"FAILED\" && strings.HasPrefix(r.tags[\"failure_reason\"], c.reason) && r.calls[c.path] == c.calls", err, r.status, r.tags["failure_reason"], r.calls[c.path])
			}
		})
	}
}

func TestEndOfAFailedRunWaitsForTheTracker(t *testing.T) {
	t.Parallel()
	r, tr := newRemote(t)
	r.before = func(p string, n int) int {
		if p == "artifacts" {
			return http.StatusForbidden
		}
		if (p == "runs/set-tag" && n == 1) || (p == "runs/update" && n <= 2) {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	_, err := tr.Train(t.Context(), dummy(), nil)
	if err == nil || r.status != "FAILED" || !strings.HasPrefix(r.tags["failure_reason"], "log: ") || r.calls["runs/update"] != 3 {
		t.Errorf(`%v, run %s, reason %q, %d calls; want an error && r.status == "FAILED" && strings.HasPrefix(r.tags["failure_reason"], "log: ") && r.calls["runs/update"] == 3`, err, r.status, r.tags["failure_reason"], r.calls["runs/update"])
	}
}

// A version of a model that the control plane would refuse at the end is not trained: nothing is recorded anywhere. One
// whose commit is read in the meantime is.
func TestUnknownToTheControlPlane(t *testing.T) {
	t.Parallel()
	committed := t.TempDir()
	if err := os.CopyFS(committed, os.DirFS(samples)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "samples"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", committed}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	for name, c := range map[string]struct {
		dir     string
		unknown int // how many questions are answered so
		code    string
		asked   int
		want    error
	}{
		"not committed":  {samples, 2, "model_not_found", 1, ErrUnknownModel},
		"never read":     {committed, 2, "model_not_found", 2, ErrUnknownModel},
		"read meanwhile": {committed, 1, "model_not_found", 2, nil},
		"refused":        {committed, 2, "not_found", 1, ErrRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, tr := newRemote(t)
			tr.cfg.ModelRepoDir = c.dir
			r.refuse = func(p string, n int) (int, object) {
				if p == "/models/JPCP/meta" && n <= c.unknown {
					return http.StatusNotFound, object{"code": c.code, "status": 404, "title": "x", "detail": "There is no such model."}
				}
				return 0, nil
			}
			_, err := tr.Train(t.Context(), dummy(), nil)
			if asked := r.calls["/models/JPCP/meta"]; asked != c.asked {
				t.Errorf("got %d questions, want %d", asked, c.asked)
			}
			if c.want == nil && (err != nil || r.status != "FINISHED") {
				t.Errorf("got %v, run %q; want a finished run", err, r.status)
			}
			if c.want != nil && (!errors.Is(err, c.want) || !errors.Is(err, ErrRequest) || r.run != nil || len(r.calls) != 1) {
				t.Errorf("got %v, calls %v; want %v and no call but the question", err, r.calls, c.want)
			}
		})
	}
}

// Without a control plane, the result still lists the rungs that the version would reach; a dummy's at most Staging.
func TestRungsWithoutControlPlane(t *testing.T) {
	t.Parallel()
	r, tr := newRemote(t)
	tr.control = nil
	res, err := tr.Train(t.Context(), dummy(), nil)
	if err != nil || r.calls["/versions"] != 0 || len(res.Aliases) != 0 {
		t.Fatalf(`%v, %d calls, aliases %v; want r.calls["/versions"] == 0 && len(res.Aliases) == 0`, err, r.calls["/versions"], res.Aliases)
	}
	if len(res.Rungs) != 3 || res.Rungs[0].Alias != "Staging" {
		t.Fatalf(`rungs %+v; want len(res.Rungs) == 3 && res.Rungs[0].Alias == "Staging"`, res.Rungs)
	}
	for _, v := range res.Rungs[1:] {
		if v.Pass || v.Reason == "" {
			t.Errorf(`a dummy run reaches %+v; want !v.Pass && v.Reason != ""`, v)
		}
	}
}

func TestCancelKillsTheRun(t *testing.T) {
	t.Parallel()
	for _, at := range Stages {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			r, tr := newRemote(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := tr.Train(ctx, dummy(), func(stage string, _ float64, _ string) {
				if stage == at {
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) || r.status != "KILLED" || r.tags["failure_reason"] != "cancelled" {
				t.Errorf(`%v, run %s, reason %q; want errors.Is(err, context.Canceled) && r.status == "KILLED" && r.tags["failure_reason"] == "cancelled"`, err, r.status, r.tags["failure_reason"])
			}
		})
	}
}

func TestCancelWhileWaitingForTheTracker(t *testing.T) {
	t.Parallel()
	r, tr := newRemote(t)
	tr.cfg.RetryDelays = []time.Duration{time.Hour}
	r.before = func(p string, _ int) int {
		if p == "artifacts" {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := tr.Train(ctx, dummy(), func(_ string, _ float64, msg string) {
		if strings.HasPrefix(msg, "trying again in 1h0m0s") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, tracker.ErrUnavailable) || r.status != "KILLED" {
		t.Errorf(`%v, run %s; want errors.Is(err, context.Canceled) && errors.Is(err, tracker.ErrUnavailable) && r.status == "KILLED"`, err, r.status)
	}
}

func TestRequestsThatCannotBeTrained(t *testing.T) {
	t.Parallel()
	r, tr := newRemote(t)
	for want, req := range map[string]Request{
		`unknown model "Oracle"; the repository has JPCP`: {Model: "Oracle"},
		`JPCP has no data set "Weather"`:                  {Model: "JPCP", Dataset: "Weather"},
		`unknown parameter "epochs"`:                      {Model: "JPCP", Parameters: map[string]any{"epochs": 3}},
		"seed is 1.5":                                     {Model: "JPCP", Parameters: map[string]any{"seed": 1.5}},
		"must be an object":                               {Model: "JPCP", Parameters: map[string]any{"hyperparameters": 1}},
		"trees":                                           {Model: "JPCP", Parameters: map[string]any{"hyperparameters": map[string]any{"trees": 3}}},
	} {
		if _, err := tr.Train(t.Context(), req, nil); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if len(r.calls) != 0 {
		t.Errorf("the tracker was called: %v; want len(r.calls) == 0", r.calls)
	}
}

func TestNewRefusesAMissingPart(t *testing.T) {
	t.Parallel()
	_, whole := newRemote(t)
	for name, remove := range map[string]func(*Config){
		"tracker": func(c *Config) { c.Tracker = nil }, "log": func(c *Config) { c.Log = nil },
		"model repository": func(c *Config) { c.ModelRepoDir = "" }, "price": func(c *Config) { c.GPUCostPerHour = 0 },
	} {
		cfg := whole.cfg
		remove(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("without %s: got no error, want one", name)
		}
	}
}

func TestHeldout(t *testing.T) {
	t.Parallel()
	_, tr := newRemote(t)
	rows, err := tr.Heldout(t.Context(), "runtimeregressor", "", 5)
	if err != nil || len(rows) != 5 {
		t.Fatal(err, len(rows), "want len(rows) == 5")
	}
	d := Data{RepoDir: samples, Model: "RuntimeRegressor", Log: samples + "/data/nasa-ipsc-1993.swf.gz"}
	for _, r := range rows {
		again, err := d.Job(t.Context(), r.ID)
		if err != nil || !r.HeldOut || !again.HeldOut || len(r.Features) != 21 || again.Actual != r.Actual {
			t.Errorf("%+v, %+v, %v; want r.HeldOut && again.HeldOut && len(r.Features) == 21 && again.Actual == r.Actual", r, again, err)
		}
	}
	if first, err := d.Job(t.Context(), "1"); err != nil || first.HeldOut || first.Actual != 1451.0 {
		t.Errorf("%+v, %v; want !first.HeldOut && first.Actual == 1451.0", first, err)
	}
	if _, err := d.Job(t.Context(), "x"); !errors.Is(err, ErrRequest) {
		t.Error(err, "want errors.Is(err, ErrRequest)")
	}
	classes, err := tr.Heldout(t.Context(), "MACK", "", 0)
	if err != nil || len(classes) != 800 || len(classes[0].Features["embedding"].([]float32)) != 384 {
		t.Errorf(`%d rows, %v; want len(classes) == 800 && len(classes[0].Features["embedding"].([]float32)) == 384`, len(classes), err)
	}
	if l := classes[0].Actual.(string); l != "memory-bound" && l != "compute-bound" {
		t.Errorf(`label %q; want (l == "memory-bound" || l == "compute-bound")`, l)
	}
}

// The process died after it had registered its version: the same flow run, started again, makes no second one.
func TestSameFlowRunMakesOneVersion(t *testing.T) {
	t.Parallel()
	r, tr := newRemote(t)
	first, err := tr.Train(t.Context(), dummy(), nil)
	if err != nil {
		t.Fatal(err)
	}
	made, runs := r.calls["model-versions/create"], r.calls["runs/create"]
	r.findBy("prefect_flow_run_id")
	again, err := tr.Train(t.Context(), dummy(), nil)
	if err != nil || again.Version != first.Version || again.RunID != first.RunID || !slices.Equal(again.Aliases, first.Aliases) {
		t.Errorf("%+v, %v; want version %s of run %s", again, err, first.Version, first.RunID)
	}
	if r.calls["model-versions/create"] != made || r.calls["runs/create"] != runs {
		t.Errorf("%d versions and %d runs were made; want 1 and 1", r.calls["model-versions/create"], r.calls["runs/create"])
	}
	if r.calls["/versions"] != 2 || r.status != "FINISHED" {
		t.Errorf("the control plane was told %d times, the run is %s; want 2, FINISHED", r.calls["/versions"], r.status)
	}
}

// It died before: that run is ended, and a new one is trained.
func TestOpenRunOfADeadProcessIsEnded(t *testing.T) {
	t.Parallel()
	r, tr := newRemote(t)
	r.run = object{} // the result of runs/search
	r.findBy("prefect_flow_run_id")
	var killed bool
	r.before = func(path string, _ int) int {
		killed = killed || path == "runs/update" && r.version == nil
		return 0
	}
	res, err := tr.Train(t.Context(), dummy(), nil)
	if err != nil || res.Version != "3" || r.calls["model-versions/create"] != 1 {
		t.Errorf("%+v, %v; want one new version", res, err)
	}
	if !killed || !strings.Contains(r.tags["failure_reason"], "died") {
		t.Errorf("ended %v, tags %v; want the old run ended and its reason given", killed, r.tags)
	}
}

// It was asked to stop after it had registered its version, and ended its run KILLED, or failed there.
func TestStoppedAfterRegistrationMakesOneVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stage, status string
	}{{"register", "KILLED"}, {"ladder", "KILLED"}, {"ladder", "FAILED"}} {
		t.Run(c.stage+" "+c.status, func(t *testing.T) {
			t.Parallel()
			r, tr := newRemote(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			refused := c.status == "FAILED"
			r.before = func(path string, _ int) int {
				if refused && path == "/versions" {
					return http.StatusForbidden
				}
				return 0
			}
			r.after = func(path string, _ int) int {
				if c.stage == "register" && path == "model-versions/create" {
					stop()
				}
				return 0
			}
			_, err := tr.Train(ctx, dummy(), func(stage string, _ float64, _ string) {
				if c.stage == "ladder" && c.status == "KILLED" && stage == "ladder" {
					stop()
				}
			})
			if err == nil || r.status != c.status || r.calls["model-versions/create"] != 1 {
				t.Fatalf("%v, run %s, %d versions; want an error, %s, 1", err, r.status, r.calls["model-versions/create"], c.status)
			}
			r.mu.Lock()
			refused, r.after = false, nil
			r.mu.Unlock()
			r.findBy("prefect_flow_run_id")
			res, err := tr.Train(t.Context(), dummy(), nil)
			if err != nil || res.Version != "3" || r.calls["model-versions/create"] != 1 || r.calls["runs/create"] != 1 {
				t.Errorf("%+v, %v, %d versions of %d runs; want version 3, one of one run", res, err, r.calls["model-versions/create"], r.calls["runs/create"])
			}
			if r.status != "FINISHED" || r.tags["failure_reason"] != "" {
				t.Errorf("the run is %s, reason %q; want FINISHED, none", r.status, r.tags["failure_reason"])
			}
		})
	}
}
