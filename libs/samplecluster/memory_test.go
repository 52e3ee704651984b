package samplecluster_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/samplecluster"
)

// The cluster lives inside a process that has better uses for its memory. The test is not parallel: it measures the heap.
func TestMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	c := samplecluster.New(time.Now)
	defer c.Close()
	after := heap()
	if used := int64(after) - int64(before); used > 20<<20 {
		t.Errorf("the sample cluster holds %d bytes; want used <= 20 << 20", used)
	} else {
		t.Logf("the sample cluster holds %d KiB", used>>10)
	}
}
