package turn

import (
	"context"
	"errors"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Turn is what an engine works on.
type Turn struct {
	Session string
	Number  int32
	Who     event.Who
	Query   string
	History []chat.Message // oldest first, without the query
	// Earlier is what was said before History, oldest first, each message cut short.
	Earlier []chat.Message
	Scope   string // namespace; empty is none in particular
	// Settled is what this turn's decisions, and the writes approved beforehand, led to
	// so far.
	Settled []action.Settled
	// AutoApprove is the request's own.
	AutoApprove bool
	// Untrusted is text of logs, events and annotations that this turn has read.
	Untrusted []string
	// Choice is set on the way to the Planner where a language model chose the write.
	Choice *guard.Choice
}

// Investigator is an engine. It answers through the sink and reaches the cluster
// through the toolbox alone. It returns soon after ctx ends; what it has said by then is
// the partial answer.
type Investigator interface {
	Investigate(ctx context.Context, t Turn, tools Toolbox, sink Sink) (Outcome, error)
}

// Toolbox reads the cluster. Each call and its result are shown to the reader.
type Toolbox interface {
	// Call runs a read. A refusal and a failure of the tool are errors whose text is a
	// sentence for the reader; the engine may go on without the result.
	Call(ctx context.Context, op operation.Operation) (Output, error)
	// Snapshot reads what playbooks look at, of a namespace or with an empty one of all.
	// Each kind that is read is shown as a call. What could not be read is in Unread;
	// an error means that the cluster does not answer.
	Snapshot(ctx context.Context, namespace string) (*engine.Snapshot, error)
}

// Output is what a tool gave: redacted, bounded.
type Output struct {
	Text      string
	Truncated bool // something was left out, and the text says so
	// Untrusted is what of the result the cluster's workloads may have written: log lines,
	// messages of events, annotations.
	Untrusted []string
}

// Sink shows the reader how it goes, and the answer. It is safe for concurrent use.
// What it cannot write ends the turn's context.
type Sink interface {
	Status(phase chat.Phase, message string)
	Plan(steps []chat.Step)
	Token(text string)
}

// Warner is what a Sink may be besides: it tells of a failure that does not end the turn.
type Warner interface {
	Warn(f fault.Failure)
}

// Outcome is how an investigation ended.
type Outcome struct {
	// Write is what the user asked to change; empty is nothing.
	Write []operation.Operation
	// Choice tells of a write that a language model chose; its scope is the turn's.
	Choice *guard.Choice
	// Partial says why the answer is not whole; empty: it is.
	Partial string
	Usage   chat.Usage
}

// Fail is an error whose sentence the reader may see; its cause goes to the log.
type Fail struct {
	Failure fault.Failure
	Cause   error
}

func (f *Fail) Error() string {
	if f.Cause == nil {
		return f.Failure.Message
	}
	return f.Failure.Code + ": " + f.Cause.Error()
}

func (f *Fail) Unwrap() error { return f.Cause }

// Tools are what a toolbox calls.
type Tools interface {
	// Line is the kubectl line that does the same for the turn, values redacted.
	Line(t Turn, op operation.Operation) string
	// Run reads on behalf of the turn's caller.
	Run(ctx context.Context, t Turn, op operation.Operation) (Output, error)
	// Snapshot is as Toolbox says. show is called for each read, in one goroutine, and
	// done when it has ended.
	Snapshot(ctx context.Context, t Turn, namespace string, show func(op operation.Operation) (done func(Output, error))) (*engine.Snapshot, error)
}

// Planner expands, rehearses and judges a write that the turn wants to propose. An
// error is as of action.Cluster's Plan.
type Planner interface {
	Plan(ctx context.Context, t Turn, ops []operation.Operation) (action.Plan, error)
}

// Request is a chat request whose caller is known.
type Request struct {
	Session   string
	Who       event.Who
	RequestID string // the caller's own; empty: none, and nothing is a repeat of it
	Chat      chat.Request
	// After skips what the reader of a repeat has seen already.
	After Place
}

// Place is a frame of a session.
type Place struct{ Turn, Seq int32 }

func (p Place) before(f Frame) bool { return p.Turn < f.Turn || p.Turn == f.Turn && p.Seq < f.Seq }

// Frame is one frame as it is stored.
type Frame struct {
	Place
	Data []byte // must not be changed
}

// How turns end.
const (
	done        = "done"
	proposed    = "proposed"
	partial     = "partial"
	failed      = "failed"
	interrupted = "interrupted" // its owner died
)

// Config is what may be set; a zero means the default.
type Config struct {
	Model     string        // as frames name it
	Limit     time.Duration // of one turn, 300 s
	Orphan    time.Duration // how long a turn goes on without a reader, 60 s
	Busy      time.Duration // how long a second request waits, 1 s
	Repeat    time.Duration // how long a finished turn without a decision can be repeated, 10 min
	Lease     time.Duration // without a sign of life for so long an owner counts as dead, 15 s
	StopAfter time.Duration // how long a new turn waits for an orphan to stop, 30 s
	Notice    string        // last line of every answer; empty: none
	Cluster   string        // the name of the cluster that answers are about
}

func (c Config) withDefaults() Config {
	for v, d := range map[*time.Duration]time.Duration{
		&c.Limit: 300 * time.Second, &c.Orphan: time.Minute, &c.Busy: time.Second, &c.Repeat: 10 * time.Minute,
		&c.Lease: 15 * time.Second, &c.StopAfter: 30 * time.Second,
	} {
		if *v <= 0 {
			*v = d
		}
	}
	if c.Model == "" {
		c.Model = "cluster-assistant"
	}
	return c
}

const (
	maxUnstored  = 256     // frames that readers may have before the store has
	maxLag       = 256     // frames behind, at which a reader is sent away
	maxFrames    = 4 << 20 // bytes that engine and tools may write in one turn
	maxUntrusted = 4 << 20 // bytes of cluster text that a write is judged against
	maxWrites    = 5       // executed in one turn without a person between
	maxHistory   = 20      // messages
	maxEarlier   = 40      // messages before those
	maxGist      = 300     // characters of each of them
	followed     = 15 * time.Second
)

// Why a turn's context ended.
var (
	errLimit      = errors.New("the turn's time is over")
	errOrphaned   = errors.New("nobody reads the turn")
	errSuperseded = errors.New("a newer request took the place")
	errDraining   = errors.New("the server is shutting down")
	errLost       = errors.New("another replica owns the turn now")
	errEnded      = errors.New("the turn has ended")
	errTooLong    = errors.New("the answer is too long")
)

// ErrSlow ends a reader that does not keep up. It may attach again.
var ErrSlow = errors.New("the reader is too far behind")

// ErrGone ends a reader whose turn can be neither finished nor stored now. The stream
// ends without its closing marker, so that the client comes again.
var ErrGone = errors.New("the turn cannot go on here")
