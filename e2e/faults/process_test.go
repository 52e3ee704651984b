//go:build e2e || faults

package faults

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// part is a process of the installation.
type part struct {
	name  string
	start func()        // in the test's goroutine
	kill  func()        // kill -9, and wait for the end
	up    func() error  // reports whether it works
	ended func() bool   // reports whether it ended without being told to, which none should
	back  time.Duration // the longest time from a start after a kill until it worked
	kills int
}

// startTimeout limits each start; Postgres and the broker recover their files in it.
const startTimeout = time.Minute

// dies kills the part, leaves it dead for a while, calls a function meanwhile, and starts it again.
func (p *part) dies(t *testing.T, dead time.Duration, meanwhile func()) {
	t.Helper()
	p.kill()
	p.kills++
	meanwhile()
	letTimePass(t, dead)
	p.returns(t)
}

func (p *part) returns(t *testing.T) {
	t.Helper()
	begin := time.Now()
	p.start()
	harness.Eventually(t, startTimeout, p.up)
	p.back = max(p.back, time.Since(begin))
}

// letTimePass lets time pass in tests of time itself.
func letTimePass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	case <-time.After(d):
	}
}

// process is a child with its output in a file.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
}

// spawn starts a child that dies with the test.
func (w *world) spawn(name string, env []string, bin string, args ...string) *process {
	w.t.Helper()
	log, err := os.OpenFile(filepath.Join(w.dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close() // the child has its own handle
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	p := &process{cmd: cmd, stdin: in, done: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(p.done) }()
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// child makes a part of a command that is started anew each time.
func (w *world) child(name string, up func() error, env []string, bin string, args ...string) *part {
	var p *process
	w.t.Cleanup(func() {
		if p != nil {
			p.kill()
		}
	})
	return &part{
		name: name, up: up,
		start: func() { p = w.spawn(name, env, bin, args...) },
		kill:  func() { p.kill() },
		ended: func() bool {
			select {
			case <-p.done:
				return true
			default:
				return false
			}
		},
	}
}

// logTail returns the end of a child's output, for failures.
func (w *world) logTail(name string) string {
	data, _ := os.ReadFile(filepath.Join(w.dir, name+".log"))
	if len(data) > 3000 {
		data = data[len(data)-3000:]
	}
	return fmt.Sprintf("\n--- %s\n%s", name, data)
}
