//go:build e2e && full

package stack

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// suites are the tests that need only addresses, tokens and the five samples. The others of these packages start, stop
// or kill a process, rely on records of the one process's first start, or use the bus and gRPC, which containers do not
// publish.
var suites = []struct {
	folder string
	tests  []string
}{
	{"dashboard", []string{"TestLoopByMouseWhileAViewerWatches", "TestLoopByKeysAlone", "TestPasswordLoginAndLogout", "TestEveryPageInEveryLook", "TestStreamCut"}}, // in Chromium, which expects version 2 of what is trained
	{"loop", []string{"TestRow02_NoticeApproveRun", "TestRow04_PromoteServes", "TestRow05_PromotionDenied", "TestRow06_Margins", "TestRow07_Features",
		"TestRow13_Idempotency", "TestRow24_CostsCountOnce", "TestRow25_OfficialMLflowClient", "TestTritonClient", "TestLoopWithMLP"}},
}

// The suites of the one process pass on containers with several replicas of each service.
func TestSuitesPassOnReplicas(t *testing.T) {
	dir := t.TempDir()
	secrets := os.Getenv("PLATFORM_SECRETS_DIR")
	if secrets == "" {
		secrets = filepath.Join(harness.Root(t), ".data", "compose", "secrets")
	}
	credentials, err := os.ReadFile(filepath.Join(secrets, "credentials.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "credentials.json"), credentials, 0o600); err != nil {
		t.Fatal(err)
	}
	// Jobs that no sample was trained on: the one process writes them with its first training.
	one := harness.New(t)
	one.Start(t, 3*time.Minute)
	one.WaitOutput(t, "Next:", 8*time.Minute, time.Now())
	one.Stop(t)
	if err := os.CopyFS(filepath.Join(dir, "samples"), os.DirFS(filepath.Join(one.Dir, "samples"))); err != nil {
		t.Fatal(err)
	}

	vars := maps.Clone(environment)
	vars["E2E_PLATFORM"], vars["CI"], vars["PLATFORM_MODELREPO"] = dir, "true", os.Getenv("MODELREPO")
	p := &harness.Platform{Dir: dir, Env: vars}
	for _, model := range []string{"JPCP", "MACK", "MCBOUND", "RuntimeClass", "RuntimeRegressor"} {
		p.Run(t, "mlp", "--yes", "retrain", model, "--follow")
	}
	second := p.Secret(t, "operator_token") // no one decides their own requests
	for _, promotion := range harness.Want(t, http.StatusOK, "GET", vars["CONTROL_PLANE_URL"]+"/promotions?state=pending", second, nil).JSON(t)["items"].([]any) {
		harness.Want(t, http.StatusOK, "POST", vars["CONTROL_PLANE_URL"]+"/promotions/"+promotion.(map[string]any)["id"].(string)+"/approve", second, nil)
	}
	harness.Eventually(t, time.Minute, func() error {
		if n := harness.Want(t, http.StatusOK, "GET", vars["SERVING_URL"]+"/health", "", nil).JSON(t)["models_loaded"]; n != 5.0 {
			return fmt.Errorf("got %v models loaded, want 5", n)
		}
		return nil
	})
	for _, s := range suites {
		t.Run(s.folder, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "test", "-tags", "e2e", "-count", "1", "-timeout", "20m", "-v", "-run", "^("+strings.Join(s.tests, "|")+")$", "./"+s.folder)
			cmd.Dir, cmd.Env = filepath.Join(harness.Root(t), "e2e"), p.Environ()
			out, err := cmd.CombinedOutput()
			text := string(out)
			for _, name := range s.tests {
				if !strings.Contains(text, "--- PASS: "+name+" (") {
					err = errors.Join(err, fmt.Errorf("%s did not pass", name))
				}
			}
			if strings.Contains(text, "--- SKIP: ") {
				err = errors.Join(err, errors.New("skipped tests are failures here"))
			}
			if err != nil {
				t.Fatalf("got %v, want all to pass\n%s", err, text)
			}
			t.Logf("%d tests of ./%s", len(s.tests), s.folder)
		})
	}
	t.Run("mlp", func(t *testing.T) { runLoop(t, p) }) // last: its sync makes it a requester of later trainings
}

// runLoop runs the whole life of a model with only mlp and git.
func runLoop(t *testing.T, p *harness.Platform) {
	root, mlp := harness.Root(t), harness.Bin(t, "mlp")
	for _, line := range [][]string{
		{"contexts.sh", "containers", filepath.Join(p.Dir, "credentials.json"), mlp},
		{"loop.sh", "--context", "containers", "--repo", p.Env["PLATFORM_MODELREPO"], "--mlp", mlp},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(root, "scripts", line[0]), line[1:]...)
		cmd.Env = append(p.Environ(), "HOME="+p.Dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line[0], err, out)
		}
		if want := "LOOPMODEL: version 1, then 2, then 1 again"; line[0] == "loop.sh" && !strings.Contains(string(out), want) {
			t.Errorf("got\n%s\nwant %s", out, want)
		}
	}
}
