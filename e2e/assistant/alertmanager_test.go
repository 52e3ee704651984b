//go:build e2e

package assistant_test

import (
	"bytes"
	"fmt"
	"net/http"
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

const alertKey = "ki-alert-Tq8wE3rY6uI1oP4aS7dF"

// receiver is the Alertmanager configuration in the manual.
var receiver = regexp.MustCompile("(?s)```yaml\n(route:\n  receiver: assistant\n.*?)```")

// startAlertmanager runs the real Alertmanager with the configuration of the manual and short waits.
func startAlertmanager(t *testing.T, assistant string) (url string) {
	t.Helper()
	bin, err := exec.Command(filepath.Join(harness.Root(t), "scripts", "tool.sh"), "alertmanager").Output()
	if err != nil {
		t.Fatalf("build Alertmanager: %v", err)
	}
	page, err := os.ReadFile(filepath.Join(harness.Root(t), "docs", "assistant.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := receiver.FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/assistant.md has no configuration of Alertmanager")
	}
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	config := string(block[1])
	for old, with := range map[string]string{
		"http://assistant:18004": assistant, "/run/secrets/assistant-alert-key": key,
		"  group_by: [": "  group_wait: 100ms\n  group_interval: 1s\n  repeat_interval: 1s\n  group_by: [",
	} {
		if !strings.Contains(config, old) {
			t.Fatalf("the configuration lacks %q:\n%s", old, config)
		}
		config = strings.Replace(config, old, with, 1)
	}
	for file, text := range map[string]string{key: alertKey + "\n", filepath.Join(dir, "alertmanager.yml"): config} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addr := harness.FreePorts(t, 1)[0]
	var log bytes.Buffer
	cmd := exec.Command(strings.TrimSpace(string(bin)), "--config.file="+filepath.Join(dir, "alertmanager.yml"), "--storage.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--cluster.listen-address=", "--data.retention=1h")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, so it always returns an error
		if t.Failed() {
			t.Logf("Alertmanager's log:\n%s", log.String())
		}
	})
	url = "http://" + addr
	if err := retryUntil(30*time.Second, func() error {
		resp, err := http.Get(url + "/-/ready")
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("not ready: %d", resp.StatusCode)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return url
}

// TestAlertmanager makes the real Alertmanager send an alert, repeat it and resolve it.
func TestAlertmanager(t *testing.T) {
	p := launchAssistant(t, newDatabase(t), "", "ASSISTANT_ENGINE=playbooks", "ASSISTANT_CLUSTER=sample", "ASSISTANT_ALERT_KEYS="+alertKey)
	manager := startAlertmanager(t, p.url)
	alert := map[string]any{
		"labels":      map[string]string{"alertname": "DeploymentDown", "namespace": "shop", "deployment": "api", "severity": "critical"},
		"annotations": map[string]string{"summary": "api has no replica"}, "generatorURL": "http://prometheus.example/graph",
		"startsAt": time.Now().UTC().Format(time.RFC3339), "endsAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	}
	post := func() {
		t.Helper()
		harness.Want(t, http.StatusOK, http.MethodPost, manager+"/api/v2/alerts", "", []any{alert})
	}
	// messages returns the messages of the only session.
	messages := func() ([]any, error) {
		items, _ := harness.Want(t, http.StatusOK, http.MethodGet, p.url+"/v1/sessions", readonlyKey, nil).JSON(t)["items"].([]any)
		if len(items) != 1 {
			return nil, fmt.Errorf("got %d sessions, want 1", len(items))
		}
		id := items[0].(map[string]any)["session_id"].(string)
		list, _ := harness.Want(t, http.StatusOK, http.MethodGet, p.url+"/v1/sessions/"+id, readonlyKey, nil).JSON(t)["messages"].([]any)
		return list, nil
	}
	// awaitAnswer waits for a number of messages, the last of which contains a text.
	awaitAnswer := func(n int, text string) {
		t.Helper()
		if err := retryUntil(60*time.Second, func() error {
			list, err := messages()
			if err != nil {
				return err
			}
			if len(list) != n {
				return fmt.Errorf("got %d messages, want %d", len(list), n)
			}
			if last := list[n-1].(map[string]any)["content"].(string); !strings.Contains(last, text) {
				return fmt.Errorf("got %s\nwant %q in it", last, text)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	awaitRepeats := func() {
		t.Helper()
		if err := retryUntil(60*time.Second, func() error {
			text := string(harness.Want(t, http.StatusOK, http.MethodGet, p.url+"/metrics", "", nil).Body)
			if !strings.Contains(text, `assistant_alerts_total{outcome="repeated"}`) {
				return fmt.Errorf("no repeat arrived")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	post()
	awaitAnswer(2, "DATABASE_URL")
	awaitRepeats()
	awaitAnswer(2, "DATABASE_URL")
	alert["endsAt"] = time.Now().UTC().Format(time.RFC3339)
	post()
	awaitAnswer(4, "Resolved: 1 alert no longer fires.")
}
