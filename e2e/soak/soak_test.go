//go:build soak

package soak

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// every is the time between two samples of all processes.
const every = 15 * time.Second

var (
	memoryFloors    = floors{share: 0.10, least: 16 << 20}
	goroutineFloors = floors{share: 0.10, least: 20}
)

// TestSoak loads the running platform for SOAK_MINUTES. Memory and goroutines of no process keep growing, none is
// restarted, and every request gets the right answer.
func TestSoak(t *testing.T) {
	minutes := 20
	if v := os.Getenv("SOAK_MINUTES"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 3 {
			t.Fatalf("SOAK_MINUTES is %q; it must be a number of 3 or more", v)
		}
		minutes = n
	}
	observed := findProcesses(t)
	l := newLoad(t)
	l.prepare(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Duration(minutes)*time.Minute)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { l.keepUp(ctx) })
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		for _, p := range observed {
			l.count("samples", p.sample())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	wg.Wait()
	report(t, observed, l)
}

// report prints the tables and fails the test if they show a fault.
func report(t *testing.T, observed []*process, l *load) {
	t.Helper()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nprocess\tsamples\tMiB, first third\tlast third\tgrowth\tgoroutines, first third\tlast third\tgrowth\t")
	for _, p := range observed {
		warm := len(p.memory) / 10 // caches and pools fill
		memory, goroutines := measureGrowth(p.memory[warm:], memoryFloors), measureGrowth(p.goroutines[warm:], goroutineFloors)
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%+.1f %%\t%.0f\t%.0f\t%+.1f %%\t\n", p.name, len(p.memory),
			memory.first/(1<<20), memory.last/(1<<20), percent(memory), goroutines.first, goroutines.last, percent(goroutines))
		if memory.keepsOn {
			t.Errorf("%s: resident memory keeps growing, from %.1f to %.1f MiB", p.name, memory.first/(1<<20), memory.last/(1<<20))
		}
		if goroutines.keepsOn {
			t.Errorf("%s: the number of goroutines keeps growing, from %.0f to %.0f", p.name, goroutines.first, goroutines.last)
		}
	}
	fmt.Fprintln(w, "\t")
	fmt.Fprintln(w, "load\tdone\terrors\t")
	for _, what := range slices.Sorted(maps.Keys(l.done)) {
		fmt.Fprintf(w, "%s\t%d\t%d\t\n", what, l.done[what], len(l.failed[what]))
		if len(l.failed[what]) > 0 {
			t.Errorf("%s: %d of %d failed, first %s", what, len(l.failed[what]), l.done[what], l.failed[what][0])
		}
		if l.done[what] == 0 {
			t.Errorf("%s: nothing was done", what)
		}
	}
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
}

func percent(g growth) float64 {
	if g.first == 0 {
		return 0
	}
	return 100 * (g.last - g.first) / g.first
}
