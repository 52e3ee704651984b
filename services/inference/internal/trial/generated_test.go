package trial_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/trial"
)

// residentBytes is the memory of this process and of its children now.
func residentBytes() (total int64) {
	own := strconv.Itoa(os.Getpid())
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, p := range all {
		raw, err := os.ReadFile(p)
		if err != nil {
			continue // it has ended
		}
		var pid, parent string
		var rss int64
		for line := range strings.Lines(string(raw)) {
			name, value, _ := strings.Cut(line, ":")
			value = strings.TrimSpace(value)
			switch name {
			case "Pid":
				pid = value
			case "PPid":
				parent = value
			case "VmRSS":
				rss, _ = strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
			}
		}
		name, _ := os.ReadFile(filepath.Dir(p) + "/cmdline")
		if pid == own || parent == own && strings.Contains(string(name), "try-model") {
			total += rss << 10
		}
	}
	return total
}

// A thousand files that must not be served are refused, each with a reason, within a gigabyte of resident memory for
// this process and its trials together.
func TestThousandHostileFiles(t *testing.T) {
	t.Parallel()
	const files, ceiling = 1000, 1 << 30
	r, dir := newRunner(t, 2*time.Minute)
	stop, peak := make(chan struct{}), make(chan int64, 1)
	go func() {
		var most int64
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				peak <- most
				return
			case <-tick.C:
				most = max(most, residentBytes())
			}
		}
	}()
	hostiles := fixturetest.Hostiles(t, files, 20260101)
	began := time.Now()
	var mu sync.Mutex // guards all below
	reasons, processes, largest := map[string]string{}, 0, int64(0)
	var wg sync.WaitGroup
	next := make(chan fixturetest.Hostile)
	for range 8 { // as many as the catalog loads at once
		wg.Go(func() {
			for h := range next {
				res, err := r.Try(t.Context(), folder(h.Files), model.Options{Threads: 1, Rows: 32, RunLimit: time.Minute}, false)
				var refusal *trial.Refusal
				if !errors.As(err, &refusal) || refusal.Reason == "" {
					t.Errorf("%s: got %v, want a refusal", h.Kind, err)
					continue
				}
				mu.Lock()
				reasons[h.Kind], largest = refusal.Reason, max(largest, res.PeakRSS)
				if res.PeakRSS > 0 {
					processes++
				}
				mu.Unlock()
			}
		})
	}
	for _, h := range hostiles {
		next <- h
	}
	close(next)
	wg.Wait()
	close(stop)
	most := <-peak
	for kind, reason := range reasons {
		t.Logf("%-22s %s", kind, reason)
	}
	t.Logf("%d files refused in %v, %d of them by a process, of at most %d MiB; all together stayed below %d MiB",
		files, time.Since(began).Round(time.Second), processes, largest>>20, most>>20+1)
	if most > ceiling || largest > maxRSS {
		t.Errorf("resident memory reached %d MiB, that of one trial %d; want at most %d and %d", most>>20, largest>>20, ceiling>>20, int64(maxRSS)>>20)
	}
	sound := fixturetest.Linear(t, "m", 1, fixturetest.Column{Name: "x", Kind: "number", Weight: 1})
	if res, err := r.Try(t.Context(), folder(sound), model.Options{Threads: 1, Rows: 32, RunLimit: time.Minute}, false); err != nil || res.Bounds.Rows != 32 {
		t.Errorf("a sound model afterwards: %d rows, %v; want 32", res.Bounds.Rows, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("trials left %v, %v; want an empty folder", left, err)
	}
}
