//go:build e2e

package loop

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// Killed in the middle of its first start, the platform seeds the rest at the next one.
func TestKilledWhileSeeding(t *testing.T) {
	p := harness.New(t)
	p.Start(t, 60*time.Second)
	p.WaitOutput(t, "RuntimeClass     evaluate", 2*time.Minute, time.Now())
	p.Kill()
	p.Start(t, 60*time.Second)
	p.WaitOutput(t, "Next:", 4*time.Minute, time.Now())
	if strings.Contains(p.Output(), "RuntimeRegressor evaluate") {
		t.Error("a sample that was served before the kill was trained again")
	}
	h := harness.Want(t, 200, "GET", p.Env["SERVING_URL"]+"/health", "", nil).JSON(t)
	if h["models_loaded"] != 5.0 {
		t.Fatalf(`inference health: %v; want h["models_loaded"] == 5.0`, h)
	}
}

// The reason why the platform cannot start is one clear sentence with exit code 1, and nothing is left running.
func TestRefusedStarts(t *testing.T) {
	for _, tc := range []struct {
		name  string
		setup func(t *testing.T, p *harness.Platform)
		want  []string
	}{
		{"port in use", func(t *testing.T, p *harness.Platform) {
			l, err := net.Listen("tcp", p.Setting("INFERENCE_ADDR"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		}, []string{"in use", "INFERENCE_ADDR"}},
		{"newer data directory", func(t *testing.T, p *harness.Platform) {
			p.Start(t, 30*time.Second)
			p.Stop(t)
			if err := os.WriteFile(filepath.Join(p.Dir, "layout"), []byte("999\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, []string{"newer version"}},
		{"address that is not loopback", func(_ *testing.T, p *harness.Platform) {
			p.Set("TRACKER_ADDR", "0.0.0.0:15999")
		}, []string{"TRACKER_ADDR", "loopback"}},
		{"several wrong settings at once", func(_ *testing.T, p *harness.Platform) {
			p.Set("TRACKER_ADDR", "nonsense")
			p.Set("PLATFORM_LOG_TO", "printer")
			p.Set("PLATFORM_TRAINING_CONCURRENCY", "0")
		}, []string{"TRACKER_ADDR", "PLATFORM_LOG_TO", "PLATFORM_TRAINING_CONCURRENCY"}},
		{"data directory is a file", func(t *testing.T, p *harness.Platform) {
			if err := os.WriteFile(p.Dir, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}, []string{filepath.Base("data")}},
		{"placeholder secret", func(_ *testing.T, p *harness.Platform) {
			p.Set("CONTROL_PLANE_CREDENTIALS_JSON", `{"changeme-changeme-changeme":{"principal":"a","tenant":"t","scopes":["read"]}}`)
		}, []string{"placeholder"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := harness.New(t, "PLATFORM_SEED=false")
			tc.setup(t, p)
			p.Launch(t)
			select {
			case <-p.Done():
			case <-time.After(30 * time.Second):
				t.Fatalf("it started:\n%s", p.Output())
			}
			out := p.Output()
			if p.ExitCode() != 1 {
				t.Errorf("exit %d; want 1", p.ExitCode())
			}
			for _, w := range tc.want {
				if !strings.Contains(out, w) {
					t.Errorf("says nothing of %q:\n%s; want strings.Contains(out, w)", w, out)
				}
			}
			if strings.Contains(out, "goroutine ") {
				t.Errorf("a stack trace:\n%s; want !strings.Contains(out, \"goroutine \")", out)
			}
		})
	}
}

// status and stop work from a second shell; one directory serves one platform.
func TestSecondShell(t *testing.T) {
	p := harness.New(t, "PLATFORM_SEED=false")
	if _, errOut, code := p.Exec(t, "platform", "status"); code != 1 || !strings.Contains(errOut, "no platform runs") {
		t.Fatalf(`status of nothing: exit %d %s; want code == 1 && strings.Contains(errOut, "no platform runs")`, code, errOut)
	}
	p.Start(t, 30*time.Second)
	var doc struct {
		PID      int `json:"pid"`
		Services []struct{ Name, Status string }
	}
	if err := json.Unmarshal([]byte(p.Run(t, "platform", "status", "--json")), &doc); err != nil || doc.PID != p.Pid() || len(doc.Services) != 8 {
		t.Fatalf("%v %+v; want doc.PID == p.Pid() && len(doc.Services) == 8", err, doc)
	}
	for _, s := range doc.Services {
		if s.Status != "ready" {
			t.Errorf(`%s is %s; want s.Status == "ready"`, s.Name, s.Status)
		}
	}
	other := harness.New(t, "PLATFORM_SEED=false")
	other.Set("PLATFORM_DATA_DIR", p.Dir)
	other.Launch(t)
	<-other.Done()
	if out := other.Output(); other.ExitCode() != 1 || !strings.Contains(out, "another platform") {
		t.Errorf(`exit %d: %s; want other.ExitCode() == 1 && strings.Contains(out, "another platform")`, other.ExitCode(), out)
	}
	info, err := os.Stat(filepath.Join(p.Dir, "credentials.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("credentials.json: %v %v; want info.Mode().Perm() == 0o600", info.Mode(), err)
	}
	if out := p.Run(t, "platform", "stop"); !strings.Contains(out, "stopped") {
		t.Errorf(`stop says %q; want strings.Contains(out, "stopped")`, out)
	}
	select {
	case <-p.Done():
		if p.ExitCode() != 0 {
			t.Errorf("exit %d after stop\n%s; want p.ExitCode() == 0", p.ExitCode(), p.Output())
		}
	case <-time.After(10 * time.Second):
		t.Error("it still runs")
	}
	log, err := os.ReadFile(filepath.Join(p.Dir, "platform.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"control_plane_token", "operator_token", "serving_token", "nats_token", "modelrepo_webhook_secret"} {
		if strings.Contains(string(log), p.Secret(t, secret)) {
			t.Errorf("the log holds %s; want !strings.Contains(string(log), p.Secret(t, secret))", secret)
		}
	}
}
