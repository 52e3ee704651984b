//go:build e2e

package eval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/testenv"
)

const key = "ki-ro-Xc4vB7nM1lK9jH3gF6dS"

// assistant is a running assistant, and a proxy that counts its requests to the API server.
type assistant struct {
	url   string
	calls atomic.Int64
	limit time.Duration // of one answer
}

// startAssistant starts the built binary in front of a cluster.
func startAssistant(t testing.TB, c *cluster, limit time.Duration, env ...string) *assistant {
	t.Helper()
	a := &assistant{limit: limit}
	kubeconfig := a.openProxy(t, c.Config)
	database := testenv.Migrated(t, "assistant-eval", func(ctx context.Context, url string) error {
		cmd := exec.CommandContext(ctx, harness.Bin(t, "assistant"), "migrate")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PLATFORM_DATABASE_URL=" + url}
		if out, err := cmd.CombinedOutput(); err != nil {
			return errors.New(strings.TrimSpace(string(out)))
		}
		return nil
	})
	addr := harness.FreePorts(t, 1)[0]
	a.url = "http://" + addr
	cmd := exec.Command(harness.Bin(t, "assistant"))
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ASSISTANT_ADDR=" + addr, "DRAIN_DELAY=0s", "PLATFORM_DATABASE_URL=" + database,
		"KUBECONFIG=" + kubeconfig, "ASSISTANT_READONLY_KEYS=" + key, "ASSISTANT_RATE_PER_MIN=0", "EVENT_PUBLISHER=log", "LOG_LEVEL=warn",
	}, env...)
	logs, err := os.Create(filepath.Join(t.TempDir(), "assistant.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close() // the process has its own handle
	cmd.Stdout, cmd.Stderr = logs, logs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }() // its log shows how it ended
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	testenv.Eventually(t, time.Minute, func() error {
		resp, err := http.Get(a.url + "/readyz")
		if err != nil {
			text, _ := os.ReadFile(logs.Name())
			return fmt.Errorf("%w\n%s", err, text)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz answers %d", resp.StatusCode)
		}
		return nil
	})
	return a
}

// openProxy serves the API server until the test ends, and returns a kubeconfig that points to it.
func (a *assistant) openProxy(t testing.TB, to *rest.Config) (kubeconfig string) {
	t.Helper()
	target, err := url.Parse(to.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.calls.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["eval"] = &clientcmdapi.Cluster{Server: server.URL}
	cfg.Contexts["eval"] = &clientcmdapi.Context{Cluster: "eval"}
	cfg.CurrentContext = "eval"
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// ask sends one question as the first of a session, and returns the text of the answer.
func (a *assistant) ask(ctx context.Context, session, question string) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	body, err := json.Marshal(map[string]any{"messages": []map[string]string{{"role": "user", "content": question}}})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("X-Session-ID", session)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		detail, _ := io.ReadAll(resp.Body)
		return "", fmt.Errorf("status %d: %s", resp.StatusCode, detail)
	}
	var b strings.Builder
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var frame struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal([]byte(data), &frame); err != nil {
			return b.String(), err
		}
		for _, c := range frame.Choices {
			b.WriteString(c.Delta.Content)
		}
	}
	return b.String(), lines.Err()
}
