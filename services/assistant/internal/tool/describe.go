package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/clip"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

const (
	maxDescribed = 10
	maxValue     = 200 // characters of an annotation
	maxEvents    = 15
)

// describe shows objects with related facts: conditions, containers, pods, events. Signs of trouble precede the
// specification, since a budget cuts off the end.
//
// kubectl's own describers are not used: they print environment values unredacted, need Secrets decoded, and return
// text in which the words of workloads cannot be distinguished.
func (c *call) describe(ctx context.Context) (turn.Output, error) {
	var out turn.Output
	described := 0
	one := func(o *unstructured.Unstructured, r cluster.Resource, share int) error {
		if described++; described > 1 {
			out.Text += "\n"
		}
		text, cut, err := c.picture(ctx, o, r, share, &out)
		out.Text += text
		out.Truncated = out.Truncated || cut
		return err
	}
	if named := c.op.Objects(); named[0].Name != "" {
		if len(named) > maxDescribed {
			return out, operation.Refuse(operation.TooLarge, "names", "At most %d objects can be described at once.", maxDescribed)
		}
		for _, n := range named {
			o, r, err := c.object(ctx, n)
			if err != nil {
				return out, err
			}
			if err := one(o, r, maxCharacters/len(named)); err != nil {
				return out, err
			}
		}
		return out, nil
	}
	for _, kind := range c.op.Kinds() {
		r, err := c.Cluster.Resolve(ctx, kind)
		if err != nil {
			return out, err
		}
		objects, more, err := c.troubled(ctx, r)
		if err != nil {
			return out, err
		}
		if len(objects) == 0 {
			out.Text += fmt.Sprintf("There are no %s in %s.\n", r.GVR().GroupResource(), scopePhrase(r, c.scope(r)))
		}
		for _, o := range objects {
			if err := one(o, r, maxCharacters/(len(objects)*len(c.op.Kinds()))); err != nil {
				return out, err
			}
		}
		if more > 0 {
			out.Truncated = true
			out.Text += fmt.Sprintf("[%d of %d %s, troubled ones first; narrow it by namespace, name or selector]\n", len(objects), len(objects)+more, r.Resource)
		}
	}
	return out, nil
}

// troubled reads the objects of a kind that a description is most needed of, and says
// how many more there are.
func (c *call) troubled(ctx context.Context, r cluster.Resource) (objects []*unstructured.Unstructured, more int, err error) {
	page, err := c.rows(ctx, r, c.scope(r), metav1.ListOptions{LabelSelector: c.op.LabelSelector})
	if err != nil {
		return nil, 0, err
	}
	limit := maxDescribed
	if c.op.Limit > 0 {
		limit = min(limit, c.op.Limit)
	}
	page.TroubleFirst()
	for _, row := range page.Rows[:min(limit, len(page.Rows))] {
		namespace := row.Namespace
		if namespace == "" {
			namespace = c.scope(r)
		}
		o, err := c.Cluster.Dynamic().Resource(r.GVR()).Namespace(namespace).Get(ctx, row.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // gone since the list
		}
		if err != nil {
			return nil, 0, err
		}
		c.clean(o)
		objects = append(objects, o)
	}
	return objects, len(page.Rows) - len(objects) + int(page.Remaining), nil
}

// picture describes one object within a number of characters.
func (c *call) picture(ctx context.Context, o *unstructured.Unstructured, r cluster.Resource, characters int, out *turn.Output) (text string, cut bool, err error) {
	out.Untrusted = append(out.Untrusted, untrustedTexts(o)...)
	out.Cite(citeObject(o))
	var b strings.Builder
	c.header(&b, o, r)
	writeSection(&b, "Conditions", conditionTable(o, c.Now()))
	writeSection(&b, "Containers", containerTable(o, c.Now()))
	related, err := c.related(ctx, o, r)
	if err != nil {
		return "", false, err
	}
	writeSection(&b, related.title, related.Table)
	events, err := c.eventsOf(ctx, o, r)
	if err != nil {
		return "", false, err
	}
	if len(events.Rows) > 0 {
		for _, row := range events.Rows {
			out.Untrusted = append(out.Untrusted, row.Cells[len(row.Cells)-1])
		}
		writeSection(&b, "Events", events)
	}
	if err := writeRest(&b, o); err != nil {
		return "", false, err
	}
	text, cut = clip.Head(b.String(), characters, "get it with output yaml, or describe fewer objects")
	return text, cut, nil
}

