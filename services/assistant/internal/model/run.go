package model

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/model/ground"
	"github.com/mlp-platform/platform/services/assistant/internal/model/plain"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// hold is how many bytes of an answer are held back until its end while the model may still call a tool in the same
// answer: "Let me look at the pods." is no answer. Later text is passed on sentence by sentence, each checked against
// the data read.
const hold = 160

// maxIdle limits the model's consecutive answers that add nothing new.
const maxIdle = 3

// run is one investigation. It belongs to one goroutine.
type run struct {
	e       *Engine
	t       turn.Turn
	tools   turn.Toolbox
	sink    turn.Sink
	denied  bool // this turn denied a change: nothing is proposed
	offered toolset
	budget  budget

	messages []openai.ChatCompletionMessageParamUnion
	bytes    int               // of messages, approximately
	ran      map[string]string // calls that were run, with the id of each
	idle     int
	results  []result // of tools, in messages
	newest   int      // index of the first result of the last answer
	// question is the index of the question in messages; before it are the earlier messages.
	question int
	retried  bool                  // after an overflow of the model's window
	cut      []string              // tools whose results were truncated
	asked    []string              // other servers that answered
	empty    int                   // answers without text or calls
	known    string                // findings of the playbooks, to be shown if the model gives no answer
	fixes    []operation.Operation // of their findings
	matched  bool                  // the playbooks have run

	record  *ground.Record
	check   *ground.Checker
	text    plain.Writer
	waiting string // text of an answer that may turn out to be none
	said    bool   // some of the answer has been passed on
	pause   bool   // the next text starts a new paragraph
	stage   int
}

// ending describes how the work ended: at most one member is set; none: the answer is complete.
type ending struct {
	write     []operation.Operation
	stop      stop
	err       error
	ofCluster bool // err is from the toolbox
}

func newRun(e *Engine, t turn.Turn, tools turn.Toolbox, sink turn.Sink) *run {
	r := &run{e: e, t: t, tools: tools, sink: sink, denied: deniedNow(t), offered: e.all, ran: map[string]string{}, stage: -1}
	reads := r.denied || t.Unspoken || tokensIn(e.all.size) > e.config.Window/2
	if reads {
		r.offered = e.reads
	}
	r.offerServers(reads)
	r.record = newRecord(t)
	r.check = ground.NewChecker(r.record)
	r.budget = budget{limit: e.config, began: time.Now()}
	return r
}

// size returns the size of the next request.
func (r *run) size() int { return r.bytes + r.offered.size }

func (r *run) work(ctx context.Context) ending {
	r.step(0)
	if err := r.open(ctx); err != nil {
		return unreadEnding(ctx, err)
	}
	r.step(1)
	r.sink.Status(chat.Investigating, "Asking the language model")
	for {
		if window := r.e.config.Window; tokensIn(r.size()) > window*3/4 {
			r.compact(window/2, len(r.results)-r.newest)
		}
		over, last := r.budget.before(ctx, r.size())
		if over != "" {
			return ending{stop: over}
		}
		if last == "" && r.idle >= maxIdle {
			last = stopLoop
		}
		rep, err := r.ask(ctx, last != "", func(rep *reply, text string) stop { return r.hear(rep, text, last != "") })
		if overflows(err) && !r.retried && r.shrink() {
			r.retried = true
			continue
		}
		switch {
		case errors.Is(err, errTime):
			return ending{stop: stopTime}
		case err != nil:
			return ending{err: err}
		case rep.stop != "":
			return ending{stop: rep.stop}
		}
		if calls := writtenCalls(rep.text.String()); len(rep.calls) == 0 && calls != nil {
			rep.calls, r.waiting = calls, ""
			rep.text.Reset()
		}
		switch {
		case len(rep.calls) == 0 || last != "":
			if strings.TrimSpace(rep.text.String()) == "" && last == "" {
				if r.empty++; r.empty > 1 {
					return ending{err: errEmpty}
				}
				continue
			}
			return r.finish(rep, last)
		}
		if write := r.handle(ctx, rep); write != nil {
			if err := r.learnFixes(ctx, write); err != nil {
				return unreadEnding(ctx, err)
			}
			r.flush()
			r.step(len(steps))
			return ending{write: write}
		}
	}
}

