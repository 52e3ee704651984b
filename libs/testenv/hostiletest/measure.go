package hostiletest

import (
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// MemoryCeiling is the resident memory that no reader of hostile files may reach, in bytes.
const MemoryCeiling = 1 << 30

// CheckAllocation fails the test if read allocates more than ceiling bytes in all, garbage included. Nothing else may
// run in the process meanwhile, as in a worker of the fuzzer or in a test that is not parallel.
func CheckAllocation(t testing.TB, ceiling uint64, read func()) {
	t.Helper()
	before := allocated()
	read()
	if took := allocated() - before; took > ceiling {
		t.Errorf("reading allocated %d KiB; want at most %d", took>>10, ceiling>>10)
	}
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// row is a line of the table.
type row struct {
	files, refused, accepted int
	slowest                  time.Duration
	slowestName              string
	peak                     int64
}

// Feed reads each file in turn and logs a table by kind. It fails the test if one takes longer than limit, or if this
// process reaches MemoryCeiling (without the race detector, which needs more memory). read returns the reason why a
// file was refused, nil if it was accepted, and fails the test itself if the outcome is neither. The test must not be
// parallel: the memory is that of the process.
func Feed(t *testing.T, files []File, limit time.Duration, read func(File) error) {
	t.Helper()
	rows := map[string]*row{}
	for _, f := range files {
		k := rows[f.Kind]
		if k == nil {
			k = &row{}
			rows[f.Kind] = k
		}
		debug.FreeOSMemory() // memory of the previous file is not this one's
		resetPeak(t)
		// A reader that never ends would otherwise be killed minutes later, without a name.
		watch := time.AfterFunc(2*limit+time.Minute, func() { panic(fmt.Sprintf("%s %s: still reading", f.Kind, f.Name)) })
		began := time.Now()
		err := read(f)
		took := time.Since(began)
		watch.Stop()
		k.files++
		if err != nil {
			k.refused++
			if text := err.Error(); len(text) > maxRefusal || strings.ContainsAny(text, "\x00\x1b") {
				t.Errorf("%s %s: the refusal has %d bytes: %.200q; want at most %d, and no control characters", f.Kind, f.Name, len(text), text, maxRefusal)
			}
		} else {
			k.accepted++
		}
		if took > k.slowest {
			k.slowest, k.slowestName = took, f.Name
		}
		peak := peakMemory(t)
		k.peak = max(k.peak, peak)
		if took > limit || peak > MemoryCeiling && !Race {
			t.Errorf("%s %s (%d bytes): took %v and %d MiB, answered %.200v; want at most %v and %d MiB", f.Kind, f.Name, len(f.Data), took, peak>>20, err, limit, MemoryCeiling>>20)
		}
	}
	t.Logf("%-16s %5s %7s %8s %9s %8s", "kind", "files", "refused", "accepted", "slowest", "peak MiB")
	for _, kind := range slices.Sorted(maps.Keys(rows)) {
		k := rows[kind]
		t.Logf("%-16s %5d %7d %8d %9v %8d  (slowest: %s)", kind, k.files, k.refused, k.accepted, k.slowest.Round(time.Millisecond), k.peak>>20, k.slowestName)
	}
}

// maxRefusal limits the text of a refusal, in bytes: it goes to logs and to health.
const maxRefusal = 4 << 10

// resetPeak makes the kernel forget the most resident memory that this process had.
func resetPeak(t testing.TB) {
	t.Helper()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// peakMemory is the most resident memory since resetPeak, in bytes.
func peakMemory(t testing.TB) int64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("/proc/self/status has no VmHWM")
	return 0
}
