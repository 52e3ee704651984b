//go:build e2e

package loop

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// load sends predictions from several clients until its context ends, and records failures.
type load struct {
	total, failed atomic.Int64
	mu            sync.Mutex // guards versions and first
	versions      map[string]int64
	first         string
}

func startLoad(ctx context.Context, p *harness.Platform, model string, body []byte, clients int) (*load, func()) {
	l := &load{versions: map[string]int64{}}
	hc := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				req, _ := http.NewRequest("POST", p.Env["SERVING_URL"]+"/predict/"+model, bytes.NewReader(body))
				req.Header.Set("Authorization", "Bearer "+p.Env["SERVING_TOKEN"])
				req.Header.Set("Content-Type", "application/json")
				resp, err := hc.Do(req)
				l.total.Add(1)
				if err != nil {
					l.fail(err.Error())
					continue
				}
				data, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				var a struct {
					Version    string `json:"model_version"`
					Prediction any    `json:"prediction"`
				}
				if err := json.Unmarshal(data, &a); resp.StatusCode != 200 || err != nil || a.Prediction == nil {
					l.fail(fmt.Sprintf("%d %s", resp.StatusCode, data))
					continue
				}
				l.mu.Lock()
				l.versions[a.Version]++
				l.mu.Unlock()
			}
		})
	}
	return l, func() { cancel(); wg.Wait() }
}

func (l *load) fail(what string) {
	l.failed.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == "" {
		l.first = what
	}
}

func (l *load) seen(version string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.versions[version] > 0
}

// The walkthrough of the README, with mlp alone (and curl for the notice): list, predict, notice, pending, approve,
// watch, served without a restart and without a failed request under load.
func TestLoopWithMLP(t *testing.T) {
	p := sharedPlatform(t)
	for _, m := range []string{"JPCP", "MACK", "MCBound", "RuntimeClass", "RuntimeRegressor"} {
		if out := p.Run(t, "mlp", "models", "list"); !strings.Contains(out, m) && !strings.Contains(out, strings.ToUpper(m)) {
			t.Fatalf("%s is not listed:\n%s; want (strings.Contains(out, m) || strings.Contains(out, strings.ToUpper(m)))", m, out)
		}
	}
	for _, m := range []string{"RuntimeClass", "RuntimeRegressor"} {
		for _, f := range heldOutBodies(t, p, m) {
			var doc map[string]any
			if err := json.Unmarshal([]byte(p.Run(t, "mlp", "--json", "predict", m, "--features", "@"+f)), &doc); err != nil || doc["prediction"] == nil {
				t.Fatalf(`%v %v; want doc["prediction"] != nil`, doc, err)
			}
		}
	}
	body, err := os.ReadFile(heldOutBodies(t, p, "RuntimeRegressor")[0])
	if err != nil {
		t.Fatal(err)
	}
	harness.Want(t, 200, "POST", p.Env["CONTROL_PLANE_URL"]+"/api/changes", p.Env["CONTROL_PLANE_TOKEN"], map[string]any{
		"model_ids": []string{"RuntimeRegressor"}, "commit_sha": "feedfacefeedface", "commit_msg": "more trees", "changed_files": []string{"models/performance_prediction/RuntimeRegressor/model.yaml"}})
	if out := p.Run(t, "mlp", "approvals", "list"); !strings.Contains(out, "RUNTIMEREGRESSOR") || !strings.Contains(out, "feedfacef") {
		t.Fatalf("not pending:\n%s; want strings.Contains(out, \"RUNTIMEREGRESSOR\") && strings.Contains(out, \"feedfacef\")", out)
	}
	l, stop := startLoad(context.Background(), p, "RUNTIMEREGRESSOR", body, 8)
	var res struct {
		State   string `json:"state"`
		Version string `json:"model_version"`
	}
	out := p.Run(t, "mlp", "--json", "approvals", "approve", "RuntimeRegressor", "--follow")
	if err := json.Unmarshal([]byte(out), &res); err != nil || res.State != "COMPLETED" || res.Version == "" {
		stop()
		t.Fatalf("%v\n%s; want res.State == \"COMPLETED\" && res.Version != \"\"", err, out)
	}
	// approval_mode run: this one human approval carries the version to Production.
	harness.Eventually(t, 30*time.Second, func() error {
		if !l.seen(res.Version) {
			return fmt.Errorf("version %s does not answer yet", res.Version)
		}
		return nil
	})
	stop()
	if n := l.failed.Load(); n != 0 {
		t.Fatalf("%d of %d requests failed; the first: %s; want n == 0", n, l.total.Load(), l.first)
	}
	t.Logf("%d requests, none failed, versions %v", l.total.Load(), l.versions)
}

