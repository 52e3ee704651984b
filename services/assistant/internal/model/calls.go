package model

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// maxAtOnce limits the tool calls handled from one answer.
const maxAtOnce = 16

// called is a tool call in the form that the conversation has.
type called struct {
	id, name, arguments string
	key                 string // key of run.ran; empty: none
}

// addCalls adds the model's calls to the conversation. Arguments that are not a JSON object are replaced by an empty
// one, since they would break endpoints that parse them.
func (r *run) addCalls(text string, calls []called) {
	m := openai.ChatCompletionAssistantMessageParam{}
	// Set even when empty: prompt templates of local models read it and fail where it is absent.
	m.Content.OfString = param.NewOpt(text)
	size := len(text)
	for _, c := range calls {
		m.ToolCalls = append(m.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
			ID: c.id, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.name, Arguments: c.arguments},
		}})
		size += len(c.id) + len(c.name) + len(c.arguments)
	}
	r.add(openai.ChatCompletionMessageParamUnion{OfAssistant: &m}, size)
}

// mark is the name of the element that encloses a tool's output.
const mark = "untrusted-data"

// addResult adds the result of a call to the conversation, marked as data. The output cannot close the mark.
func (r *run) addResult(c called, text string) {
	marked := markData(c.name, text)
	r.add(openai.ToolMessage(marked, c.id), len(marked))
	r.results = append(r.results, result{at: len(r.messages) - 1, key: c.key, tool: c.name, text: text, size: len(marked) + 16})
}

func markData(tool, text string) string {
	return fmt.Sprintf("<%s tool=%q>\n%s\n</%s>", mark, tool, strings.ReplaceAll(text, mark, "untrusted data"), mark)
}

// addRefusal tells the model, in fixed text of the server, why a call was not run.
func (r *run) addRefusal(c called, text string) {
	r.add(openai.ToolMessage("Not run: "+text, c.id), len(text))
}

// handle runs the tool calls of an answer, or returns the write that it requests.
func (r *run) handle(ctx context.Context, rep *reply) []operation.Operation {
	heard := rep.calls[:min(len(rep.calls), maxAtOnce)]
	if write := r.writeOf(heard); write != nil {
		r.budget.calls++
		return write
	}
	text := strings.TrimSpace(rep.text.String())
	r.aside()
	calls := make([]called, len(heard))
	ids := map[string]bool{}
	for i, h := range heard {
		calls[i] = called{id: h.id, name: toolName(h.name), arguments: objectOf(h.arguments.String())}
		if h.id == "" || ids[h.id] {
			calls[i].id = fmt.Sprintf("own%02d%04d", i, len(r.messages)%10000)
		}
		ids[calls[i].id] = true
	}
	r.addCalls(redact.Text(clipText(text, maxMessage)), calls)
	jobs := make([]job, len(heard))
	for i, h := range heard {
		jobs[i] = r.prepare(calls[i], h)
	}
	r.runAll(ctx, jobs)
	r.newest = len(r.results)
	fresh := false
	for _, j := range jobs { // in the order of the calls, whichever ended first
		fresh = r.conclude(j) || fresh
	}
	if left := len(rep.calls) - len(heard); left > 0 || rep.dropped {
		// At the end of the last result, where the model looks.
		note := fmt.Sprintf("The other calls of this answer were dropped; at most %d are run at once.", maxAtOnce)
		last := r.messages[len(r.messages)-1].OfTool
		last.Content.OfString = param.NewOpt(last.Content.OfString.Value + "\n" + note)
		r.bytes += len(note)
	}
	if r.idle++; fresh {
		r.idle = 0
	}
	return nil
}

// writeOf returns the first call that may be proposed. Calls beside it are dropped: it ends the investigation, and the
// next change follows its decision.
func (r *run) writeOf(heard []*heard) []operation.Operation {
	var write []operation.Operation
	more := 0
	for _, h := range heard {
		if !r.writes(h) {
			continue
		}
		op, err := r.decode(h)
		if err != nil || op.DryRun || r.refusal(op) != "" {
			continue
		}
		if write == nil {
			write = []operation.Operation{op}
		} else {
			more++
		}
	}
	if more > 0 {
		r.waiting += "\n\nOne change at a time: what else is to change follows the decision on this one."
	}
	return write
}

// refusal returns the reason why a write is not even proposed; empty: it may be.
func (r *run) refusal(op operation.Operation) string {
	if r.t.Unspoken {
		return "a program asked, and no person. Propose nothing; name the command that would help as text."
	}
	if r.denied {
		return "the user has denied a change. Propose nothing; name alternatives as text."
	}
	for _, s := range r.t.Settled {
		for _, done := range s.Action.Ops() {
			if sameOperation(done, op) {
				return fmt.Sprintf("this change was decided in this turn already: %s.", s.Action.State)
			}
		}
	}
	return ""
}