// unreadEnding ends the work if the cluster could not be read.
func unreadEnding(ctx context.Context, err error) ending {
	if errors.Is(context.Cause(ctx), errTime) {
		return ending{stop: stopTime}
	}
	return ending{err: err, ofCluster: true}
}

// hear handles a piece of an answer's text.
func (r *run) hear(rep *reply, text string, last bool) stop {
	if stop := r.budget.during(rep); stop != "" {
		return stop
	}
	r.waiting += text
	if (last || rep.text.Len() > hold && len(rep.calls) == 0) && !mayBeCall(rep.text.String()) {
		r.say()
	}
	return ""
}

// say passes on the text that was held back.
func (r *run) say() {
	text := r.waiting
	r.waiting = ""
	if strings.TrimSpace(text) == "" && (!r.said || r.pause) {
		return
	}
	if !r.said {
		r.step(2)
		r.sink.Status(chat.Synthesizing, "Writing the answer")
	}
	if r.pause {
		text = "\n\n" + text
		r.pause = false
	}
	r.said = true
	r.token(r.text.Write(r.check.Write(text)))
}

func (r *run) token(text string) {
	if text != "" {
		r.sink.Token(text)
	}
}

// flush ends the model's text, so that the following text is separate from it.
func (r *run) flush() {
	r.say()
	r.token(r.text.Write(r.check.Close()) + r.text.Close())
	r.text = plain.Writer{}
}

// aside shows the text that came with tool calls, which is no answer.
func (r *run) aside() {
	text := strings.Join(strings.Fields(plain.Text(r.waiting)), " ")
	r.waiting = ""
	if text != "" {
		r.sink.Status(chat.Investigating, clipText(text, 200))
	}
	r.pause = r.said
}

// finish ends a complete answer.
func (r *run) finish(rep *reply, last stop) ending {
	r.flush()
	switch {
	case last != "":
		return ending{stop: last}
	case rep.finish == "length":
		return ending{stop: stopLength}
	case rep.finish == "content_filter":
		return ending{stop: stopFiltered}
	}
	if len(r.t.Settled) == 0 && (requestsChange(r.t) || r.check.ClaimedWrite()) {
		r.token("\n\nNothing was changed by this answer.")
	}
	r.tellCut()
	r.step(len(steps))
	return ending{}
}

// tellCut adds notes about the tools' results: that some were truncated, or not from the cluster.
func (r *run) tellCut() {
	if len(r.asked) > 0 {
		r.token("\n\nOther servers were asked beside the cluster, and what they say was not checked: " + strings.Join(slices.Compact(slices.Sorted(slices.Values(r.asked))), ", ") + ".")
	}
	if len(r.cut) > 0 {
		r.token("\n\nNot all was read; these results were cut: " + strings.Join(slices.Compact(slices.Sorted(slices.Values(r.cut))), ", ") + ".")
	}
}

// partly ends an incomplete answer with the reason and, if the model gave no text, with the findings of the playbooks.
func (r *run) partly(why stop) {
	r.flush()
	if !r.said && r.known != "" {
		r.sink.Token(r.known)
	}
	r.tellCut()
	r.skip()
	if w, ok := r.sink.(turn.Warner); ok && why.spends() {
		w.Warn(fault.BudgetSpent)
	}
	r.sink.Token("\n\nThis answer is incomplete: " + stopSentences[why] + ".")
}

var steps = []string{"Read the cluster and match the playbooks", "Let the language model look closer", "Write the answer"}

// step shows the progress of the work; at the number of steps all are done.
func (r *run) step(at int) {
	if at > r.stage {
		r.stage = at
		r.plan(chat.StepInProgress, chat.StepPending)
	}
}

// skip shows the remaining steps as skipped.
func (r *run) skip() { r.plan(chat.StepSkipped, chat.StepSkipped) }

func (r *run) plan(now, later chat.StepStatus) {
	list := make([]chat.Step, len(steps))
	for i, s := range steps {
		list[i] = chat.Step{Description: s, Status: later}
		switch {
		case i < r.stage:
			list[i].Status = chat.StepDone
		case i == r.stage:
			list[i].Status = now
		}
	}
	r.sink.Plan(list)
}

// clipText truncates a text to a number of code points.
func clipText(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