// Acceptance row 20: a corrupt artifact that gets an alias under load changes nothing for callers, even of that alias.
// Canary follows the tracker at once; Production only through the gate, which accepts no version without a digest.
func TestRow20_CorruptArtifactUnderLoad(t *testing.T) {
	p := sharedPlatform(t)
	body, err := os.ReadFile(heldOutBodies(t, p, "RuntimeClass")[1])
	if err != nil {
		t.Fatal(err)
	}
	tr := p.Tracker() + "/api/2.0/mlflow"
	good := productionVersion(t, p, "runtimeclass")
	var src struct {
		V struct {
			RunID string `json:"run_id"`
		} `json:"model_version"`
	}
	if err := json.Unmarshal(harness.Want(t, 200, "GET", tr+"/model-versions/get?name=runtimeclass&version="+good, "", nil).Body, &src); err != nil {
		t.Fatal(err)
	}
	var run struct {
		Run struct {
			Info struct {
				URI string `json:"artifact_uri"`
			} `json:"info"`
		} `json:"run"`
	}
	if err := json.Unmarshal(harness.Want(t, 200, "GET", tr+"/runs/get?run_id="+src.V.RunID, "", nil).Body, &run); err != nil {
		t.Fatal(err)
	}
	base := strings.TrimPrefix(run.Run.Info.URI, "mlflow-artifacts:/")
	garbage := make([]byte, 64<<10)
	_, _ = rand.Read(garbage)
	put := func(name, content string) {
		harness.Want(t, 200, "PUT", p.Tracker()+"/api/2.0/mlflow-artifacts/artifacts/"+strings.TrimPrefix(base, "/")+"/broken/"+name, "", content)
	}
	put("model.onnx", string(garbage))
	put("MLmodel", "flavors:\n  onnx:\n    data: model.onnx\n    onnx_version: 1.17.0\nmodel_uuid: x\n")
	var made struct {
		V struct {
			Version string `json:"version"`
		} `json:"model_version"`
	}
	if err := json.Unmarshal(harness.Want(t, 200, "POST", tr+"/model-versions/create", "", map[string]any{
		"name": "runtimeclass", "source": run.Run.Info.URI + "/broken", "run_id": src.V.RunID}).Body, &made); err != nil {
		t.Fatal(err)
	}
	setCanary := func(version string) {
		harness.Want(t, 200, "POST", tr+"/registered-models/alias", "", map[string]any{"name": "runtimeclass", "alias": "Canary", "version": version})
	}
	setCanary(good)
	canary := withAlias(t, body, "Canary")
	harness.Eventually(t, 30*time.Second, func() error {
		if a := harness.Call(t, "POST", p.Env["SERVING_URL"]+"/predict/RUNTIMECLASS", p.Env["SERVING_TOKEN"], canary); a.Status != 200 {
			return fmt.Errorf("Canary does not answer yet: %d %s", a.Status, a.Body)
		}
		return nil
	})
	l, stopProduction := startLoad(context.Background(), p, "RUNTIMECLASS", body, 4)
	ofCanary, stopCanary := startLoad(context.Background(), p, "RUNTIMECLASS", []byte(canary), 4)
	stop := func() { stopProduction(); stopCanary() }
	setCanary(made.V.Version)
	harness.Eventually(t, 30*time.Second, func() error {
		for _, e := range readEventStream(t, p) {
			if e.Type == "platform.deploy.load_failed" {
				return nil
			}
		}
		return fmt.Errorf("no deploy.load_failed in the stream")
	})
	before, beforeCanary := l.total.Load(), ofCanary.total.Load()
	harness.Eventually(t, 20*time.Second, func() error {
		if l.total.Load() < before+100 || ofCanary.total.Load() < beforeCanary+100 {
			return fmt.Errorf("load does not go on")
		}
		return nil
	})
	stop()
	for alias, l := range map[string]*load{"Production": l, "Canary": ofCanary} {
		if n := l.failed.Load(); n != 0 {
			t.Fatalf("%s: %d of %d requests failed, want none; the first: %s", alias, n, l.total.Load(), l.first)
		}
		if len(l.versions) != 1 || !l.seen(good) {
			t.Fatalf("%s: versions that answered: %v, want %s alone", alias, l.versions, good)
		}
	}
	h := harness.Want(t, 200, "GET", p.Env["SERVING_URL"]+"/health", "", nil)
	if !strings.Contains(string(h.Body), "last_error") {
		t.Errorf(`health does not show the failure: %s; want strings.Contains(string(h.Body), "last_error")`, h.Body)
	}
	setCanary(good)
	harness.Eventually(t, 15*time.Second, func() error {
		h := harness.Want(t, 200, "GET", p.Env["SERVING_URL"]+"/health", "", nil).JSON(t)
		m, _ := h["models"].(map[string]any)["RUNTIMECLASS"].(map[string]any)
		if m["status"] != "ok" || m["last_error"] != nil {
			return fmt.Errorf("%v", m)
		}
		return nil
	})
}

// productionVersion returns the version that the tracker's Production alias names.
func productionVersion(t *testing.T, p *harness.Platform, name string) string {
	t.Helper()
	var doc struct {
		V struct {
			Version string `json:"version"`
		} `json:"model_version"`
	}
	a := harness.Want(t, 200, "GET", p.Tracker()+"/api/2.0/mlflow/registered-models/alias?name="+name+"&alias=Production", "", nil)
	if err := json.Unmarshal(a.Body, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.V.Version
}

// withAlias returns the body of a prediction that requests an alias.
func withAlias(t *testing.T, body []byte, alias string) string {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	doc["alias"] = alias
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