func sameOperation(a, b operation.Operation) bool { return keyOf(a) == keyOf(b) }

// keyOf returns the same key for equivalent operations.
func keyOf(op operation.Operation) string {
	raw, err := json.Marshal(operation.Normalize(op))
	if err != nil {
		return fmt.Sprint(op) // plain values always encode
	}
	return string(raw)
}

// maxParallel limits the calls of one answer that run at the same time.
const maxParallel = 4

// job is one call of an answer, either refused before it runs or run.
type job struct {
	c       called
	refusal string // empty: it runs
	key     string // key of r.ran
	op      operation.Operation
	// diagnoses means that the playbooks run, on namespace; otherwise op runs.
	diagnoses bool
	namespace string

	out   turn.Output
	found diagnosis
	err   error
	panic any
}

// prepare decides whether a call runs, counts it, and remembers it for later calls.
func (r *run) prepare(c called, h *heard) job {
	j := job{c: c}
	if r.budget.calls >= r.budget.limit.ToolCalls {
		j.refusal = "the tool calls of this answer are used up. Answer with what is known."
		return j
	}
	r.budget.calls++
	if h.name == toolDiagnose {
		j.diagnoses = true
		j.namespace, j.refusal = namespaceOf(h.arguments.String())
		j.key = toolDiagnose + " " + j.namespace
	} else {
		j.op, j.refusal = r.read(h)
		j.key = keyOf(j.op)
	}
	if j.refusal != "" {
		return j
	}
	if before, ok := r.ran[j.key]; ok {
		j.refusal = fmt.Sprintf("this call was already made, as %s; its result is above.", before)
		return j
	}
	r.ran[j.key] = c.id
	j.c.key = j.key
	return j
}

// read returns the operation of a call that reads, or the reason why it is not run.
func (r *run) read(h *heard) (op operation.Operation, refusal string) {
	if !slices.Contains(r.offered.names, h.name) && !r.writes(h) {
		return op, fmt.Sprintf("there is no tool %s. The tools are %s.", operation.Quote(h.name), strings.Join(r.offered.names, ", "))
	}
	op, err := r.decode(h)
	if err != nil {
		return op, redact.Text(err.Error())
	}
	if op.Verb.Writes() && !op.DryRun {
		return op, cmp.Or(r.refusal(op), "one change at a time.")
	}
	return op, ""
}

func namespaceOf(arguments string) (namespace, refusal string) {
	var a struct {
		Namespace string `json:"namespace"`
	}
	if err := json.Unmarshal([]byte(objectOf(arguments)), &a); err != nil || a.Namespace != "" && !operation.ValidName(a.Namespace) {
		return "", "namespace must be the name of a namespace, or left out."
	}
	return a.Namespace, ""
}

// runAll runs the calls that are not refused, a few in parallel, and waits for all. Calls that have not started when
// ctx ends are not started.
func (r *run) runAll(ctx context.Context, jobs []job) {
	var all sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i := range jobs {
		if j := &jobs[i]; j.refusal == "" {
			all.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				defer func() { j.panic = recover() }()
				if j.err = context.Cause(ctx); j.err != nil {
					return
				}
				if j.diagnoses {
					j.found, j.err = r.diagnose(ctx, j.namespace)
				} else {
					j.out, j.err = r.tools.Call(ctx, j.op)
				}
			})
		}
	}
	all.Wait()
	for _, j := range jobs {
		if j.panic != nil {
			panic(j.panic) // in the turn's goroutine, which recovers from it
		}
	}
}

// conclude adds the result of a call; fresh means that it was new.
func (r *run) conclude(j job) (fresh bool) {
	switch {
	case j.refusal != "":
		r.addRefusal(j.c, j.refusal)
		return false
	case j.err != nil:
		if j.op.Verb.OfServer() {
			delete(r.ran, j.key) // the server may be available again
		}
		r.addResult(j.c, "Failed: "+redact.Text(j.err.Error()))
	case j.diagnoses:
		r.learn(j.found)
		r.addResult(j.c, j.found.text)
	default:
		if j.out.Truncated {
			r.cut = append(r.cut, "`"+j.c.name+"`")
		}
		text := redact.Text(j.out.Text)
		if j.op.Verb.OfServer() {
			r.heardServer(j, text)
			break
		}
		r.record.AddCall(j.op)
		if !j.out.Empty { // else the text repeats names from the call, as errors do
			r.record.AddResult(text)
		}
		r.addResult(j.c, text)
	}
	return true
}

// objectOf returns arguments in a form that endpoints can parse.
func objectOf(arguments string) string {
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &o) != nil || o == nil {
		return "{}"
	}
	return redact.Text(arguments)
}

// toolName returns a name in a form that endpoints accept.
func toolName(name string) string {
	name = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			return c
		}
		return '_'
	}, name)
	if name == "" {
		return "unnamed"
	}
	return name[:min(len(name), 64)]
}
