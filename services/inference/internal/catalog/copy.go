package catalog

import (
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/services/inference/internal/batch"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/model"
)

// Copy is one version of a model, open and warm. Users acquire and release it; it is closed after its last release.
type Copy struct {
	Name       string // upper-case
	Tracker    string // the tracker's name
	Version    string
	RunID      string
	Flavor     string
	Digest     string
	Verified   bool
	DataOrigin string
	Dummy      bool
	LoadedAt   time.Time
	Model      *model.Model

	queue *batch.Queue
	out   atomic.Bool // taken out of service
	refs  atomic.Int64
	free  func(*Copy) // called once, with the last release
	// idle is called with the releases before; nil where residents are not limited.
	idle func()
}

// The flavors of copies: run in this process, or by a scoring server.
const (
	FlavorONNX   = "onnx"
	FlavorPython = "pyfunc"
)

// acquire is false when the last user has already left.
func (c *Copy) acquire() bool {
	for {
		n := c.refs.Load()
		if n == 0 {
			return false
		}
		if c.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release ends one use.
func (c *Copy) Release() {
	switch left := c.refs.Add(-1); {
	case left == 0:
		c.free(c)
	case c.idle != nil:
		c.idle()
	}
}

// Submit queues a job; the caller's use of the copy must last until the job is done or abandoned.
func (c *Copy) Submit(j *batch.Job) { c.queue.Submit(j) }

// Sessions is how many runs of the copy happen at the same time.
func (c *Copy) Sessions() int { return c.queue.Sessions() }

// Rows is how many rows one run takes at most.
func (c *Copy) Rows() int { return c.queue.Rows() }

// Slot is a copy in its role: an alias that points to it, or its bare version.
type Slot struct {
	*Copy
	Alias   string // "" when the version was named
	Metrics *metrics.Predictions
	// Head and Tail are the parts of a prediction's JSON around the prediction itself, which are the same
	// for every request. Tail is without the closing brace.
	Head, Tail []byte

	used atomic.Int64 // when it was acquired last, in nanoseconds; kept where residents are limited
}

func newSlot(c *Copy, alias string, m *metrics.Set) *Slot {
	s := &Slot{Copy: c, Alias: alias, Metrics: m.For(c.Name, alias)}
	s.Head = append(s.Head, `{"model_name":`...)
	s.Head = appendString(s.Head, c.Name)
	s.Head = append(s.Head, `,"model_version":`...)
	s.Head = appendString(s.Head, c.Version)
	s.Head = append(s.Head, `,"run_id":`...)
	s.Head = appendString(s.Head, c.RunID)
	s.Head = append(s.Head, `,"prediction":`...)
	if alias != "" {
		s.Tail = appendString(append(s.Tail, `,"alias":`...), alias)
	}
	if unit := c.Model.Schema().Output.Unit; unit != "" {
		s.Tail = appendString(append(s.Tail, `,"unit":`...), unit)
	}
	return s
}

// Entry is one model in the table.
type Entry struct {
	Name    string // upper-case
	Tracker string
	Aliases map[string]*Slot // by canonical alias
	Gate    *Gate
}

// Production is the slot for requests that name no alias or version; nil when there is none.
func (e *Entry) Production() *Slot { return e.Aliases[Production] }

// Gate counts the requests of one model that were admitted, over all its versions.
type Gate struct{ n atomic.Int64 }

// Enter admits one request if fewer than most are inside.
func (g *Gate) Enter(most int) bool { return g.EnterMany(1, most) }

// EnterMany is Enter for a request that counts as n.
func (g *Gate) EnterMany(n, most int) bool {
	if g.n.Add(int64(n)) > int64(most) {
		g.n.Add(int64(-n))
		return false
	}
	return true
}

// Leave ends an admitted request.
func (g *Gate) Leave() { g.LeaveMany(1) }

// LeaveMany ends an admitted request that counts as n.
func (g *Gate) LeaveMany(n int) { g.n.Add(int64(-n)) }

// Table is an immutable snapshot of the loaded models.
type Table struct{ models map[string]*Entry }

// Model finds an entry by upper-case name.
func (t *Table) Model(name string) *Entry { return t.models[name] }
