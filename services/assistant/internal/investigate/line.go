package investigate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Limits on what one line shows, and on how long it waits. A waiting turn holds its session.
const (
	mostLines  = 200
	watchEvery = time.Second
)

// line executes a kubectl line: a read at once, a write as a proposal; all else is refused with the reason.
func (w *work) line(ctx context.Context, line string) (turn.Outcome, error) {
	words := strings.Fields(line)
	if createsSecret(words) {
		w.say("The assistant never writes Secrets, in any role, so nothing was proposed and no value was kept. In your own shell, with your own account:\n\n" + indentCode(secretTemplate(line)))
		return turn.Outcome{}, nil
	}
	if handled, err := w.composedLine(ctx, line); handled || err != nil {
		return turn.Outcome{}, err
	}
	line = w.literalConfigMap(line)
	op, filters, err := kubectl.ParsePipeline(line)
	if err != nil {
		w.refuseLine(line, words, err)
		return turn.Outcome{}, nil
	}
	if op.Verb.Writes() && !op.DryRun {
		// A line is one write. The line that ran has its kind and namespace filled in, so they are not compared.
		if w.ranInThisTurn() || w.settled(op) {
			return turn.Outcome{}, nil
		}
		w.say("This line changes the cluster.")
		return turn.Outcome{Write: []operation.Operation{op}}, nil
	}
	w.sink.Status(chat.Investigating, "Running the line")
	switch {
	case len(filters) > 0:
		return turn.Outcome{}, w.filtered(ctx, op, filters)
	case op.Verb == operation.List && (slices.Contains(words, "-w") || slices.Contains(words, "--watch")):
		return turn.Outcome{}, w.watch(ctx, op)
	}
	w.call(ctx, op, "The line gives:")
	return turn.Outcome{}, ctx.Err()
}

// refuseLine explains why a line is not run. If a user may run it, the answer shows it for their own shell.
func (w *work) refuseLine(line string, words []string, err error) {
	w.say("This line was refused and nothing was sent to the cluster: " + err.Error())
	var fault *operation.Fault
	if errors.As(err, &fault) && fault.Reason == operation.ForbiddenVerb && len(words) > 1 && byHand[words[1]] && !strings.ContainsAny(line, "\n\r") {
		w.say("To run it, use your own shell and your own account:\n\n" + indentCode(line))
	}
}

// filtered runs a read and pipes its whole text through filters.
func (w *work) filtered(ctx context.Context, op operation.Operation, filters []kubectl.Filter) error {
	out, err := w.tools.Call(turn.WantWholeLog(ctx), op)
	if err != nil {
		if ctx.Err() == nil {
			w.say(err.Error())
		}
		return ctx.Err()
	}
	text := out.Text
	if out.Whole != "" || out.Empty {
		text = out.Whole
	}
	if out.WholeTruncated || out.Truncated && out.Whole == "" {
		w.say("The result was truncated before filtering, so this covers only a part.")
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if strings.TrimSpace(text) == "" {
		lines = nil
	}
	for _, f := range filters {
		lines = f(lines)
	}
	switch {
	case len(lines) == 0:
		w.say("No output: the filters leave no line.")
	case len(lines) > mostLines:
		w.say(fmt.Sprintf("The line gives %d lines; the first %d:\n\n%s", len(lines), mostLines, indentLines(lines[:mostLines])))
	default:
		w.say("The line gives:\n\n" + indentLines(lines))
	}
	return nil
}

// indentLines shows lines as code, including repeated ones.
func indentLines(lines []string) string {
	return "    " + strings.Join(lines, "\n    ") + "\n"
}

// composedLine answers lines that combine other reads. handled is false for all others.
func (w *work) composedLine(ctx context.Context, line string) (handled bool, err error) {
	words, ok := kubectl.SplitWords(line)
	if !ok || len(words) < 3 || words[0] != "kubectl" {
		return false, nil
	}
	switch {
	case words[1] == "wait":
		return true, w.waitLine(ctx, line, words)
	case words[1] == "rollout" && words[2] == "status":
		return true, w.rolloutStatus(ctx, line, words)
	case words[1] == "top" && slices.Contains(words, "--containers"):
		rest := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "--containers" })
		op, err := kubectl.Parse(strings.Join(rest, " "))
		if err != nil {
			w.refuseLine(line, words, err)
			return true, nil
		}
		return true, w.topContainers(ctx, op)
	}
	return false, nil
}

// topContainers is top by container, from the samples of a snapshot.
func (w *work) topContainers(ctx context.Context, op operation.Operation) error {
	namespace := op.Namespace
	if namespace == "" && !op.AllNamespaces {
		namespace = w.turn.Scope
	}
	s, err := w.snapshot(ctx, namespace)
	if err != nil {
		return err
	}
	if s == nil {
		w.say("There is no namespace " + report.Code(namespace) + ".")
		return nil
	}
	v := report.View{Snapshot: s, Namespace: namespace}
	for _, name := range op.Names {
		v.Objects = append(v.Objects, operation.Ref{Version: "v1", Kind: "Pod", Namespace: namespace, Name: name})
	}
	w.say(report.Usage(v, question.Ranking{CPU: true, By: "container"}))
	return nil
}

// byHand are the refused commands that users may run themselves. Others hand out credentials.
var byHand = map[string]bool{"exec": true, "attach": true, "cp": true, "debug": true, "port-forward": true, "run": true, "edit": true}