// header writes the object's metadata.
func (c *call) header(b *strings.Builder, o *unstructured.Unstructured, r cluster.Resource) {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	fmt.Fprintf(b, "%s %s (%s)\n", o.GetKind(), name, o.GetAPIVersion())
	if labels := o.GetLabels(); len(labels) > 0 {
		fmt.Fprintf(b, "Labels: %s\n", formatPairs(labels, ", "))
	}
	if notes := o.GetAnnotations(); len(notes) > 0 {
		fmt.Fprintf(b, "Annotations:\n  %s\n", formatPairs(notes, "\n  "))
	}
	for _, owner := range o.GetOwnerReferences() {
		fmt.Fprintf(b, "Owned by: %s %s\n", owner.Kind, owner.Name)
	}
	fmt.Fprintf(b, "Created: %s ago\n", formatAge(o.GetCreationTimestamp(), c))
	if at := o.GetDeletionTimestamp(); at != nil {
		fmt.Fprintf(b, "Being deleted: since %s, finalizers: %s\n", at.UTC().Format("2006-01-02 15:04:05Z"), strings.Join(o.GetFinalizers(), ", "))
	}
	if r.Kind == "Pod" {
		for _, field := range [][2]string{{"Phase", "phase"}, {"Reason", "reason"}, {"Message", "message"}, {"IP", "podIP"}} {
			if value, _, _ := unstructured.NestedString(o.Object, "status", field[1]); value != "" {
				fmt.Fprintf(b, "%s: %s\n", field[0], table.Line(value, maxValue))
			}
		}
	}
}

func formatAge(at metav1.Time, c *call) string {
	if at.IsZero() {
		return "an unknown time"
	}
	return duration.HumanDuration(c.Now().Sub(at.Time))
}

// formatPairs writes a map in order of its keys, each value short.
func formatPairs(m map[string]string, between string) string {
	list := make([]string, 0, len(m))
	for key, value := range m {
		list = append(list, key+"="+table.Line(shortenRedacted(value), maxValue))
	}
	slices.Sort(list)
	return strings.Join(list, between)
}

// writeSection adds a table under a title; an empty one is left out.
func writeSection(b *strings.Builder, title string, t table.Table) {
	if len(t.Rows) == 0 {
		return
	}
	text, _ := t.Text(table.View{Characters: maxCharacters})
	b.WriteString("\n" + title + "\n" + text)
}

// writeRest adds what no section has shown, as YAML: status before the specification.
func writeRest(b *strings.Builder, o *unstructured.Unstructured) error {
	shown := o.DeepCopy().Object
	for _, member := range []string{"apiVersion", "kind", "metadata"} {
		delete(shown, member)
	}
	for _, member := range []string{"conditions", "containerStatuses", "initContainerStatuses"} {
		unstructured.RemoveNestedField(shown, "status", member)
	}
	status, _ := shown["status"].(map[string]any)
	delete(shown, "status")
	for _, part := range []struct {
		title string
		value map[string]any
	}{{"Status", status}, {"Object", shown}} {
		if len(part.value) == 0 {
			continue
		}
		raw, err := yaml.Marshal(part.value)
		if err != nil {
			return fmt.Errorf("write an object: %w", err)
		}
		b.WriteString("\n" + part.title + "\n" + string(raw))
	}
	return nil
}
