package turn

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/clustername"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
)

// Turn is the input of an engine.
type Turn struct {
	Session string
	Number  int32
	Who     event.Who
	Query   string
	Page    string         // what the client shows its user; untrusted, see chat.CutPage
	History []chat.Message // oldest first, without the query
	// Earlier is the conversation before History, oldest first, each message shortened.
	Earlier []chat.Message
	Cluster string // as stored with the session; empty: clusters are not configured by name
	Scope   string // namespace; empty is none in particular
	// Settled holds the outcomes so far of this turn's decisions and of writes approved in
	// advance.
	Settled []action.Settled
	// AutoApprove is the flag of the request.
	AutoApprove bool
	// NoDecisions means that no word of the caller's messages decides: answers name the other ways.
	NoDecisions bool
	// Unspoken means that a program wrote the query, and no person: it is no wish of anybody.
	Unspoken bool
	// Untrusted is text of logs, events and annotations that this turn has read.
	Untrusted []string
	// Choice is set for the Planner if a language model chose the write.
	Choice *guard.Choice
}

// Investigator is an engine. It answers through the sink and reads the cluster only through the
// toolbox. It returns soon after ctx ends; the text written until then is the partial answer.
type Investigator interface {
	Investigate(ctx context.Context, t Turn, tools Toolbox, sink Sink) (Outcome, error)
}

// Toolbox reads the cluster. Each call and its result are shown to the reader.
type Toolbox interface {
	// Call runs a read. A refusal or failure of the tool is an error whose text is a sentence
	// for the reader; the engine may continue without the result.
	Call(ctx context.Context, op operation.Operation) (Output, error)
	// Snapshot reads what playbooks examine, in one namespace or, if it is empty, in all. Each
	// kind that is read is shown as a call. Kinds that could not be read are in Unread; an
	// error means that the cluster does not answer.
	Snapshot(ctx context.Context, namespace string) (*engine.Snapshot, error)
	// Runbooks returns what a team wrote down for any of some subjects, outside of the cluster. It is text that is no more
	// trusted than an annotation.
	Runbooks(of ...runbook.Subject) []runbook.Quote
	// MetricLabels finds the labels in which the metrics store has the names of some pods and of their namespaces; known are
	// all pods of the cluster. It is not shown: the query that follows names them. Its errors are those of Call.
	MetricLabels(ctx context.Context, metric string, pods, known []types.NamespacedName) (MetricLabels, error)
}

// MetricLabels are the labels of a metric's series in which the names of pods and namespaces are, written as PromQL takes
// them. An empty one: no label holds these names.
type MetricLabels struct {
	Namespace, Pod string
	All            []string // every label of its series; none if there are no series
}

// Output is the result of a tool, redacted and limited in size.
type Output struct {
	Text      string
	Truncated bool // something was left out, and the text says so
	// Untrusted is the part of the result that workloads of the cluster may have written: log
	// lines, event messages, annotations.
	Untrusted []string
	// Whole is a log or a list before it was cut to the length of a result, redacted; empty for all
	// else. It is for an engine to count in, never to be shown as it is.
	Whole string
	// WholeTruncated reports that even Whole is only a part. Whole itself has no line about that.
	WholeTruncated bool
	// Empty reports that nothing was found, and that Text is a sentence about that.
	Empty bool
	// References name the objects that were read, the first MaxReferences.
	References []operation.Reference
}

// MaxReferences limits the references of one result.
const MaxReferences = 200

// Cite adds a reference, unless there are enough.
func (o *Output) Cite(r operation.Reference) {
	if len(o.References) < MaxReferences {
		o.References = append(o.References, r)
	}
}

type wholeLogKey struct{}

// WantWholeLog requests the whole log in Whole, instead of the last lines only.
func WantWholeLog(ctx context.Context) context.Context {
	return context.WithValue(ctx, wholeLogKey{}, true)
}

// WantsWholeLog reports whether WantWholeLog was called.
func WantsWholeLog(ctx context.Context) bool { return ctx.Value(wholeLogKey{}) != nil }

// Sink shows progress and the answer to the reader. It is safe for concurrent use. A frame that
// cannot be written ends the turn's context.
type Sink interface {
	Status(phase chat.Phase, message string)
	Plan(steps []chat.Step)
	Token(text string)
}

// Warner is an optional part of a Sink: it reports a failure that does not end the turn.
type Warner interface {
	Warn(f fault.Failure)
}

