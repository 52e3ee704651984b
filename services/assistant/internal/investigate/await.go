package investigate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// readFields reads fields of one object, each by its path; a field that is not there is empty.
func (w *work) readFields(ctx context.Context, op operation.Operation, paths ...string) ([]string, error) {
	op.Verb = operation.Get
	op.Output = operation.JSONPath + strings.Join(paths, fieldMark)
	out, err := w.tools.Call(ctx, operation.Normalize(op))
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out.Text, "\n"), fieldMark), nil
}

// fieldMark separates fields; no value that is compared here contains it.
const fieldMark = "~;~"

// waitLine implements kubectl wait: for a condition, a field's value or a deletion, with a timeout.
func (w *work) waitLine(ctx context.Context, line string, words []string) error {
	fs := pflag.NewFlagSet("wait", pflag.ContinueOnError)
	fs.Usage = func() {}
	what, timeout := fs.String("for", "", ""), fs.Duration("timeout", 30*time.Second, "")
	namespace := fs.StringP("namespace", "n", "", "")
	if err := fs.Parse(words[2:]); err != nil || *what == "" || fs.NArg() == 0 {
		w.say("This line was refused and nothing was sent to the cluster: kubectl wait takes one object, --for=condition=NAME[=VALUE], --for=delete or --for=jsonpath={PATH}=VALUE, --timeout and -n.")
		return nil
	}
	read := "kubectl get " + strings.Join(fs.Args(), " ")
	if *namespace != "" {
		read += " -n " + *namespace
	}
	op, err := kubectl.Parse(read)
	if err != nil {
		w.refuseLine(line, words, err)
		return nil
	}
	if op.Verb != operation.Get || len(op.Objects()) != 1 {
		w.say("This line was refused and nothing was sent to the cluster: name one object to wait for.")
		return nil
	}
	path, wanted, ok := waitedField(*what)
	if !ok {
		w.say("This line was refused and nothing was sent to the cluster: wait for condition=NAME[=VALUE], delete or jsonpath={PATH}=VALUE.")
		return nil
	}
	limit := min(max(*timeout, 0), w.cfg.WatchLimit)
	until := time.Now().Add(limit)
	for {
		values, err := w.readFields(ctx, op, path)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && *what == "delete" && isNotFound(err):
			w.say("It is gone.")
			return nil
		case err != nil:
			w.say(err.Error())
			return nil
		case *what != "delete" && strings.EqualFold(values[0], wanted):
			w.say(fmt.Sprintf("Condition met: %s.", report.Code(*what)))
			return nil
		}
		if !time.Now().Before(until) {
			now := "the object is still there"
			if *what != "delete" {
				now = "it is " + report.Code(values[0])
			}
			w.say(fmt.Sprintf("Not met after %s: %s. An answer waits %s at most; ask again to continue.", limit, now, w.cfg.WatchLimit))
			return nil
		}
		if !pause(ctx, watchEvery) {
			return ctx.Err()
		}
	}
}

// waitedField returns the path and value that a --for flag specifies.
func waitedField(what string) (path, wanted string, ok bool) {
	if what == "delete" {
		return "{.metadata.name}", "", true
	}
	if rest, is := strings.CutPrefix(what, "condition="); is {
		name, value, valued := strings.Cut(rest, "=")
		if !valued {
			value = "True"
		}
		if name == "" || strings.ContainsAny(name, "\"'{}()\\") {
			return "", "", false
		}
		// A condition's type is spelt as in the API; people write ready for Ready.
		return fmt.Sprintf("{.status.conditions[?(@.type==%q)].status}", strings.ToUpper(name[:1])+name[1:]), value, true
	}
	if rest, is := strings.CutPrefix(what, "jsonpath="); is {
		at := strings.LastIndex(rest, "}=")
		if at < 0 {
			return "", "", false
		}
		return rest[:at+1], rest[at+2:], true
	}
	return "", "", false
}

// rolloutStatus implements kubectl rollout status: it shows the progress of a rollout until it is done, with a timeout.
func (w *work) rolloutStatus(ctx context.Context, line string, words []string) error {
	fs := pflag.NewFlagSet("status", pflag.ContinueOnError)
	fs.Usage = func() {}
	namespace, timeout, watch := fs.StringP("namespace", "n", "", ""), fs.Duration("timeout", 30*time.Second, ""), fs.BoolP("watch", "w", true, "")
	if err := fs.Parse(words[3:]); err != nil || fs.NArg() == 0 {
		w.say("This line was refused and nothing was sent to the cluster: kubectl rollout status takes one workload, -n, --timeout and --watch=false.")
		return nil
	}
	read := "kubectl rollout history " + strings.Join(fs.Args(), " ")
	if *namespace != "" {
		read += " -n " + *namespace
	}
	op, err := kubectl.Parse(read)
	if err != nil {
		w.refuseLine(line, words, err)
		return nil
	}
	limit := min(max(*timeout, 0), w.cfg.WatchLimit)
	if !*watch {
		limit = 0
	}
	until := time.Now().Add(limit)
	for {
		f, err := w.readFields(ctx, op, "{.kind}", "{.metadata.generation}", "{.status.observedGeneration}", "{.spec.replicas}", "{.status.updatedReplicas}", "{.status.replicas}", "{.status.availableReplicas}",
			"{.status.desiredNumberScheduled}", "{.status.updatedNumberScheduled}", "{.status.numberAvailable}", "{.status.readyReplicas}", "{.spec.updateStrategy.type}", "{.spec.updateStrategy.rollingUpdate.partition}", "{.spec.paused}",
			`{.status.conditions[?(@.type=="Progressing")].reason}`)
		if err != nil {
			if ctx.Err() == nil {
				w.say(err.Error())
			}
			return ctx.Err()
		}
		text, done := describeRollout(f)
		if done || !time.Now().Before(until) {
			if !done && limit > 0 {
				text += fmt.Sprintf(" This is the state after %s, the longest that an answer waits; ask again to continue.", limit)
			}
			w.say(text)
			return nil
		}
		if !pause(ctx, watchEvery) {
			return ctx.Err()
		}
	}
}
