package investigate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/registry"
)

// templated are the kinds with a pod template, and so with dependencies.
var templated = map[string]bool{"Deployment": true, "StatefulSet": true, "DaemonSet": true, "Job": true, "CronJob": true, "Pod": true}

// dependencies answers what the first workload of a question needs and what calls it. If the question names another
// object, it first answers whether the workload needs that one. done is false if the question names no workload.
func (w *work) dependencies(ctx context.Context, t *topic) (done bool, err error) {
	at := slices.IndexFunc(t.objects, func(r operation.Ref) bool { return templated[r.Kind] })
	if at < 0 {
		return false, nil
	}
	of := t.objects[at]
	arguments, err := json.Marshal(map[string]string{"namespace": of.Namespace, "kind": strings.ToLower(of.Kind), "name": of.Name})
	if err != nil {
		return false, err
	}
	w.synthesize()
	out, err := w.facts.Call(ctx, w.tools, "dependencies", arguments)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		w.say(err.Error())
		return true, nil
	}
	if d, ok := out.Data.(*registry.Dependencies); ok {
		w.sayWhetherNeeded(of, d, t.objects)
	}
	w.say(out.Text)
	return true, nil
}

// sayDependencies answers a question for dependencies. One that reports a fault, of no workload, is about its cause.
func (w *work) sayDependencies(ctx context.Context, a question.Ask, t *topic) error {
	if done, err := w.dependencies(ctx, t); done || err != nil {
		return err
	}
	if question.TellsFault(a.Words) || len(t.objects) > 0 {
		return w.diagnose(ctx, a, t)
	}
	w.say(fmt.Sprintf("I read that as a question for what a workload needs and what calls it, and it names none: ask, for example, %s.", report.Code("what does NAME depend on?")))
	return nil
}

// sayWhetherNeeded states for each other object in a question whether the first one needs it.
func (w *work) sayWhetherNeeded(of operation.Ref, d *registry.Dependencies, objects []operation.Ref) {
	var told []string
	for _, r := range objects {
		if r.Name == of.Name || slices.Contains(told, r.Name) {
			continue
		}
		told = append(told, r.Name)
		at := slices.IndexFunc(d.Needs, func(n registry.Dependency) bool { return n.Object.Name == r.Name })
		if at < 0 {
			w.say(fmt.Sprintf("Nothing that was read shows that %s needs %s.", refTitle(of), report.Code(r.Name)))
			continue
		}
		w.say(fmt.Sprintf("Yes, %s needs %s: %s.", refTitle(of), report.Code(r.Name), d.Needs[at].How))
	}
}