// Outcome is the result of an investigation.
type Outcome struct {
	// Write is the change that the user requested; empty for none.
	Write []operation.Operation
	// Choice describes a write that a language model chose; its scope is the turn's.
	Choice *guard.Choice
	// Partial is the reason why the answer is incomplete; empty if it is complete.
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

// Tools makes the calls of a toolbox.
type Tools interface {
	// Line returns the equivalent kubectl command for the turn, with values redacted.
	Line(t Turn, op operation.Operation) string
	// Run reads on behalf of the turn's caller.
	Run(ctx context.Context, t Turn, op operation.Operation) (Output, error)
	// Snapshot is described at Toolbox. show is called for each read, from one goroutine, and
	// done when the read has ended.
	Snapshot(ctx context.Context, t Turn, namespace string, show func(op operation.Operation) (done func(Output, error))) (*engine.Snapshot, error)
	// Runbooks is described at Toolbox.
	Runbooks(of ...runbook.Subject) []runbook.Quote
	// MetricLabels is described at Toolbox.
	MetricLabels(ctx context.Context, t Turn, metric string, pods, known []types.NamespacedName) (MetricLabels, error)
}

// Planner expands, dry-runs and judges a write that the turn wants to propose. Its errors are
// those of Plan in action.Cluster.
type Planner interface {
	Plan(ctx context.Context, t Turn, ops []operation.Operation) (action.Plan, error)
}

// Request is a chat request whose caller is known.
type Request struct {
	Session   string
	Cluster   string // as it is stored; empty: that of the session, or the default for a new one
	Who       event.Who
	RequestID string // from the caller; without one, nothing is a repeat of the request
	Chat      chat.Request
	// After skips the frames that the reader of a repeat has already seen.
	After Place
	// Program is set if a program wrote the query, and no person.
	Program *Program
}

// Program describes a request that a program makes. Its query decides nothing, its proposals are never approved in
// advance, and its words never count as a person's wish, in this turn or in later ones. An alert's request neither
// proposes a write nor carries out one that was approved: the next turn of a person does.
type Program struct {
	Kind ProgramKind
	// Engine answers in place of the service's.
	Engine Investigator
	// Proposed is called, from one goroutine and before the reader's end, with the pending action of a write or with
	// the reason why there is none; it may be nil.
	Proposed func(action.Action, error)
}

// ProgramKind is the purpose of a program's request.
type ProgramKind string

// The kinds. The conversation keeps the words of an alert, since later questions are about it; those of a proposal are
// told by its answer.
const (
	KindProposal ProgramKind = "proposal"
	KindAlert    ProgramKind = "alert"
)

// alert reports whether an alert asks. Its turn reads, and does nothing else.
func (q Request) alert() bool { return q.Program != nil && q.Program.Kind == KindAlert }

// word returns the query as a decision. A program decides nothing.
func (q Request) word() chat.Word {
	if q.Program != nil {
		return chat.Word{}
	}
	return q.Chat.Word()
}

// Place identifies a frame of a session.
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

// Config holds the settings; a zero means the default.
type Config struct {
	Model     string        // the model name in frames
	Limit     time.Duration // of one turn, 300 s
	Orphan    time.Duration // how long a turn continues without a reader, 60 s
	Busy      time.Duration // how long a second request waits, 1 s
	Repeat    time.Duration // how long a finished turn without a decision can be repeated, 10 min
	Lease     time.Duration // an owner without a heartbeat for this long counts as dead, 15 s
	StopAfter time.Duration // how long a new turn waits for an orphan to stop, 30 s
	Notice    string        // last line of every answer; empty: none, or the cluster's name if it was configured
	Clusters  clustername.Names
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
	maxUnstored  = 256 // frames that readers may get before they are stored
	maxLag       = 256 // lag in frames at which a reader is disconnected
	burstFrames  = maxLag / 4
	burstPause   = 10 * time.Millisecond // no model writes so many frames in that time
	maxFrames    = 4 << 20               // bytes that engine and tools may write in one turn
	maxUntrusted = 4 << 20               // bytes of cluster text that a write is judged against
	maxWrites    = 5                     // executed in one turn without a human decision in between
	maxHistory   = 20                    // messages
	maxEarlier   = 40                    // messages before those
	maxGist      = 300                   // characters of each of them
	followed     = 15 * time.Second
)

// Why a turn's context ended.
var (
	errLimit      = errors.New("the turn's time is over")
	errOrphaned   = errors.New("the turn has no readers")
	errSuperseded = errors.New("a newer request took the place")
	errDraining   = errors.New("the server is shutting down")
	errLost       = errors.New("another replica owns the turn now")
	errEnded      = errors.New("the turn has ended")
	errTooLong    = errors.New("the answer is too long")
)

// ErrSlow ends a reader that is too slow. It may attach again.
var ErrSlow = errors.New("the reader is too far behind")

// ErrGone ends a reader whose turn can neither be finished nor stored now. The stream ends
// without its closing marker, so that the client reconnects.
var ErrGone = errors.New("the turn cannot continue here")
