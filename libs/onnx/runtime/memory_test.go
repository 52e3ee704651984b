//go:build linux

package runtime_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

// residentMiB is the resident memory of this process that no file backs.
func residentMiB(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("\nRssAnon:"))
	kib, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// Closed models leave no memory behind: by default the C library keeps the memory that each of its threads freed for
// that thread alone, and a server grows with each new version.
func TestClosedModelsGiveTheirMemoryBack(t *testing.T) {
	before := residentMiB(t)
	forest, _ := randomForest(t, 12, 600, false)
	var mu sync.Mutex // guards sessions
	var sessions []*runtime.Session
	var wg sync.WaitGroup
	for range 8 { // as many threads
		wg.Go(func() {
			s := openSession(t, forest)
			rng := rand.New(rand.NewPCG(1, 2))
			if _, err := s.Run([]runtime.Tensor{{Floats: randomRows(rng, 64, 12), Dims: []int64{64, 12}}}); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			sessions = append(sessions, s)
		})
	}
	wg.Wait()
	open := residentMiB(t)
	for _, s := range sessions {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	debug.FreeOSMemory() // what Go holds is not meant
	if closed := residentMiB(t); closed-before > (open-before)/2 {
		t.Errorf("got %d MiB resident after eight models were closed, %d while they were open and %d before; want at most half of what they took", closed, open, before)
	}
}
