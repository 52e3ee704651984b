//go:build e2e

// Package loop drives the built platform over the wire through the whole loop: change notice, approval, training,
// promotion, serving, drift.
package loop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// seeded is one platform with its samples trained, shared by the tests that only add to it.
var seeded struct {
	once sync.Once
	p    *harness.Platform
	dir  string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if seeded.p != nil {
		seeded.p.Kill()
		_ = os.RemoveAll(seeded.dir)
	}
	os.Exit(code)
}

// sharedPlatform returns the shared platform; its first start is a newcomer's.
func sharedPlatform(t *testing.T) *harness.Platform {
	t.Helper()
	if p, ok := harness.Attached(); ok {
		return p
	}
	seeded.once.Do(func() {
		p, dir := harness.NewShared(t)
		seeded.dir = dir
		took := p.Start(t, 60*time.Second)
		t.Logf("first start: ready in %s", took)
		p.WaitOutput(t, "Next:", 4*time.Minute, time.Now())
		seeded.p = p
	})
	if seeded.p == nil {
		t.Fatal("the shared platform did not start")
	}
	return seeded.p
}

var samples = []string{"JPCP", "MACK", "MCBOUND", "RUNTIMECLASS", "RUNTIMEREGRESSOR"}

// Acceptance row 1: an empty directory becomes a platform with five trained, promoted and served samples.
func TestRow01_EmptyDirectorySeeded(t *testing.T) {
	p := sharedPlatform(t)
	for _, u := range []string{p.Env["CONTROL_PLANE_URL"] + "/readyz", p.Env["SERVING_URL"] + "/readyz"} {
		harness.Want(t, 200, "GET", u, "", nil)
	}
	h := harness.Want(t, 200, "GET", p.Env["SERVING_URL"]+"/health", "", nil).JSON(t)
	if h["status"] != "ok" || h["models_loaded"] != float64(len(samples)) {
		t.Fatalf(`inference health: %v; want h["status"] == "ok" && h["models_loaded"] == float64(len(samples))`, h)
	}
	models := harness.Want(t, 200, "GET", p.Env["SERVING_URL"]+"/models", p.Env["SERVING_TOKEN"], nil).List(t)
	served := map[string]bool{}
	for _, m := range models {
		served[fmt.Sprint(m["model_name"])] = m["status"] == "ok" && m["run_id"] != ""
	}
	for _, s := range samples {
		if !served[s] {
			t.Errorf("%s is not served: %v; want served[s]", s, models)
		}
	}
	hist := listItems(t, harness.Want(t, 200, "GET", p.Env["CONTROL_PLANE_URL"]+"/alias-history?alias=Production&limit=500", p.Env["CONTROL_PLANE_TOKEN"], nil))
	seen := map[string]string{}
	for _, h := range hist {
		seen[strings.ToUpper(fmt.Sprint(h["model"]))] = fmt.Sprint(h["actor"])
	}
	for _, s := range samples {
		if seen[s] != "system:seed" {
			t.Errorf("alias history of %s names %q as the actor, want system:seed", s, seen[s])
		}
	}
	drift := harness.Want(t, 200, "GET", p.Env["SERVING_URL"]+"/drift/status", p.Env["SERVING_TOKEN"], nil).List(t)
	based := 0
	for _, d := range drift {
		if d["alias"] == "Production" {
			if d["status"] == "NO_BASELINE" {
				t.Errorf(`%v has no drift baseline after seeding; want d["status"] != "NO_BASELINE"`, d["model"])
			}
			based++
		}
	}
	if based != len(samples) {
		t.Errorf("drift is known of %d Production models, want %d", based, len(samples))
	}
}

// Row 1, second half: without seeding, five models are declared, inference is degraded and predicts 404.
func TestRow01_Unseeded(t *testing.T) {
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, 30*time.Second)
	list := harness.Want(t, 200, "GET", p.Env["CONTROL_PLANE_URL"]+"/models", "", nil).List(t)
	if len(list) != 5 {
		t.Fatalf("%d models declared, want 5: %v", len(list), list)
	}
	h := harness.Want(t, 200, "GET", p.Env["SERVING_URL"]+"/health", "", nil).JSON(t)
	if h["status"] != "degraded" || h["models_loaded"] != 0.0 {
		t.Fatalf(`inference health: %v; want h["status"] == "degraded" && h["models_loaded"] == 0.0`, h)
	}
	a := harness.Want(t, 404, "POST", p.Env["SERVING_URL"]+"/predict/JPCP", p.Env["SERVING_TOKEN"], map[string]any{"features": map[string]any{"num_nodes": 1}})
	if a.JSON(t)["code"] != "model_not_loaded" {
		t.Fatalf(`problem: %s; want a.JSON(t)["code"] == "model_not_loaded"`, a.Body)
	}
	p.Stop(t)
	// The second start finds everything present.
	t.Logf("start with data present: ready in %s", p.Start(t, 30*time.Second))
}

