package runtime_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

// One run of a forest of 100 trees: one input of 22 columns, or one input per column. Rows vary, since
// one row repeated makes trees look several times faster.
func BenchmarkRun(b *testing.B) {
	const columns, variants = 22, 512
	for _, perColumn := range []bool{false, true} {
		data, _ := randomForest(b, columns, 100, perColumn)
		s := openSession(b, data)
		for _, n := range []int{1, 8, 32, 256} {
			rng := rand.New(rand.NewPCG(9, 9))
			batches := make([][]runtime.Tensor, variants)
			for i := range batches {
				if !perColumn {
					batches[i] = []runtime.Tensor{{Floats: randomRows(rng, n, columns), Dims: []int64{int64(n), columns}}}
					continue
				}
				for range columns {
					batches[i] = append(batches[i], runtime.Tensor{Floats: randomRows(rng, n, 1), Dims: []int64{int64(n), 1}})
				}
			}
			b.Run(fmt.Sprintf("columns=%v/rows=%d", perColumn, n), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if _, err := s.Run(batches[i%variants]); err != nil {
						b.Fatal(err)
					}
					i++
				}
			})
		}
	}
}
