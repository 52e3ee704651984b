// Package batch runs rows through a model in micro-batches: a free session takes the rows that wait, so
// batches grow with the load and a lone row waits for nothing.
package batch

import (
	"errors"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// Options bound a queue.
type Options struct {
	Sessions int           // runs at the same time
	Rows     int           // rows in a run, at most
	Wait     time.Duration // how long a run waits for more rows; 0 takes the rows present
	Waiting  int           // rows that may wait; Submit beyond it blocks, so admit fewer
	// Observe is called with the rows of each run; nil: not called.
	Observe func(rows int)
}

// Job is one row, or the tensors of several, on its way through a queue. Take it from NewJob and give it back with
// Free, once.
type Job struct {
	Row    schema.Row
	Result model.Result
	// Tensors are the graph's inputs for a job of Rows rows, which then run by themselves and not by Row; nil: Row runs.
	// They must not change until the job is done, abandoned or not.
	Tensors []runtime.Tensor
	Rows    int
	Outputs []runtime.Tensor // of a job with Tensors, unless Result has an error

	state atomic.Int32
	done  chan struct{}
}

const (
	pending   int32 = iota
	finished        // the result is there; the submitter frees the job
	abandoned       // the submitter has left; the queue frees the job
)

var jobs = sync.Pool{New: func() any { return &Job{done: make(chan struct{}, 1)} }}

// NewJob is a job to fill.
func NewJob() *Job {
	j := jobs.Get().(*Job)
	j.state.Store(pending)
	return j
}

// Done receives when the result is there.
func (j *Job) Done() <-chan struct{} { return j.done }

// Abandon gives a submitted job up. It is false when the result came first: then it is the submitter's
// to use and free.
func (j *Job) Abandon() bool {
	if j.state.CompareAndSwap(pending, abandoned) {
		return true
	}
	<-j.done
	return false
}

// Free returns a job that was not submitted, or whose result came.
func (j *Job) Free() {
	j.Result, j.Tensors, j.Outputs, j.Rows = model.Result{}, nil, nil, 0
	jobs.Put(j)
}

// Queue feeds one model.
type Queue struct {
	model *model.Model
	opt   Options
	jobs  chan *Job
	wg    sync.WaitGroup
	stop  atomic.Pointer[error] // answers rows without a run; nil while they run
}

// ErrTakenOut answers the rows that waited for a model when it was taken out of service.
var ErrTakenOut = errors.New("the model was taken out of service: a run took too long")

// New starts the sessions' goroutines; Close ends them.
func New(m *model.Model, opt Options) *Queue {
	opt.Rows = max(1, min(opt.Rows, m.Rows()))
	q := &Queue{model: m, opt: opt, jobs: make(chan *Job, max(opt.Waiting, 1))}
	for range max(opt.Sessions, 1) {
		q.wg.Go(q.session)
	}
	return q
}

// Submit hands a filled job over. It must not be called after Close.
func (q *Queue) Submit(j *Job) { q.jobs <- j }

// Sessions is how many runs happen at the same time.
func (q *Queue) Sessions() int { return max(q.opt.Sessions, 1) }

// Rows is how many rows a run takes at most.
func (q *Queue) Rows() int { return q.opt.Rows }

// Waiting is how many rows wait now.
func (q *Queue) Waiting() int { return len(q.jobs) }

// Stop makes the queue answer err to every row from now on, including the waiting ones. It does not wait for runs.
func (q *Queue) Stop(err error) { q.stop.Store(&err) }

// Close lets the rows that wait be answered and returns when all sessions have ended.
func (q *Queue) Close() {
	close(q.jobs)
	q.wg.Wait()
}

func (q *Queue) session() {
	b := q.model.NewBatch()
	taken := make([]*Job, 0, q.opt.Rows)
	rows := make([]*schema.Row, 0, q.opt.Rows)
	results := make([]model.Result, q.opt.Rows)
	var held *Job
	for {
		first := held
		if held = nil; first == nil {
			var ok bool
			if first, ok = <-q.jobs; !ok {
				return
			}
		}
		if first.Tensors != nil {
			q.runTensors(first)
			continue
		}
		taken, held = q.take(append(taken[:0], first))
		rows = rows[:0]
		live := taken[:0]
		for _, j := range taken {
			if j.state.Load() == abandoned { // the caller has gone: leave the session to the others
				j.Free()
				continue
			}
			live = append(live, j)
			rows = append(rows, &j.Row)
		}
		if len(live) == 0 {
			continue
		}
		if err := q.stop.Load(); err != nil {
			for i := range rows {
				results[i] = model.Result{Err: *err}
			}
		} else {
			b.Run(rows, results[:len(rows)])
		}
		if q.opt.Observe != nil {
			q.opt.Observe(len(rows))
		}
		for i, j := range live {
			j.Result = results[i]
			results[i] = model.Result{}
			j.finish()
		}
	}
}

func (j *Job) finish() {
	if j.state.CompareAndSwap(pending, finished) {
		j.done <- struct{}{}
	} else {
		j.Free()
	}
}

// runTensors runs one job's tensors. Rows of other jobs do not join them: the caller has made a batch of them already.
func (q *Queue) runTensors(j *Job) {
	if j.state.Load() == abandoned {
		j.Free()
		return
	}
	if err := q.stop.Load(); err != nil {
		j.Result.Err = *err
	} else {
		j.Outputs, j.Result.Err = q.model.RunTensors(j.Tensors, j.Rows)
	}
	if q.opt.Observe != nil {
		q.opt.Observe(j.Rows)
	}
	j.finish()
}

// take adds waiting rows up to the most a run takes. It stops at a job of tensors, which is the next round's: a session
// that collected many of them would let the rows beside them wait for them all.
func (q *Queue) take(taken []*Job) (rows []*Job, held *Job) {
	// Requests that are ready to run are about to submit their rows: with them first in turn, a busy
	// service makes batches of ten instead of one. Without load this returns at once.
	goruntime.Gosched()
	for len(taken) < q.opt.Rows {
		select {
		case j, ok := <-q.jobs:
			if !ok {
				return taken, nil
			}
			if j.Tensors != nil {
				return taken, j
			}
			taken = append(taken, j)
			continue
		default:
		}
		break
	}
	if q.opt.Wait <= 0 || len(taken) == q.opt.Rows {
		return taken, nil
	}
	timer := time.NewTimer(q.opt.Wait)
	defer timer.Stop()
	for len(taken) < q.opt.Rows {
		select {
		case j, ok := <-q.jobs:
			if !ok {
				return taken, nil
			}
			if j.Tensors != nil {
				return taken, j
			}
			taken = append(taken, j)
		case <-timer.C:
			return taken, nil
		}
	}
	return taken, nil
}