func listItems(t *testing.T, a harness.Answer) []map[string]any {
	t.Helper()
	var l struct {
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(a.Body, &l); err != nil {
		t.Fatalf("not a list document: %v\n%s", err, a.Body)
	}
	return l.Items
}

// Acceptance row 2: a notice filed as ci, approved as operator, becomes a registered version.
func TestRow02_NoticeApproveRun(t *testing.T) {
	p := sharedPlatform(t)
	cp := p.Env["CONTROL_PLANE_URL"]
	ci, operator := p.Secret(t, "ci_token"), p.Secret(t, "operator_token")
	sha := "0123456789abcdef0123456789abcdef01234567"
	created := harness.Want(t, 200, "POST", cp+"/api/changes", ci, map[string]any{
		"model_ids": []string{"mack"}, "commit_sha": sha, "commit_msg": "deeper trees", "changed_files": []string{"models/performance_prediction/MACK/model.yaml"},
	}).JSON(t)
	ids, _ := created["created"].([]any)
	if len(ids) != 1 {
		t.Fatalf("created: %v; want len(ids) == 1", created)
	}
	id := ids[0].(string)
	if rec := p.Approval(t, id); rec["status"] != "pending" || rec["requested_by"] != "ci" || rec["model_id"] != "MACK" {
		t.Fatalf(`record: %v; want rec["status"] == "pending" && rec["requested_by"] == "ci" && rec["model_id"] == "MACK"`, rec)
	}
	res := harness.Want(t, 200, "POST", cp+"/approve/MACK", operator, map[string]any{"approval_id": id}).JSON(t)
	if res["status"] != "approved" || res["approval_id"] != id {
		t.Fatalf(`answer: %v; want res["status"] == "approved" && res["approval_id"] == id`, res)
	}
	rec := p.Approval(t, id)
	if rec["status"] != "approved" || rec["resolved_by"] != "operator" || rec["prefect_run_id"] != res["flow_run_id"] {
		t.Fatalf(`record: %v; want rec["status"] == "approved" && rec["resolved_by"] == "operator" && rec["prefect_run_id"] == res["flow_run_id"]`, rec)
	}
	run := p.WaitRun(t, res["flow_run_id"].(string), 2*time.Minute)
	if run["state_type"] != "COMPLETED" || run["model_version"] == nil {
		t.Fatalf(`run: %v; want run["state_type"] == "COMPLETED" && run["model_version"] != nil`, run)
	}
	v := trackerVersion(t, p, "mack", fmt.Sprint(run["model_version"]))
	for _, tag := range []string{"artifact_digest", "framework", "modelrepo_commit", "data_origin", "dummy"} {
		if v[tag] == "" {
			t.Errorf("version tag %s is missing: %v", tag, v)
		}
	}
}

// trackerVersion reads the tags of a model version from the tracker.
func trackerVersion(t *testing.T, p *harness.Platform, name, version string) map[string]string {
	t.Helper()
	a := harness.Want(t, 200, "GET", p.Tracker()+"/api/2.0/mlflow/model-versions/get?name="+name+"&version="+version, "", nil)
	var doc struct {
		V struct {
			Tags []struct{ Key, Value string } `json:"tags"`
		} `json:"model_version"`
	}
	if err := json.Unmarshal(a.Body, &doc); err != nil {
		t.Fatal(err)
	}
	tags := map[string]string{}
	for _, tag := range doc.V.Tags {
		tags[tag.Key] = tag.Value
	}
	return tags
}

// heldOutBodies reads the predict bodies of held-out jobs that the first start wrote.
func heldOutBodies(t *testing.T, p *harness.Platform, model string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.Dir, "samples", model+"-job-*.json"))
	if err != nil || len(files) != 5 {
		t.Fatalf("%d held-out bodies of %s, want 5 (%v)", len(files), model, err)
	}
	return files
}
