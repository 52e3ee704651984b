package investigate

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/registry"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Config holds the settings; its zero value is a cluster without a name.
type Config struct {
	// ClusterName is the name of the cluster in answers; if empty, they do not name it.
	ClusterName string
	// Complaints makes a sentence that is not understood a complaint about the scope: the caller has already requested
	// a diagnosis, for example by a command's name.
	Complaints bool
	// Found is called with the findings for a question, for counters; it may be nil.
	Found func([]engine.Finding)
	// WatchLimit is the longest that an answer waits for a line with wait, watch or status; 0: not at all.
	WatchLimit time.Duration
}

// Engine is the playbook engine. It is safe for concurrent use and keeps no state between turns.
type Engine struct {
	cfg   Config
	facts *registry.Registry
}

var _ turn.Investigator = (*Engine)(nil)

// New makes an engine.
func New(c Config) *Engine { return &Engine{c, registry.New()} }

// Investigate implements turn.Investigator.
func (e *Engine) Investigate(ctx context.Context, t turn.Turn, tools turn.Toolbox, sink turn.Sink) (turn.Outcome, error) {
	w := &work{Engine: e, turn: t, tools: tools, sink: sink, read: map[string]*engine.Snapshot{}, names: map[string]clusterNames{}}
	if chat.ParseWord(t.Query).Verdict != chat.NoVerdict {
		return w.afterDecision(ctx)
	}
	return w.answer(ctx, w.parse(ctx, t.Query))
}

// work is one turn.
type work struct {
	*Engine
	turn  turn.Turn
	tools turn.Toolbox
	sink  turn.Sink
	steps []chat.Step
	// read holds the snapshots of this turn, by namespace.
	read map[string]*engine.Snapshot
	// names holds the names in them.
	names map[string]clusterNames
	said  bool
	// spent counts the log data read for this question so far.
	spent spentLogs
}

// answer answers or carries out a sentence.
func (w *work) answer(ctx context.Context, a question.Ask) (turn.Outcome, error) {
	switch {
	case a.Intent == question.Line:
		return w.line(ctx, a.Line)
	case a.Invalid != "":
		w.say(refuseName(a.Invalid))
		return turn.Outcome{}, nil
	}
	if moreExpr.MatchString(a.Words) {
		if ok, err := w.more(ctx); ok || err != nil {
			return turn.Outcome{}, err
		}
	}
	a, err := w.followUp(ctx, a)
	if err != nil {
		return turn.Outcome{}, err
	}
	if parts, left := a.Questions(); len(parts) > 1 {
		return w.askEach(ctx, parts, left)
	}
	switch a.Intent {
	case question.Greeting:
		w.say(w.greeting())
		return turn.Outcome{}, nil
	case question.Assent:
		if w.turn.NoDecisions {
			w.say(assentElsewhere)
		} else {
			w.say(assentText)
		}
		return turn.Outcome{}, nil
	case question.Order:
		return turn.Outcome{}, w.order(ctx, a)
	case question.Held:
		w.say(heldText)
		return turn.Outcome{}, nil
	case question.Request:
		return w.request(ctx, a)
	}
	return turn.Outcome{}, w.ask(ctx, a)
}

// say adds a paragraph to the answer. Long ones are sent in pieces, so that readers see the first lines early.
func (w *work) say(text string) {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	if w.said {
		text = "\n\n" + text
	}
	w.said = true
	const most = 600
	for text != "" {
		n := len(text)
		if n > most {
			if n = strings.LastIndexByte(text[:most], '\n') + 1; n == 0 {
				n = len(text)
				if at := strings.IndexByte(text, '\n'); at >= 0 {
					n = at + 1
				}
			}
		}
		w.sink.Token(text[:n])
		text = text[n:]
	}
}

// plan shows the steps of the turn.
func (w *work) plan(steps ...string) {
	for _, s := range steps {
		w.steps = append(w.steps, chat.Step{Description: s, Status: chat.StepPending})
	}
	w.steps[0].Status = chat.StepInProgress
	w.show()
}

func (w *work) show() { w.sink.Plan(append([]chat.Step(nil), w.steps...)) }

// next ends the current step and begins the next.
func (w *work) next() {
	for i := range w.steps {
		if w.steps[i].Status == chat.StepInProgress {
			w.steps[i].Status = chat.StepDone
			if i+1 < len(w.steps) {
				w.steps[i+1].Status = chat.StepInProgress
			}
			w.show()
			return
		}
	}
}

// skip ends the plan before its last steps.
func (w *work) skip() {
	moved := false
	for i := range w.steps {
		switch w.steps[i].Status {
		case chat.StepInProgress:
			w.steps[i].Status, moved = chat.StepDone, true
		case chat.StepPending:
			w.steps[i].Status, moved = chat.StepSkipped, true
		}
	}
	if moved {
		w.show()
	}
}

// snapshot reads a namespace, or with "" all, once in a turn. Without an error, nil means that the namespace does not
// exist.
func (w *work) snapshot(ctx context.Context, namespace string) (*engine.Snapshot, error) {
	if s, ok := w.read[namespace]; ok {
		return s, nil
	}
	about := "the cluster"
	if namespace != "" {
		about = "namespace " + namespace
	}
	w.sink.Status(chat.Snapshot, "Reading "+about)
	s, err := w.tools.Snapshot(ctx, namespace)
	var fault *operation.Fault
	if namespace != "" && errors.As(err, &fault) && fault.Reason == operation.NotFound {
		s, err = nil, nil
	}
	if err == nil {
		w.read[namespace] = s
	}
	return s, err
}
