//go:build e2e

// Package browser_test opens every local page of svc in a real Chromium, uses it by keyboard only, in dark and in
// light, wide and narrow, and checks it with axe. Screenshots are written to .cache/screenshots.
package browser_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

const (
	startTime    = 20 * time.Second
	scenarioTime = 3 * time.Minute
)

// scenario is the input of a script of this folder.
type scenario struct {
	Name       string   `json:"name"` // of its screenshots
	URL        string   `json:"url"`
	Launch     string   `json:"launch"` // the address to open first
	Token      string   `json:"token"`
	Scheme     string   `json:"scheme"`
	Size       string   `json:"size"`
	Shots      string   `json:"shots"`
	Chromium   string   `json:"chromium"`
	Svc        string   `json:"svc"`
	Store      string   `json:"store,omitempty"`
	Projection string   `json:"projection,omitempty"` // a run to create while the page watches
	Texts      []string `json:"texts,omitempty"`
}

// forEachLook calls f for each combination of looks that a page must support.
func forEachLook(t *testing.T, f func(t *testing.T, scheme, size string)) {
	for _, scheme := range []string{"dark", "light"} {
		for _, size := range []string{"wide", "narrow"} {
			t.Run(scheme+"-"+size, func(t *testing.T) { f(t, scheme, size) })
		}
	}
}

func TestControlTower(t *testing.T) {
	forEachLook(t, func(t *testing.T, scheme, size string) {
		dir := t.TempDir()
		runSvc(t, dir, "fixtures", "samples", "--store", "store.db")
		key := "browser-" + scheme + "-" + size
		run, err := os.ReadFile(filepath.Join(dir, "samples/spine/run.json"))
		if err != nil {
			t.Fatal(err)
		}
		projection := filepath.Join(dir, key+".json")
		if err := os.WriteFile(projection, bytes.ReplaceAll(run, []byte("run/demo:0001"), []byte("run/"+key)), 0o600); err != nil {
			t.Fatal(err)
		}
		token := rand.Text() + rand.Text()
		launch := servePage(t, dir, token, "control-tower", "samples/spine/report.json", "--port", "0", "--no-browser", "--product-spine-store", "store.db")
		playScript(t, "tower.cjs", scenario{
			Name: "tower", Launch: launch, Token: token, Scheme: scheme, Size: size,
			Store: filepath.Join(dir, "store.db"), Projection: projection,
		})
	})
}

func TestGateEditor(t *testing.T) {
	forEachLook(t, func(t *testing.T, scheme, size string) {
		dir := t.TempDir()
		runSvc(t, dir, "fixtures", "samples")
		token := rand.Text() + rand.Text()
		launch := servePage(t, dir, token, "gate-audit-ui", "samples/gate/panel.json", "--port", "0", "--no-browser")
		playScript(t, "gate.cjs", scenario{Name: "gate", Launch: launch, Token: token, Scheme: scheme, Size: size})
	})
}

func TestStewardPages(t *testing.T) {
	for _, page := range []struct {
		name  string
		args  []string
		texts []string
	}{
		{"steward-report", []string{"steward-report-ui", "samples/steward/history/day-1/steward-report.json"}, []string{"example/demo", "completed"}},
		{"steward-history", []string{"steward-history-ui", "samples/steward/history"}, []string{"example/demo", "blocked"}},
	} {
		t.Run(page.name, func(t *testing.T) {
			forEachLook(t, func(t *testing.T, scheme, size string) {
				dir := t.TempDir()
				runSvc(t, dir, "fixtures", "samples")
				launch := servePage(t, dir, "", append(page.args, "--port", "0", "--no-browser")...)
				playScript(t, "steward.cjs", scenario{Name: page.name, Launch: launch, Scheme: scheme, Size: size, Texts: page.texts})
			})
		})
	}
}

// runSvc runs a command in a folder; it must succeed.
func runSvc(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command(harness.Bin(t, "svc"), args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("svc %q: %v\n%s", args, err, out)
	}
}

// address matches the last line of a serving command: the URL of its page.
var address = regexp.MustCompile(`(?m)^(?:open once|steward-[a-z]+-ui): (http://127\.0\.0\.1:\S+)$`)

// servePage starts a command that serves a page, and returns the address to open. The command ends with the test, by a
// signal and with code 0.
func servePage(t *testing.T, dir, token string, args ...string) string {
	t.Helper()
	cmd := exec.Command(harness.Bin(t, "svc"), args...)
	cmd.Dir = dir
	if token != "" {
		cmd.Env = append(os.Environ(), "SVC_CONTROL_TOWER_TOKEN="+token)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := address.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case found <- m[1]:
				default: // later ones are not needed
				}
			}
		}
		_, _ = io.Copy(io.Discard, out) // a line too long for the scanner must not block the command
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("svc %s ended by itself: %v", args[0], err)
		}
		<-drained
		if err := cmd.Wait(); err != nil {
			t.Errorf("svc %s after SIGTERM: %v", args[0], err)
		}
	})
	select {
	case url := <-found:
		return url
	case <-drained:
		t.Fatalf("svc %s ended before it served", args[0])
	case <-time.After(startTime):
		t.Fatalf("svc %s did not tell its address within %s", args[0], startTime)
	}
	return ""
}

// playScript runs a script against a page.
func playScript(t *testing.T, script string, s scenario) {
	t.Helper()
	root := harness.Root(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: run scripts/setup.sh e2e", err)
	}
	s.Chromium, s.Svc, s.Shots = chromium, harness.Bin(t, "svc"), filepath.Join(root, ".cache", "screenshots")
	s.URL = s.Launch[:strings.LastIndex(s.Launch, "/")]
	told, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), scenarioTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join(root, "e2e", "browser", script))
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(root, ".cache", "browser", "node_modules"))
	cmd.Stdin = bytes.NewReader(told)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
}
