package child

import (
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func startChild(t *testing.T, args ...string) *Process {
	t.Helper()
	p, err := Start(exec.Command(args[0], args[1:]...), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(t.Context(), syscall.SIGKILL) }) // the test's context has ended: it kills
	return p
}

func TestStop(t *testing.T) {
	t.Parallel()
	p := startChild(t, "sleep", "600")
	if p.Err() != nil || p.PID() == 0 {
		t.Errorf("running: %v, %d; want p.Err() == nil && p.PID() != 0", p.Err(), p.PID())
	}
	for range 2 {
		if err := p.Stop(t.Context(), syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf(`ended: %v; want an error && strings.Contains(err.Error(), "terminated")`, err)
	}
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	t.Parallel()
	p := startChild(t, "sleep", "600")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.Stop(ctx, syscall.SIGCONT); err == nil { // a signal that ends nothing
		t.Error("no error")
	}
	<-p.Done()
}

func TestAnEndWithoutFault(t *testing.T) {
	t.Parallel()
	p := startChild(t, "true")
	<-p.Done()
	if err := p.Err(); err != nil {
		t.Error(err)
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Start(exec.Command("/no/such/program"), syscall.SIGKILL); err == nil {
		t.Error("started a program that is not there")
	}
	if _, err := Start(exec.CommandContext(t.Context(), "true"), syscall.SIGKILL); err == nil {
		t.Error("took a command that a context may kill")
	}
}
