package batch

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/model"
)

func openModel(t testing.TB, files map[string][]byte) *model.Model {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := model.Open(os.DirFS(dir), model.Options{Threads: 1, Rows: 32})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func newTestJob(m *model.Model, x float64) *Job {
	j := NewJob()
	m.Schema().Fit(&j.Row)
	m.Schema().Numbers(&j.Row, 0)[0] = x
	return j
}

func TestEachJobGetsItsOwnResult(t *testing.T) {
	t.Parallel()
	m := openModel(t, fixturetest.Linear(t, "m", 0, fixturetest.Column{Name: "x", Kind: "number", Weight: 2}))
	var rows atomic.Int64
	for _, opt := range []Options{
		{Sessions: 2, Rows: 32, Waiting: 64},
		{Sessions: 1, Rows: 4, Waiting: 64, Wait: time.Millisecond},
		{Sessions: 3, Rows: 1, Waiting: 64},
	} {
		opt.Observe = func(n int) {
			if n < 1 || n > opt.Rows {
				t.Errorf("a run of %d rows, at most %d are wanted", n, opt.Rows)
			}
			rows.Add(int64(n))
		}
		rows.Store(0)
		q := New(m, opt)
		var kept atomic.Int64
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				for n := range 200 {
					x := float64(w*1000 + n)
					j := newTestJob(m, x)
					q.Submit(j)
					// Some leave at once; Abandon is false when the result was first, and then it is there.
					left := rand.IntN(10) == 0
					if left && j.Abandon() {
						continue // the queue frees it
					}
					if !left {
						<-j.Done()
					}
					kept.Add(1)
					if j.Result.Err != nil || j.Result.Number != 2*x {
						t.Errorf("%v answered %+v; want j.Result.Number == 2 * x", x, j.Result)
					}
					j.Free()
				}
			})
		}
		wg.Wait()
		q.Close()
		if got := rows.Load(); got < kept.Load() {
			t.Errorf("%d rows ran for %d results; want got >= kept.Load()", got, kept.Load())
		}
	}
}

// A row does not wait for the tensors that were submitted after it, and none of them for a later one.
func TestTensorsDoNotHoldUpRows(t *testing.T) {
	t.Parallel()
	m := openModel(t, fixturetest.Linear(t, "m", 0, fixturetest.Column{Name: "x", Kind: "number", Weight: 2}))
	var ran []int
	q := &Queue{model: m, opt: Options{Rows: 32, Observe: func(n int) { ran = append(ran, n) }}, jobs: make(chan *Job, 16)}
	tensors := func(rows int) *Job {
		j := NewJob()
		j.Tensors, j.Rows = []runtime.Tensor{model.NewTensor(runtime.Float, []int64{int64(rows), 1})}, rows
		return j
	}
	submitted := []*Job{newTestJob(m, 1), tensors(2), tensors(3), newTestJob(m, 2), newTestJob(m, 3), tensors(4)}
	for _, j := range submitted {
		q.Submit(j)
	}
	close(q.jobs)
	q.session() // alone, so that the order of the runs is the queue's
	if diff := cmp.Diff([]int{1, 2, 3, 2, 4}, ran); diff != "" {
		t.Errorf("rows of the runs, in their order, differ from want:\n%s", diff)
	}
	for i, j := range submitted {
		select {
		case <-j.Done():
		default:
			t.Fatalf("job %d has no result after the session's end, want one", i)
		}
		if j.Result.Err != nil || j.Rows != len(firstOutput(j)) {
			t.Errorf("job %d: error %v and outputs %v; want %d rows", i, j.Result.Err, j.Outputs, j.Rows)
		}
		j.Free()
	}
}

func firstOutput(j *Job) []float32 {
	if j.Tensors == nil {
		return nil
	}
	return j.Outputs[0].Floats
}
