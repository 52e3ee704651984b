//go:build e2e

package assistant_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// The API keys of every process here.
const (
	adminKey    = "ki-admin-Jw3vT9pLq2Xz7RbN5cYd"
	adminKey2   = "ki-admin-Hk8sD4fGm1Va6QeU0xZt"
	operatorKey = "ki-op-Bn6mK2jHg5Fd3Sa9Pq8W"
	readonlyKey = "ki-ro-Xc4vB7nM1lK9jH3gF6dS"
)

// process is one running assistant.
type process struct {
	url  string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// launchAssistant starts the built binary on a free port and waits until it is ready.
func launchAssistant(t testing.TB, database, kubeconfig string, env ...string) *process {
	t.Helper()
	p := launchOnly(t, database, kubeconfig, env...)
	p.waitReady(t)
	return p
}

func launchOnly(t testing.TB, database, kubeconfig string, env ...string) *process {
	t.Helper()
	addr := harness.FreePorts(t, 1)[0]
	p := &process{url: "http://" + addr, log: filepath.Join(t.TempDir(), "assistant.log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the process has its own handle
	p.cmd = exec.Command(harness.Bin(t, "assistant"))
	p.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(),
		"ASSISTANT_ADDR=" + addr, "DRAIN_DELAY=0s", "PLATFORM_DATABASE_URL=" + database, "KUBECONFIG=" + kubeconfig,
		"ASSISTANT_ADMIN_KEYS=" + adminKey + "," + adminKey2, "ASSISTANT_OPERATOR_KEYS=" + operatorKey, "ASSISTANT_READONLY_KEYS=" + readonlyKey,
		"ASSISTANT_RATE_PER_MIN=60000", "ASSISTANT_RATE_BURST=5000",
	}, env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the tests check how it ended
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("assistant's log:\n%s", logTail(p.log))
		}
	})
	return p
}

func (p *process) waitReady(t testing.TB) {
	t.Helper()
	err := retryUntil(60*time.Second, func() error {
		select {
		case <-p.done:
			t.Fatalf("the assistant ended before it was ready:\n%s", logTail(p.log))
		default:
		}
		resp, err := http.Get(p.url + "/readyz")
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz answers %d", resp.StatusCode)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, logTail(p.log))
	}
}

// kill ends the process as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// retryUntil retries every few milliseconds.
func retryUntil(limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
