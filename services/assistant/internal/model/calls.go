package model

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// maxAtOnce limits the tool calls of one answer that are looked at.
const maxAtOnce = 16

// called is a tool call as it goes into the conversation.
type called struct{ id, name, arguments string }

// addCalls repeats the model's calls to it. Arguments that are no JSON object would
// break endpoints that read them, so they go as an empty one.
func (r *run) addCalls(text string, calls []called) {
	m := openai.ChatCompletionAssistantMessageParam{}
	// Also when it is empty: prompt templates of local models read it and fail where it is absent.
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

// mark is the name of the element that a tool's output stands in.
const mark = "untrusted-data"

// addResult hands the model what a call brought, marked as data. The mark cannot be
// closed from within.
func (r *run) addResult(c called, text string) {
	text = strings.ReplaceAll(text, mark, "untrusted data")
	text = fmt.Sprintf("<%s tool=%q>\n%s\n</%s>", mark, c.name, text, mark)
	r.add(openai.ToolMessage(text, c.id), len(text))
}

// addRefusal tells the model in the server's own words why a call was not run.
func (r *run) addRefusal(c called, text string) {
	r.add(openai.ToolMessage("Not run: "+text, c.id), len(text))
}

// handle runs the tool calls of an answer, or gives the write that it asks for.
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
	fresh := false
	for i, h := range heard {
		if r.call(ctx, calls[i], h) {
			fresh = true
		}
	}
	if left := len(rep.calls) - len(heard); left > 0 || rep.dropped {
		// Said where the model looks: at the end of the last result.
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

// writeOf is the first call that may be proposed. Calls beside it are dropped: it ends
// the investigation, and the next change follows its decision.
func (r *run) writeOf(heard []*heard) []operation.Operation {
	var write []operation.Operation
	more := 0
	for _, h := range heard {
		v := operation.Verb(h.name)
		if !v.Known() || !v.Writes() {
			continue
		}
		op, err := operation.Decode(v, []byte(h.arguments.String()))
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

// refusal is why a write is not even proposed; empty: it may be.
func (r *run) refusal(op operation.Operation) string {
	switch r.wants {
	case look:
		return "the user asked a question and no change. Answer it; name the command that would help as text."
	case denied:
		return "the user has denied a change. Propose nothing; name alternatives as text."
	case change:
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

// keyOf is the same for operations that mean the same.
func keyOf(op operation.Operation) string {
	raw, err := json.Marshal(operation.Normalize(op))
	if err != nil {
		return fmt.Sprint(op) // plain values always encode
	}
	return string(raw)
}

// call runs one call and adds its result; fresh says that it brought something new.
func (r *run) call(ctx context.Context, c called, h *heard) (fresh bool) {
	if r.budget.calls >= r.budget.limit.ToolCalls {
		r.addRefusal(c, "the tool calls of this answer are used up. Answer with what is known.")
		return false
	}
	r.budget.calls++
	if h.name == toolDiagnose {
		return r.callDiagnose(ctx, c, h)
	}
	v := operation.Verb(h.name)
	if !v.Known() || !slices.Contains(r.offered.names, h.name) && !v.Writes() {
		r.addRefusal(c, fmt.Sprintf("there is no tool %s. The tools are %s.", operation.Quote(h.name), strings.Join(r.offered.names, ", ")))
		return false
	}
	op, err := operation.Decode(v, []byte(h.arguments.String()))
	if err != nil {
		r.addRefusal(c, redact.Text(err.Error()))
		return false
	}
	if v.Writes() && !op.DryRun {
		why := r.refusal(op)
		if why == "" {
			why = "one change at a time."
		}
		r.addRefusal(c, why)
		return false
	}
	key := keyOf(op)
	if before, ok := r.ran[key]; ok {
		r.addRefusal(c, fmt.Sprintf("this very call was made already, as %s; its result stands above.", before))
		return false
	}
	r.ran[key] = c.id
	out, err := r.tools.Call(ctx, op)
	if err != nil {
		r.addResult(c, "Failed: "+redact.Text(err.Error()))
		return true
	}
	if out.Truncated {
		r.cut = append(r.cut, "`"+string(v)+"`")
	}
	r.addResult(c, redact.Text(out.Text))
	return true
}

func (r *run) callDiagnose(ctx context.Context, c called, h *heard) (fresh bool) {
	var a struct {
		Namespace string `json:"namespace"`
	}
	if err := json.Unmarshal([]byte(objectOf(h.arguments.String())), &a); err != nil || a.Namespace != "" && !operation.ValidName(a.Namespace) {
		r.addRefusal(c, "namespace must be the name of a namespace, or left out.")
		return false
	}
	key := toolDiagnose + " " + a.Namespace
	if before, ok := r.ran[key]; ok {
		r.addRefusal(c, fmt.Sprintf("this very call was made already, as %s; its result stands above.", before))
		return false
	}
	r.ran[key] = c.id
	text, err := r.diagnose(ctx, a.Namespace, false)
	if err != nil {
		r.addResult(c, "Failed: "+redact.Text(err.Error()))
		return true
	}
	r.addResult(c, text)
	return true
}

// objectOf gives arguments as endpoints can read them.
func objectOf(arguments string) string {
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &o) != nil || o == nil {
		return "{}"
	}
	return redact.Text(arguments)
}

// toolName returns a name as endpoints accept it.
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
