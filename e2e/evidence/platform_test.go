//go:build e2e

package evidence_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// The platform starts the evidence API on a store of samples, exports the variables that a shell needs to read and
// write it, and keeps written evidence.
func TestPlatformServesEvidence(t *testing.T) {
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, time.Minute)
	if got := runIDs(t, p); len(got) != 3 || got[1] != "run/demo:0002" {
		t.Fatalf(`the sample store has the runs %q; want len(got) == 3 && got[1] == "run/demo:0002"`, got)
	}
	// The address in the banner opens the page with the token in it, once.
	p.WaitOutput(t, "Stop with Ctrl-C", time.Minute, time.Now())
	launch := regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?launch=\S+`).FindString(p.Output())
	for i, want := range []bool{true, false} {
		resp, err := http.Get(launch)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s, %v; want resp.StatusCode == http.StatusOK", resp.Status, err)
		}
		if has := strings.Contains(string(page), p.Env["SVC_CONTROL_TOWER_TOKEN"]); has != want {
			t.Errorf("load %d of the launch address: token %v, want %v", i+1, has, want)
		}
	}
	dir := t.TempDir()
	projection := filepath.Join(dir, "run.json")
	sample, err := os.ReadFile(filepath.Join(harness.Root(t), "clients", "svc-cli", "internal", "samples", "files", "spine", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(projection, []byte(strings.Replace(string(sample), "run/demo:0001", "run/platform:0001", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	svc := harness.Bin(t, "svc")
	for _, args := range [][]string{
		{"run", "create", projection, "--store", p.Env["PLATFORM_EVIDENCE_STORE"], "--idempotency-key", "platform-test"},
		{"verify", p.Env["PLATFORM_EVIDENCE_STORE"]},
	} {
		if out, err := exec.Command(svc, args...).CombinedOutput(); err != nil {
			t.Fatalf("svc %s: %v\n%s", args[0], err, out)
		}
	}
	if got := runIDs(t, p); len(got) != 4 {
		t.Errorf("after run create: %q; want len(got) == 4", got)
	}
	p.Stop(t)
	p.Start(t, time.Minute)
	if got := runIDs(t, p); len(got) != 4 {
		t.Errorf("after a restart: %q; want len(got) == 4", got)
	}
}

func runIDs(t *testing.T, p *harness.Platform) (ids []string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.Env["SVC_CONTROL_TOWER_URL"]+"/api/v1/runs", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-SVC-UI-Token", p.Env["SVC_CONTROL_TOWER_TOKEN"])
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var page struct {
		Items []struct {
			RunID string `json:"run_id"`
		} `json:"items"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("runs: %s, %v; want resp.StatusCode == http.StatusOK", resp.Status, err)
	}
	for _, item := range page.Items {
		ids = append(ids, item.RunID)
	}
	return ids
}
