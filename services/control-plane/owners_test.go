package controlplane_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// repositoryWithOwner copies the samples; the model MACK belongs to the tenant other.
func repositoryWithOwner(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(controlplanetest.Samples())); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "models", "*", "MACK", "model.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v, %v, want one file", found, err)
	}
	raw, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(found[0], append(raw, "\ntenant: other\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The guards and records of a model belong to the tenant in model.yaml: for all others it is 404, and in no list. Two
// people of another tenant cannot set its threshold to 0.
func TestModelBelongsToItsOwner(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "MODELREPO_DIR="+repositoryWithOwner(t))
	theirs, ours := controlplanetest.Foreign, controlplanetest.Operator
	policy := doc{"metric": "rmse", "operator": "lt", "threshold": 0, "approval_mode": "run"}
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"GET", "/promotion-policies/%s", nil}, {"PUT", "/promotion-policies/%s", policy}, {"DELETE", "/promotion-policies/%s", nil},
		{"GET", "/promotions/%s/gate", nil}, {"POST", "/aliases/%s/Production/rollback", doc{"reason": "x"}},
		{"PUT", "/auto-retrain/%s", doc{"enabled": true}}, {"POST", "/promotions", doc{"model": "%s"}}, {"POST", "/drift/trigger", doc{"model": "%s"}},
	} {
		for bearer, model := range map[string]string{theirs: "JPCP", ours: "MACK"} {
			body := c.body
			if b, ok := body.(doc); ok && b["model"] != nil {
				body = doc{"model": model}
			}
			p.Refused(404, "model_not_found", c.method, strings.Replace(c.path, "%s", model, 1), bearer, body)
		}
	}
	p.Want(200, "GET", "/promotion-policies/MACK", theirs, nil)
	p.Want(200, "GET", "/promotion-policies/JPCP", ours, nil)
	p.Want(200, "PUT", "/auto-retrain/MACK", theirs, doc{"enabled": true})
	p.SQL(`insert into control_plane.alias_history (id, model_id, alias, version, from_at, actor, via) values (gen_random_uuid(), 'JPCP', 'Production', '7', now(), 'alice-of-ours', 'promotion')`)
	for _, path := range []string{"/promotion-policies", "/auto-retrain", "/alias-history", "/alias-history?model=JPCP", "/modelrepo/events", "/modelrepo/status", "/governance/changes", "/alerts", "/model-owners"} {
		if r := p.Want(200, "GET", path, theirs, nil); strings.Contains(string(r.Body), "JPCP") || strings.Contains(string(r.Body), "alice-of-ours") {
			t.Errorf("%s shows another tenant's model: %s", path, r.Body)
		}
		if r := p.Want(200, "GET", path, ours, nil); strings.Contains(string(r.Body), "MACK") {
			t.Errorf("%s shows another tenant's model: %s", path, r.Body)
		}
	}
	p.Refused(404, "repository_not_found", "GET", "/modelrepo/config", theirs, nil)
	p.Refused(404, "repository_not_found", "PUT", "/modelrepo/config", theirs, doc{"gate": "direct"})
	p.Want(200, "GET", "/modelrepo/config", ours, nil)

	// Even for a caller who may train, a version that another tenant has trained takes no alias.
	version := p.Tracker.Add("jpcp", controlplanetest.Good("rmse", 10.0))
	p.Refused(404, "model_not_found", "POST", "/versions", theirs, doc{"model": "JPCP", "version": version})
	run := p.Want(200, "POST", "/retrain", theirs, retrainOf("JPCP")).Object(t)["flow_run_id"]
	out := p.Want(200, "POST", "/versions", controlplanetest.Trainer, doc{"model": "JPCP", "version": version, "flow_run_id": run}).Object(t)
	if set := out["aliases_set"].([]any); len(set) != 0 || out["promotion_id"] != nil {
		t.Errorf("got %v for a version of another tenant, want no alias and no promotion", out)
	}
}
