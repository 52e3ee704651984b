package registry

import (
	"context"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

type diagnoseArguments struct {
	Namespace string `json:"namespace,omitempty" jsonschema:"Namespace; left out: all."`
	Kind      string `json:"kind,omitempty" jsonschema:"Kind of the object that is asked about; with name."`
	Name      string `json:"name,omitempty" jsonschema:"Name of the object that is asked about: only findings that concern it are returned."`
}

// Diagnosis is the result of diagnose. No findings do not mean that all is well: see NotLookedAt.
type Diagnosis struct {
	Findings []Finding `json:"findings"`
	// NotLookedAt lists what was not read, and so not judged.
	NotLookedAt []string `json:"not_looked_at"`
}

// Finding is one problem with its remedy.
type Finding struct {
	Class        string               `json:"class"`
	Object       operation.Reference  `json:"object"`
	Container    string               `json:"container,omitempty"`
	Cause        string               `json:"cause"`
	Confidence   string               `json:"confidence"`
	Evidence     []string             `json:"evidence"`
	Pods         []string             `json:"pods,omitempty"`
	Fix          *Fix                 `json:"fix,omitempty"`
	Consequences []ConsequenceFinding `json:"consequences,omitempty"`
}

// Fix is a remedy. Command is empty where a person has to choose a value.
type Fix struct {
	Text    string `json:"text,omitempty"`
	Command string `json:"command,omitempty"`
}

// ConsequenceFinding goes away with the finding that it belongs to.
type ConsequenceFinding struct {
	Object operation.Reference `json:"object"`
	Class  string              `json:"class"`
	Cause  string              `json:"cause"`
}

func diagnose(ctx context.Context, box turn.Toolbox, a diagnoseArguments) (Result, error) {
	about, namespace, err := scopeOf(ctx, box, operation.Reference{Namespace: a.Namespace, Kind: a.Kind, Name: a.Name})
	if err != nil {
		return Result{}, err
	}
	a.Namespace = namespace
	s, err := snapshotOf(ctx, box, a.Namespace)
	if err != nil {
		return Result{}, err
	}
	found := playbook.Findings(s, a.Namespace)
	if about != nil {
		found = concerning(s, found, *about)
	}
	versions := newVersions(s)
	d := Diagnosis{Findings: []Finding{}, NotLookedAt: notLookedAt(s, a.Namespace)}
	out := Result{Data: &d}
	for _, f := range found {
		d.Findings = append(d.Findings, findingOf(f, versions))
		out.References = append(out.References, versions.cite(f.Object))
	}
	text := "The playbooks have no finding.\n"
	if len(found) > 0 {
		text = engine.Answer(s, found)
	}
	out.Text = redact.Text(text) + "\nNot looked at:\n\n- " + strings.Join(d.NotLookedAt, "\n- ") + "\n"
	out.Truncated = len(found) > engine.MostFindings
	return out, nil
}

func findingOf(f engine.Finding, versions versions) Finding {
	out := Finding{
		Class: f.Class.String(), Object: versions.cite(f.Object), Container: f.Container, Cause: redact.Text(f.Cause), Confidence: f.Confidence.String(),
		Evidence: []string{}, Pods: f.Pods,
	}
	for _, e := range f.Evidence {
		out.Evidence = append(out.Evidence, redact.Text(e))
	}
	if f.Text != "" || f.Fix != nil {
		out.Fix = &Fix{Text: redact.Text(f.Text)}
		if f.Fix != nil {
			out.Fix.Command = redact.Typed(kubectl.Render(*f.Fix))
		}
	}
	for _, c := range f.Consequences {
		out.Consequences = append(out.Consequences, ConsequenceFinding{versions.cite(c.Object), c.Class.String(), redact.Text(c.Cause)})
	}
	return out
}

// notLookedAt lists what a diagnosis leaves open. Of logs it has the last lines of the containers that show a symptom.
func notLookedAt(s *engine.Snapshot, namespace string) []string {
	var list []string
	for _, kind := range unread(s) {
		list = append(list, kind+": they could not all be read")
	}
	all := report.View{Snapshot: s, Namespace: namespace}.LogSources(0)
	missing := slices.DeleteFunc(slices.Clone(all), func(log engine.Log) bool { _, read := s.Logs[log]; return read })
	if len(missing) > 0 {
		list = append(list, engine.CountNoun(len(missing), "log of a container", "logs of containers")+" without a symptom in its status; log_search reads them")
	}
	if s.Usage == nil {
		list = append(list, "what containers use now: the metrics API is not there or was not read")
	}
	return append(list, "metrics over time, and what is outside of the cluster")
}

// concerning keeps the findings that are about an object, the pods that it has or the workload that it belongs to.
func concerning(s *engine.Snapshot, found []engine.Finding, about operation.Reference) []engine.Finding {
	ref := operation.Ref{Group: about.Group, Kind: about.Kind, Namespace: about.Namespace, Name: about.Name}
	view := report.View{Snapshot: s, Namespace: about.Namespace, Objects: []operation.Ref{ref}}
	pods, owners := map[string]bool{}, map[operation.Ref]bool{}
	for _, log := range view.LogSources(0) {
		pods[log.Pod] = true
	}
	top := view.Owners()
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Namespace == about.Namespace && pods[p.Name] {
			owner := top(p)
			owners[operation.Ref{Kind: owner.Kind, Namespace: owner.Namespace, Name: owner.Name}] = true
		}
	}
	concerned := func(r operation.Ref) bool {
		return r.Kind == ref.Kind && r.Name == ref.Name && r.Namespace == ref.Namespace ||
			r.Kind == "Pod" && r.Namespace == ref.Namespace && pods[r.Name] || owners[operation.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}]
	}
	var fits func(f engine.Finding) bool
	fits = func(f engine.Finding) bool {
		return concerned(f.Object) || slices.ContainsFunc(f.Touches, concerned) || slices.ContainsFunc(f.Consequences, fits) ||
			ref.Kind != "Node" && slices.ContainsFunc(f.Pods, func(name string) bool { return pods[name] })
	}
	return slices.DeleteFunc(slices.Clone(found), func(f engine.Finding) bool { return !fits(f) })
}
