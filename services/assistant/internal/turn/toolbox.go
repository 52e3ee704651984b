package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
)

// sink is the Sink and Toolbox of one running turn.
type sink struct {
	r     *running
	ctx   context.Context // of the engine; output after its end is not shown
	calls atomic.Int64
}

// open reports whether the engine may still write.
func (k *sink) open() bool {
	if k.ctx.Err() != nil {
		return false
	}
	if k.r.live.full() {
		k.r.cancel(errTooLong)
		return false
	}
	return true
}

// Status is part of Sink.
func (k *sink) Status(phase chat.Phase, message string) {
	if k.open() {
		k.r.add(k.r.frames.Status(nil, phase, message), false)
	}
}

// Plan is part of Sink.
func (k *sink) Plan(steps []chat.Step) {
	if k.open() {
		k.r.add(k.r.frames.Plan(nil, steps), false)
	}
}

// Token is part of Sink.
func (k *sink) Token(text string) {
	if k.open() {
		k.r.say(text)
	}
}

// Warn is part of Warner.
func (k *sink) Warn(f fault.Failure) {
	if k.open() {
		k.r.add(k.r.frames.Error(nil, f, false), false)
	}
}

// Call is part of Toolbox.
func (k *sink) Call(ctx context.Context, op operation.Operation) (Output, error) {
	if err := op.Validate(); err != nil {
		return Output{}, err
	}
	if op.Verb.Writes() && !op.DryRun {
		return Output{}, operation.Refuse(operation.ForbiddenVerb, "verb", "%s changes the cluster; it has to be proposed.", op.Verb)
	}
	if !k.open() {
		return Output{}, errEnded
	}
	id, done := k.call(op)
	out, err := k.r.s.Tools.Run(context.WithValue(ctx, callKey{}, &id), k.r.turn, op)
	err = done(ctx, out, err)
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	return out, err
}

// Snapshot is part of Toolbox.
func (k *sink) Snapshot(ctx context.Context, namespace string) (*engine.Snapshot, error) {
	if !k.open() {
		return nil, errEnded
	}
	id := ""
	ctx = context.WithValue(ctx, callKey{}, &id)
	s, err := k.r.s.Tools.Snapshot(ctx, k.r.turn, namespace, func(op operation.Operation) func(Output, error) {
		var done func(context.Context, Output, error) error
		id, done = k.call(op)
		return func(out Output, err error) { _ = done(ctx, out, err) } // kinds that could not be read are in Unread
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, k.r.sentence(ctx, err)
	}
	return s, nil
}

// Runbooks is part of Toolbox.
func (k *sink) Runbooks(of ...runbook.Subject) []runbook.Quote {
	found := k.r.s.Tools.Runbooks(of...)
	for _, q := range found {
		k.r.noteUntrusted([]string{q.Title, q.Text})
	}
	return found
}

// MetricLabels is part of Toolbox.
func (k *sink) MetricLabels(ctx context.Context, metric string, pods, known []types.NamespacedName) (MetricLabels, error) {
	found, err := k.r.s.Tools.MetricLabels(ctx, k.r.turn, metric, pods, known)
	if ctx.Err() != nil {
		return MetricLabels{}, context.Cause(ctx)
	}
	if err != nil {
		return MetricLabels{}, k.r.sentence(ctx, err)
	}
	return found, nil
}

// errCut is the result of a call that was cut short by the end of its turn.
var errCut = operation.Refuse(operation.Unavailable, "", "The turn ended before this was answered.")

// callKey is the key of a call's id in the context of Tools.
type callKey struct{}

// CallID returns the id of the call that ctx belongs to, as shown to the reader, or "". In a
// snapshot it is that of the latest call shown: read it where show is called.
func CallID(ctx context.Context) string {
	if id, ok := ctx.Value(callKey{}).(*string); ok {
		return *id
	}
	return ""
}

// call shows that a tool is running; done shows its result, and returns its error in a form for
// the reader.
func (k *sink) call(op operation.Operation) (id string, done func(context.Context, Output, error) error) {
	id = fmt.Sprintf("call_%d", k.calls.Add(1))
	k.r.add(k.r.frames.ToolCall(nil, string(op.Verb), "Running: "+k.r.s.Tools.Line(k.r.turn, op), id), false)
	return id, func(ctx context.Context, out Output, err error) error {
		shown := chat.ToolResult{Tool: string(op.Verb), CallID: id, Output: out.Text, OK: err == nil, Truncated: out.Truncated}
		if err != nil {
			if k.ctx.Err() != nil { // not the cluster's fault
				err = errCut
			}
			err = k.r.sentence(ctx, err)
			shown.Output = err.Error()
		}
		k.r.noteUntrusted(out.Untrusted)
		k.r.add(k.r.frames.ToolResult(nil, shown), false)
		return err
	}
}

// rehearsal is the result of a dry run without objections.
const rehearsal = "The cluster would accept this."

// rehearse shows that a write is being dry-run; ended shows whether it was refused. Other servers rehearse nothing.
func (k *sink) rehearse(ops []operation.Operation) (ended func(error)) {
	var results []chat.ToolResult
	for _, op := range ops {
		if op.Verb.OfServer() {
			continue
		}
		id := fmt.Sprintf("call_%d", k.calls.Add(1))
		results = append(results, chat.ToolResult{Tool: string(op.Verb), CallID: id, Output: rehearsal, OK: true})
		op.DryRun = true
		k.r.add(k.r.frames.ToolCall(nil, string(op.Verb), "Running: "+k.r.s.Tools.Line(k.r.turn, op), id), false)
	}
	return func(err error) {
		for _, shown := range results {
			if err != nil {
				shown.Output, shown.OK = err.Error(), false
			}
			k.r.add(k.r.frames.ToolResult(nil, shown), false)
		}
	}
}

// noteUntrusted stores cluster text that was read, for judging a write later: the newest
// maxUntrusted bytes.
func (r *running) noteUntrusted(texts []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.untrusted = append(r.untrusted, texts...)
	size := 0
	for i, t := range slices.Backward(r.untrusted) {
		if size += len(t); size > maxUntrusted {
			r.untrusted = slices.Clone(r.untrusted[i+1:])
			return
		}
	}
}

// sentence returns errors that are meant for the reader unchanged, and replaces all others.
func (r *running) sentence(ctx context.Context, err error) error {
	var refused *operation.Fault
	var denied *action.Refused
	var fail *Fail
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &denied):
		return denied
	case errors.As(err, &fail):
		r.s.Log.WarnContext(ctx, "a tool failed", slog.Any("err", err))
		return &Fail{Failure: fail.Failure}
	}
	r.s.Log.WarnContext(ctx, "a tool failed", slog.Any("err", err))
	return &Fail{Failure: fault.ClusterUnreachable}
}
