package trial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/model"
)

// memory is an artifact in memory.
type memory map[string][]byte

func (m memory) ReadFile(name string, _ int64) ([]byte, error) {
	data, ok := m[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

func (m memory) Size() int64 { return 1 }

// processBelow finds the process whose working folder is below dir, once it may use no core files: it has its limits then.
func processBelow(dir string) (pid int, err error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		if cwd, err := os.Readlink(p + "/cwd"); err != nil || !strings.HasPrefix(cwd, dir+"/") {
			continue
		}
		if limits, err := os.ReadFile(p + "/limits"); err == nil && strings.Contains(string(limits), "Max core file size        0                    0") {
			return strconv.Atoi(filepath.Base(p))
		}
	}
	return 0, fmt.Errorf("no process works below %s", dir)
}

// A process that is stopped most of the time simulates one on a machine under load: the trial takes several times its
// limit, and passes, since the limit counts processor time.
func TestTrialCountsProcessorTime(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second
	dir := t.TempDir()
	r, err := New(Config{Dir: dir, Memory: 768 << 20, Time: limit})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := r.Try(t.Context(), memory(fixturetest.Slow(t, "m")), model.Options{Threads: 1, Rows: 1, RunLimit: limit}, false)
		done <- err
	}()
	var pid int
	testenv.Eventually(t, 20*time.Second, func() (err error) {
		pid, err = processBelow(dir)
		return err
	})
	beat := time.NewTicker(limit / 3)
	defer beat.Stop()
	for time.Since(began) < 2*limit {
		used, _ := processTime(pid)
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, 20*time.Second, func() error {
			if now, err := processTime(pid); err != nil || now == used {
				return fmt.Errorf("%s of processor time: %w", now, errors.Join(err, errors.New("it has not run yet")))
			}
			return nil
		})
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done: // it got by with those moments
			if err != nil {
				t.Fatalf("the trial ended after %s: %v; want it to wait", time.Since(began), err)
			}
			return
		case <-beat.C:
		}
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("a model that waited for the processor was refused: %v", err)
	}
}

// A process that computes from time to time is never idle, and may never use up its processor time: the timer ends it.
// This process is not the binary's own and has no limits.
func TestTrialEndsByTheClock(t *testing.T) {
	t.Parallel()
	r, err := New(Config{Dir: t.TempDir(), Memory: 768 << 20, Time: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	r.command = []string{"/bin/sh", "-c", "while :; do sleep 0.1; done"}
	r.longest = time.Second
	_, err = r.Try(t.Context(), noFiles{}, model.Options{Threads: 1, Rows: 1}, false)
	var refusal *Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, "took more than 1s by the clock") {
		t.Errorf("got %v, want a refusal for the time by the clock", err)
	}
	for processor, want := range map[time.Duration]time.Duration{time.Second: 20 * time.Second, 20 * time.Second: 400 * time.Second, time.Hour: longest} {
		if got := clockLimit(processor); got != want {
			t.Errorf("%s of processor time: got %s by the clock, want %s", processor, got, want)
		}
	}
}

// Faults found together are separated.
func TestRefusalSeparatesFaults(t *testing.T) {
	t.Parallel()
	got := refuse("%s", errors.Join(errors.New("input \"x\" is none"), errors.New("output \"y\" is none"))).Error()
	if want := `input "x" is none; output "y" is none`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
