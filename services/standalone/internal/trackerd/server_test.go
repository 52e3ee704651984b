package trackerd_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/tracker/trackertest"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd"
)

func TestClientSuite(t *testing.T) {
	t.Parallel()
	trackertest.Run(t, setupBench(t).url)
}

// TestRefusals walks mistakes of callers: each gets the code that clients of a
// real server know, and never a 500, which they would repeat for minutes.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	run, experiment := b.run(t)
	b.want(t, 200, "POST", api+"registered-models/create", obj{"name": "m"})
	b.want(t, 200, "POST", api+"model-versions/create", obj{"name": "m", "source": "runs:/" + run + "/model", "run_id": run})
	long := strings.Repeat("x", 600)
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		{"GET", api + "nothing", nil, 404, "ENDPOINT_NOT_FOUND"},
		{"GET", "/nothing", nil, 404, "ENDPOINT_NOT_FOUND"},
		{"GET", api + "runs/create", nil, 404, "ENDPOINT_NOT_FOUND"},
		{"POST", "/api/2.0/mlflow-artifacts/mpu/create/1/r/artifacts/big", obj{"path": "big", "num_parts": 2}, 501, "NOT_IMPLEMENTED"},
		{"POST", api + "experiments/create", "{bad", 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "experiments/create", "[]", 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "experiments/create", `{"name": 5}`, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "experiments/create", `{"name": "a\u0000b"}`, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "experiments/create", obj{"name": long}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "experiments/create", obj{"name": "Default"}, 400, "RESOURCE_ALREADY_EXISTS"},
		{"POST", api + "experiments/create", obj{"name": "f", "artifact_location": "file:///etc"}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "experiments/create", obj{"name": "f", "artifact_location": "mlflow-artifacts:/a/%2e%2e/%252e%252e/b"}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "experiments/create", strings.Repeat(" ", 9<<20), 413, "INVALID_PARAMETER_VALUE"},
		{"GET", api + "experiments/get?experiment_id=abc", nil, 400, "INVALID_PARAMETER_VALUE"},
		{"GET", api + "experiments/get?experiment_id=99", nil, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"GET", api + "experiments/get", nil, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "experiments/search", obj{"max_results": 0}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "experiments/search", obj{"max_results": 50001}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "experiments/search", obj{"max_results": 5, "page_token": "eyJvZmZzZXQiOi0xfQ=="}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "experiments/search", obj{"filter": "name = 'a' OR name = 'b'"}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "experiments/search", obj{"order_by": []string{"bogus"}}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "experiments/delete-experiment-tag", obj{"experiment_id": experiment, "key": "k"}, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"POST", api + "experiments/update", obj{"experiment_id": experiment, "new_name": "Default"}, 400, "RESOURCE_ALREADY_EXISTS"},
		{"POST", api + "runs/create", obj{}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/create", obj{"experiment_id": experiment, "run_name": "a", "tags": []obj{{"key": "mlflow.runName", "value": "b"}}}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/update", obj{"run_id": run, "status": "BOGUS"}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/log-metric", obj{"run_id": run, "key": "m", "timestamp": 1}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/log-metric", obj{"run_id": run, "key": "m", "value": 1}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/log-metric", obj{"run_id": run, "key": "m", "value": "abc", "timestamp": 1}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/log-metric", obj{"run_id": run, "key": "m", "value": 1, "timestamp": -1}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/log-metric", obj{"run_id": run, "key": "m", "value": 1, "timestamp": 1e300}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/log-metric", obj{"run_id": run, "key": "m", "value": 1, "timestamp": 1, "model_id": "m-none"}, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"POST", api + "runs/log-batch", obj{"run_id": run, "params": manyItems("params", 101)}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/log-batch", obj{"run_id": run, "params": []obj{{"key": "d", "value": "1"}, {"key": "d", "value": "1"}}}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/log-batch", obj{"run_id": run, "metrics": manyItems("metrics", 1001)}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/log-batch", obj{"run_id": run, "tags": manyItems("tags", 101)}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/delete-tag", obj{"run_id": run, "key": "none"}, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"POST", api + "runs/restore", obj{"run_id": "none"}, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"POST", api + "runs/log-model", obj{"run_id": run, "model_json": "bad"}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/log-model", obj{"run_id": run, "model_json": "{}"}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/search", obj{"experiment_ids": []string{"abc"}}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/search", obj{"experiment_ids": []string{experiment}, "filter": "tags.`a\x00b` = 'x'"}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "runs/search", obj{"order_by": slices.Repeat([]string{"start_time"}, 21)}, 400, "INVALID_PARAMETER_VALUE"},
		{"GET", api + "metrics/get-history?run_id=" + run, nil, 400, "INVALID_PARAMETER_VALUE"},
		{"GET", api + "artifacts/list?run_id=" + run + "&path=../..", nil, 400, "INVALID_PARAMETER_VALUE"},
		{"GET", api + "artifacts/list?run_id=none", nil, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"POST", api + "logged-models", obj{"experiment_id": experiment, "name": "a/b"}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "logged-models", obj{"experiment_id": "99"}, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"GET", api + "logged-models/m-none", nil, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"PATCH", api + "logged-models/m-none", obj{"status": "LOGGED_MODEL_READY"}, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"POST", api + "logged-models/search", obj{}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "logged-models/search", obj{"experiment_ids": []string{experiment}, "filter": "bogus = 'x'"}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "registered-models/create", obj{"name": "m"}, 400, "RESOURCE_ALREADY_EXISTS"},
		{"POST", api + "registered-models/rename", obj{"name": "none", "new_name": "x"}, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"POST", api + "registered-models/rename", obj{"name": "m", "new_name": "a/b"}, 400, "INVALID_PARAMETER_VALUE"},
		{"DELETE", api + "registered-models/delete", obj{"name": "none"}, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"GET", api + "registered-models/search?max_results=1001", nil, 400, "INVALID_PARAMETER_VALUE"},
		{"GET", api + "registered-models/search?filter=name+%3E+%27a%27", nil, 400, "INVALID_PARAMETER_VALUE"},
		{"GET", api + "registered-models/search?order_by=creation_timestamp", nil, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "registered-models/alias", obj{"name": "m", "alias": "a", "version": "9"}, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"POST", api + "registered-models/alias", obj{"name": "m", "alias": "Latest", "version": "1"}, 400, "INVALID_PARAMETER_VALUE"},
		{"GET", api + "registered-models/alias?name=m&alias=none", nil, 400, "INVALID_PARAMETER_VALUE"},
		{"GET", api + "registered-models/alias?name=none&alias=none", nil, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"POST", api + "model-versions/create", obj{"name": "m"}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "model-versions/create", obj{"name": "none", "source": "runs:/" + run + "/x", "run_id": run}, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"POST", api + "model-versions/create", obj{"name": "m", "source": "runs:/" + run + "/x"}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "model-versions/create", obj{"name": "m", "source": "mlflow-artifacts:/0/other/artifacts", "run_id": run}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "model-versions/create", obj{"name": "m", "source": "mlflow-artifacts:/" + experiment + "/" + run + "/artifacts/../../x", "run_id": run}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "model-versions/create", obj{"name": "m", "source": "file:///etc", "run_id": run}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "model-versions/create", obj{"name": "m", "source": "models:/m-none", "model_id": "m-none"}, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"GET", api + "model-versions/get?name=m&version=abc", nil, 400, "INVALID_PARAMETER_VALUE"},
		{"GET", api + "model-versions/get?name=m&version=99999999999", nil, 400, "INVALID_PARAMETER_VALUE"},
		{"GET", api + "model-versions/search?max_results=0", nil, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "model-versions/transition-stage", obj{"name": "m", "version": "1", "stage": "bogus"}, 400, "INVALID_PARAMETER_VALUE"},
		{"GET", api + "webhooks/none", nil, 404, "RESOURCE_DOES_NOT_EXIST"},
		{"POST", api + "webhooks", obj{"name": "w", "url": "http://example.com/x", "events": []obj{{"entity": "MODEL_VERSION", "action": "CREATED"}}}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "webhooks", obj{"name": "w", "url": "https://example.com/x", "events": []obj{{"entity": "MODEL_VERSION", "action": "SET"}}}, 400, "INVALID_PARAMETER_VALUE"},
		{"POST", api + "webhooks", obj{"name": "-w", "url": "https://example.com/x", "events": []obj{{"entity": "MODEL_VERSION", "action": "CREATED"}}}, 400, "INVALID_PARAMETER_VALUE"},
	} {
		a := b.do(t, c.method, c.path, c.body)
		var e struct {
			Code    string `json:"error_code"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(a.body, &e); err != nil || a.status != c.status || e.Code != c.code || e.Message == "" {
			t.Errorf("%s %s %.200v: %d %.300s, want %d %s", c.method, c.path, c.body, a.status, a.body, c.status, c.code)
		}
		if a.header.Get("Content-Type") != "application/json" || strings.Contains(string(a.body), "struct") {
			t.Errorf(`%s %s: %s %s; want a.header.Get("Content-Type") == "application/json" && !strings.Contains(string(a.body), "struct")`, c.method, c.path, a.header.Get("Content-Type"), a.body)
		}
	}
}

func manyItems(what string, n int) []obj {
	out := make([]obj, n)
	for i := range out {
		out[i] = obj{"key": fmt.Sprintf("%s%d", what, i), "value": "1"}
		if what == "metrics" {
			out[i] = obj{"key": fmt.Sprint(i), "value": 1, "timestamp": 1}
		}
	}
	return out
}

func TestOtherSitesAreKeptOut(t *testing.T) {
	t.Parallel()
	b := setupBench(t, trackerd.AllowHosts("tracker"))
	for _, c := range []struct {
		method, path string
		header       []string
		status       int
	}{
		{"GET", "/health", nil, 200},
		{"GET", "/health", []string{"Host", "evil.example:15000"}, 403},
		{"GET", "/health", []string{"Host", "tracker:15000"}, 200},
		{"GET", "/health", []string{"Host", "[::1]:15000"}, 200},
		{"GET", "/health", []string{"Host", "localhost"}, 200},
		{"POST", api + "experiments/search", []string{"Origin", "https://evil.example"}, 403},
		{"POST", api + "experiments/search", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"PUT", "/api/2.0/mlflow-artifacts/artifacts/x", []string{"Origin", "https://evil.example"}, 403},
		{"POST", api + "experiments/search", []string{"Content-Type", "text/plain"}, 400},
		{"POST", api + "experiments/search", nil, 200},
	} {
		if a := b.do(t, c.method, c.path, "{}", c.header...); a.status != c.status {
			t.Errorf("%s %s %v: %d, want %d", c.method, c.path, c.header, a.status, c.status)
		}
	}
}

func TestBodiesInAContentCoding(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(`{"name":"packed"}`)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	for coding, status := range map[string]int{"gzip": 200, "deflate": 400, "br": 415} {
		if a := b.do(t, "POST", api+"registered-models/create", packed.String(), "Content-Encoding", coding); a.status != status {
			t.Errorf("%s: %d %s, want %d", coding, a.status, a.body, status)
		}
	}
}

func TestLongValuesAreCut(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	run, _ := b.run(t)
	b.want(t, 200, "POST", api+"runs/log-parameter", obj{"run_id": run, "key": "p", "value": strings.Repeat("é", 7000)})
	b.want(t, 200, "POST", api+"runs/log-parameter", obj{"run_id": run, "key": "p", "value": strings.Repeat("é", 6500)}) // the same, once cut
	b.want(t, 200, "POST", api+"runs/set-tag", obj{"run_id": run, "key": "t", "value": strings.Repeat("é", 9000)})
	data := b.want(t, 200, "GET", api+"runs/get?run_id="+run, nil)["run"].(obj)["data"].(obj)
	if got := data["params"].([]any)[0].(obj)["value"].(string); got != strings.Repeat("é", 6000) {
		t.Errorf(`parameter of %d bytes; want got == strings.Repeat("é", 6000)`, len(got))
	}
	if got := data["tags"].([]any)[1].(obj)["value"].(string); got != strings.Repeat("é", 8000) {
		t.Errorf(`tag of %d bytes; want got == strings.Repeat("é", 8000)`, len(got))
	}
}

func TestDeletedExperimentTakesItsRunsAlong(t *testing.T) {
	t.Parallel()
	// Two deletions in one millisecond count as one, as the clients' clock has no finer unit.
	var ticks atomic.Int64
	b := setupBench(t, trackerd.Clock(func() time.Time { return time.UnixMilli(1_700_000_000_000 + ticks.Add(1)) }))
	run, experiment := b.run(t)
	gone := b.want(t, 200, "POST", api+"runs/create", obj{"experiment_id": experiment})["run"].(obj)["info"].(obj)["run_id"].(string)
	b.want(t, 200, "POST", api+"runs/delete", obj{"run_id": gone})
	b.want(t, 200, "POST", api+"experiments/delete", obj{"experiment_id": experiment})
	stage := func(id string) any {
		return b.want(t, 200, "GET", api+"runs/get?run_id="+id, nil)["run"].(obj)["info"].(obj)["lifecycle_stage"]
	}
	if s := stage(run); s != "deleted" {
		t.Errorf(`run is %v; want "deleted"`, s)
	}
	b.want(t, 400, "POST", api+"runs/create", obj{"experiment_id": experiment})
	b.want(t, 400, "POST", api+"experiments/create", obj{"name": "e-" + t.Name()}) // the name stays taken
	b.want(t, 400, "POST", api+"runs/log-parameter", obj{"run_id": run, "key": "a", "value": "b"})
	b.want(t, 404, "POST", api+"experiments/delete", obj{"experiment_id": experiment})
	b.want(t, 200, "POST", api+"experiments/restore", obj{"experiment_id": experiment})
	if s := stage(run); s != "active" {
		t.Errorf(`run is %v; want "active"`, s)
	}
	if s := stage(gone); s != "deleted" {
		t.Errorf(`a run deleted before is %v; want "deleted"`, s)
	}
}

// TestOneValueOfARacedParam logs different values of one parameter at once: one
// caller wins, the others are told.
func TestOneValueOfARacedParam(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	run, _ := b.run(t)
	var wg sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		wg.Go(func() {
			statuses[i] = b.do(t, "POST", api+"runs/log-parameter", obj{"run_id": run, "key": "p", "value": fmt.Sprint(i)}).status
		})
	}
	wg.Wait()
	slices.Sort(statuses)
	if statuses[0] != 200 || statuses[1] != 400 {
		t.Errorf("statuses %v, want one 200", statuses)
	}
}

// log_model of MLflow 3 registers a version by its logged model alone; the version is
// then of the run that logged it, as with the real stores.
func TestVersionOfALoggedModelHasItsRun(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	run, experiment := b.run(t)
	b.want(t, 200, "POST", api+"registered-models/create", obj{"name": "m"})
	logModel := func(body obj) string {
		body["experiment_id"], body["name"] = experiment, "model"
		return b.want(t, 200, "POST", api+"logged-models", body)["model"].(obj)["info"].(obj)["model_id"].(string)
	}
	for _, c := range []struct {
		id, want string
	}{
		{logModel(obj{"source_run_id": run}), run},
		{logModel(obj{}), ""},
	} {
		v := b.want(t, 200, "POST", api+"model-versions/create", obj{"name": "m", "source": "models:/" + c.id, "model_id": c.id})["model_version"].(obj)
		if got, _ := v["run_id"].(string); got != c.want {
			t.Errorf("version %v: got run_id %q, want %q", v["version"], got, c.want)
		}
	}
}

func TestRestartKeepsEverythingAndSweepsUploads(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	run, experiment := b.run(t)
	at := "/api/2.0/mlflow-artifacts/artifacts/" + experiment + "/" + run + "/artifacts/model/a.txt"
	b.want(t, 200, "PUT", at, "hello")
	leftover := filepath.Join(b.dir, "uploads", "cut-off")
	if err := os.WriteFile(leftover, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := trackerd.New(t.Context(), b.pool, b.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(leftover); !os.IsNotExist(err) {
		t.Errorf("an upload cut off by a crash is still there: %v; want os.IsNotExist(err)", err)
	}
	if a := b.do(t, "GET", at, nil); string(a.body) != "hello" {
		t.Errorf(`%d %s; want string(a.body) == "hello"`, a.status, a.body)
	}
}
