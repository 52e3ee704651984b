package playbook_test

import (
	"encoding/json"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// BenchmarkDiagnose compares, for clusters of 5,000 pods, a diagnosis with its answer to
// the decoding of the same objects: reading is the larger part of a question.
func BenchmarkDiagnose(b *testing.B) {
	for _, shape := range clusterShapes() {
		b.Run(shape.Name, func(b *testing.B) {
			s := newCluster(shape)
			read := measureDecoding(b, s)
			b.ReportAllocs()
			found := 0
			for b.Loop() {
				all := playbook.Diagnose(s, "")
				engine.Answer(s, all)
				found = len(all)
			}
			b.ReportMetric(float64(found), "findings")
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(read), "of-decoding")
		})
	}
}

// measureDecoding is how long the objects of a snapshot take to be read from JSON.
func measureDecoding(b *testing.B, s *engine.Snapshot) time.Duration {
	b.Helper()
	var total time.Duration
	for _, list := range listFields(s) {
		raw, err := json.Marshal(list.Interface())
		if err != nil {
			b.Fatal(err)
		}
		runtime.GC() // of what the test made, not of what is measured
		start := time.Now()
		if err := json.Unmarshal(raw, reflect.New(list.Type()).Interface()); err != nil {
			b.Fatal(err)
		}
		total += time.Since(start)
	}
	return total
}
