package investigate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/runbook"
)

// Limits on the runbooks that one answer reads and quotes.
const (
	mostRunbooks     = 3
	mostRunbookLines = 15
	mostFileLines    = 40  // of a file of a folder, which is written for this
	mostLineLength   = 400 // characters
)

// isRunbook reports whether the name of an annotation, ConfigMap or key suggests instructions by a team.
func isRunbook(name string) bool {
	return strings.Contains(strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(name)), "runbook")
}

// sayRunbooks quotes a team's instructions for the objects of a topic or of findings. They are text of the cluster:
// they are read like any object, so that values in them are known to be untrusted, and they are quoted and never
// followed. asked means that the question was about runbooks, which deserves a no if there are none.
func (w *work) sayRunbooks(ctx context.Context, t *topic, found []engine.Finding, asked bool) error {
	about := slices.Clone(t.objects)
	for _, f := range found {
		about = append(about, f.Object)
	}
	near := relatedObjects(t.snap, about)
	names := map[string]bool{}
	for _, r := range about {
		names[r.Name] = true
	}
	said := 0
	for _, q := range w.tools.Runbooks(t.subjects(found)...) {
		w.say(QuoteRunbook(q))
		said++
	}
	for _, o := range nameableObjects(t.snap) {
		here := near[plainRef(o.ref)] || len(about) == 0 && asked && withinNamespace(o.ref, t.namespace)
		if said >= mostRunbooks || !here || o.ref.Kind == "Pod" || o.ref.Kind == "ReplicaSet" || !marksRunbook(o.meta.GetAnnotations()) {
			continue
		}
		if text := w.quoteAnnotations(ctx, o.ref); text != "" {
			w.say(text)
			said++
		}
	}
	for i := range t.snap.ConfigMaps {
		m := &t.snap.ConfigMaps[i]
		if said >= mostRunbooks || !isRunbook(m.Name) || !w.runbookFor(t, about, m) {
			continue
		}
		if text := w.quoteConfigMap(ctx, m, names, asked); text != "" {
			w.say(text)
			said++
		}
	}
	if said == 0 && asked {
		w.say(fmt.Sprintf("No runbook was found %s: no annotation and no ConfigMap has the word runbook in its name, and no file of a folder is for it.%s", t.where(), listUnread(t.snap)))
	}
	return ctx.Err()
}

func marksRunbook(annotations map[string]string) bool {
	for key := range annotations {
		if isRunbook(key) {
			return true
		}
	}
	return false
}

// runbookFor reports whether a ConfigMap may be about the objects: it is in the namespace of one.
func (w *work) runbookFor(t *topic, about []operation.Ref, m metav1.Object) bool {
	if len(about) == 0 {
		return t.namespace == "" || m.GetNamespace() == t.namespace
	}
	return slices.ContainsFunc(about, func(r operation.Ref) bool { return r.Namespace == m.GetNamespace() })
}

// readRunbook reads an object whole. If it cannot be read, an answer with other content omits it.
func (w *work) readRunbook(ctx context.Context, r operation.Ref) (annotations, data map[string]string) {
	op := newOperation(operation.Get, r)
	op.Output = "json"
	out, err := w.tools.Call(ctx, operation.Normalize(op))
	if err != nil {
		return nil, nil
	}
	var o struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Data map[string]string `json:"data"`
	}
	if json.Unmarshal([]byte(out.Text), &o) != nil { // it was truncated
		line := "Longer than a result may be: read it with kubectl get " + strings.ToLower(r.Kind) + " " + r.Name + " -n " + r.Namespace + " -o yaml"
		return map[string]string{"runbook": line}, map[string]string{r.Name: line}
	}
	return o.Metadata.Annotations, o.Data
}

func (w *work) quoteAnnotations(ctx context.Context, r operation.Ref) string {
	annotations, _ := w.readRunbook(ctx, r)
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if isRunbook(key) {
			parts = append(parts, fmt.Sprintf("The team's own runbook, as annotation %s of %s says, quoted and not checked:\n\n%s", report.Code(key), refTitle(r), quoteLines(annotations[key])))
		}
	}
	return strings.Join(parts, "\n\n")
}

// quoteConfigMap quotes the keys about the objects; without an object in the question, all keys.
func (w *work) quoteConfigMap(ctx context.Context, m metav1.Object, names map[string]bool, asked bool) string {
	_, data := w.readRunbook(ctx, operation.Ref{Version: "v1", Kind: "ConfigMap", Namespace: m.GetNamespace(), Name: m.GetName()})
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(data)) {
		base, _, _ := strings.Cut(key, ".")
		fits := len(names) == 0 && asked || names[base] || names[key] || slices.ContainsFunc(slices.Collect(maps.Keys(names)), func(name string) bool { return strings.Contains(data[key], name) })
		if fits && len(parts) < mostRunbooks {
			parts = append(parts, fmt.Sprintf("The team's own runbook, from key %s of ConfigMap %s in namespace %s, quoted and not checked:\n\n%s", report.Code(key), report.Code(m.GetName()), report.Code(m.GetNamespace()), quoteLines(data[key])))
		}
	}
	return strings.Join(parts, "\n\n")
}

// subjects returns what a runbook may be for: the objects of a topic, and findings with their objects.
func (t *topic) subjects(found []engine.Finding) []runbook.Subject {
	labels := map[operation.Ref]map[string]string{}
	for _, o := range nameableObjects(t.snap) {
		labels[plainRef(o.ref)] = o.meta.GetLabels()
	}
	var all []runbook.Subject
	add := func(r operation.Ref, class string) {
		all = append(all, runbook.Subject{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Labels: labels[plainRef(r)], Finding: class})
	}
	for _, r := range t.objects {
		add(r, "")
	}
	for _, f := range found {
		add(f.Object, f.Class.String())
		if f.As != 0 {
			add(f.Object, f.As.String())
		}
	}
	if len(all) == 0 && t.namespace != "" {
		all = append(all, runbook.Subject{Kind: "Namespace", Namespace: t.namespace})
	}
	return all
}

// QuoteRunbook quotes the first lines of a runbook from a folder.
func QuoteRunbook(q runbook.Quote) string {
	return fmt.Sprintf("The team's own runbook %s, from file %s, quoted and not checked:\n\n%s", report.Code(q.Title), report.Code(q.Path), quoteUpTo(strings.Trim(q.Text, "\n"), mostFileLines))
}

// quoteLines shows the first lines of a text as code.
func quoteLines(text string) string { return quoteUpTo(text, mostRunbookLines) }

func quoteUpTo(text string, most int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if n := len(lines) - most; n > 0 {
		lines = append(lines[:most], fmt.Sprintf("(%d more lines)", n))
	}
	for i, line := range lines {
		if runes := []rune(line); len(runes) > mostLineLength {
			lines[i] = string(runes[:mostLineLength]) + "…"
		}
	}
	return indentCode(strings.Join(lines, "\n"))
}
