package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// events shows what happened to an object or in a namespace: warnings first, then the
// newest.
func (c *call) events(ctx context.Context) (turn.Output, error) {
	r, err := c.Cluster.Resolve(ctx, "events")
	if err != nil {
		return turn.Output{}, err
	}
	namespace, about := c.scope(r), scopePhrase(r, c.scope(r))
	var list []corev1.Event
	more := false
	if named := c.op.Objects(); len(named) > 0 && named[0].Name != "" {
		of, err := c.Cluster.Resolve(ctx, named[0].Kind)
		if err != nil {
			return turn.Output{}, err
		}
		if !c.exists(of, c.scope(of), named[0].Name) {
			return turn.Output{}, notFoundError(of, named[0].Name)
		}
		// What has no namespace has its events in any, mostly in default.
		namespace, about = c.scope(of), of.Kind+" "+named[0].Name
		list, more, err = c.readEvents(ctx, namespace, eventSelector(of.Kind, named[0].Name, ""))
		if err != nil {
			return turn.Output{}, err
		}
	} else if list, more, err = c.readEvents(ctx, namespace, ""); err != nil {
		return turn.Output{}, err
	}
	if len(list) == 0 {
		return turn.Output{Text: fmt.Sprintf("There are no events of %s.\n", about)}, nil
	}
	slices.SortStableFunc(list, func(a, b corev1.Event) int {
		return cmp.Or(cmp.Compare(b.Type, a.Type), engine.LastSeen(&b).Compare(engine.LastSeen(&a).Time)) // Warning, Normal
	})
	t := eventTable(list, c.Now(), true)
	view := table.View{Namespaces: namespace == "", Rows: c.op.Limit, Characters: maxCharacters}
	if more {
		view.More = 1
	}
	text, cut := t.Text(view)
	out := turn.Output{Text: text, Truncated: cut}
	for i := range list {
		out.Untrusted = append(out.Untrusted, list[i].Message)
		out.Cite(operation.Reference{Kind: "Event", Namespace: list[i].Namespace, Name: list[i].Name, ResourceVersion: list[i].ResourceVersion})
	}
	return out, nil
}

// eventsOf are the newest events of one object. A server that does not let the account
// read them has the object described without.
func (c *call) eventsOf(ctx context.Context, o *unstructured.Unstructured, r cluster.Resource) (table.Table, error) {
	uid := string(o.GetUID())
	if r.Kind == "Node" {
		uid = "" // kubelets write the name of their node in its place
	}
	list, _, err := c.readEvents(ctx, o.GetNamespace(), eventSelector(o.GetKind(), o.GetName(), uid))
	if apierrors.IsForbidden(err) {
		return table.Table{}, nil
	}
	if err != nil {
		return table.Table{}, err
	}
	slices.SortStableFunc(list, func(a, b corev1.Event) int { return engine.LastSeen(&b).Compare(engine.LastSeen(&a).Time) })
	return eventTable(list[:min(len(list), maxEvents)], c.Now(), false), nil
}

func eventSelector(kind, name, uid string) string {
	set := fields.Set{"involvedObject.kind": kind, "involvedObject.name": name}
	if uid != "" {
		set["involvedObject.uid"] = uid
	}
	return set.AsSelector().String()
}

// readEvents reads events page by page; more reports whether there are further ones.
func (c *call) readEvents(ctx context.Context, namespace, selector string) (list []corev1.Event, more bool, err error) {
	o := metav1.ListOptions{FieldSelector: selector, Limit: pageSize}
	for range maxPages {
		page, err := c.Cluster.Typed().CoreV1().Events(namespace).List(ctx, o)
		if err != nil {
			return nil, false, err
		}
		for _, e := range page.Items {
			if !c.hidden(e.Namespace) && !c.hidden(e.InvolvedObject.Namespace) && (e.InvolvedObject.Kind != "Namespace" || !c.hidden(e.InvolvedObject.Name)) {
				list = append(list, e)
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return list, false, nil
		}
	}
	return list, true, nil
}

func eventTable(list []corev1.Event, now time.Time, objects bool) table.Table {
	t := table.Table{Columns: newColumns("LAST SEEN", "TYPE", "REASON", "COUNT", "MESSAGE")}
	if objects {
		t.Columns = newColumns("LAST SEEN", "TYPE", "REASON", "COUNT", "OBJECT", "MESSAGE")
	}
	for i := range list {
		e := &list[i]
		count := max(e.Count, 1)
		if e.Series != nil {
			count = e.Series.Count
		}
		cells := []string{duration.HumanDuration(now.Sub(engine.LastSeen(e).Time)), e.Type, e.Reason, strconv.Itoa(int(count))}
		if objects {
			cells = append(cells, e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name)
		}
		t.Rows = append(t.Rows, table.Row{Namespace: e.Namespace, Name: e.Name, Cells: append(cells, shortenRedacted(e.Message))})
	}
	return t
}
