package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// maxObjects limits how many objects are written out whole: a few fill the result.
const maxObjects = 50

// lastApplied repeats the object in itself.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// get shows objects by name, those of one kind in one table.
func (c *call) get(ctx context.Context) (turn.Output, error) {
	if c.writesObjects() {
		return c.getObjects(ctx)
	}
	var kinds []cluster.Resource
	tables := map[string]*table.Page{}
	for _, o := range c.op.Objects() {
		r, err := c.Cluster.Resolve(ctx, o.Kind)
		if err != nil {
			return turn.Output{}, err
		}
		namespace := c.scope(r)
		if !c.exists(r, namespace, o.Name) {
			return turn.Output{}, notFoundError(r, o.Name)
		}
		raw, err := c.ask(ctx, r, namespace, o.Name, metav1.ListOptions{})
		if err != nil {
			return turn.Output{}, err
		}
		page, err := table.Decode(raw)
		if err != nil {
			return turn.Output{}, err
		}
		if len(page.Rows) == 0 || !c.rowExists(r, namespace, page.Rows[0]) {
			return turn.Output{}, notFoundError(r, o.Name)
		}
		key := r.GVR().String()
		if tables[key] == nil {
			kinds, tables[key] = append(kinds, r), &page
		} else {
			tables[key].Rows = append(tables[key].Rows, page.Rows...)
		}
	}
	var out turn.Output
	for i, r := range kinds {
		if i > 0 {
			out.Text += "\n"
		}
		c.show(&out, r, *tables[r.GVR().String()], (maxCharacters-len(out.Text))/(len(kinds)-i))
	}
	return out, nil
}

// notAll is the first line of a result that is a part of the objects.
const notAll = "# not all: there are more objects than are shown\n"

// getObjects shows objects by name, whole.
func (c *call) getObjects(ctx context.Context) (turn.Output, error) {
	var objects []*unstructured.Unstructured
	for _, o := range c.op.Objects() {
		if len(objects) == maxObjects {
			return turn.Output{}, operation.Refuse(operation.TooLarge, "names", "At most %d objects can be shown whole.", maxObjects)
		}
		object, _, err := c.object(ctx, o)
		if err != nil {
			return turn.Output{}, err
		}
		objects = append(objects, object)
	}
	return c.whole(objects, false)
}

// listObjects shows the first objects of a list, whole.
func (c *call) listObjects(ctx context.Context) (turn.Output, error) {
	limit, most := c.op.Limit, maxObjects
	if c.op.Output != "yaml" && c.op.Output != "json" || c.op.SortBy != "" {
		most = maxChosen
	}
	if limit == 0 || limit > most {
		limit = most
	}
	var objects []*unstructured.Unstructured
	more := false
	for _, kind := range c.op.Kinds() {
		r, err := c.Cluster.Resolve(ctx, kind)
		if err != nil {
			return turn.Output{}, err
		}
		found, cut, err := c.objects(ctx, r, limit)
		if err != nil {
			return turn.Output{}, err
		}
		objects, more = append(objects, found...), more || cut
	}
	if c.op.SortBy != "" {
		sortObjects(objects, c.op.SortBy)
	}
	return c.whole(objects, more)
}

// object reads one object as callers may see it.
func (c *call) object(ctx context.Context, o operation.Object) (*unstructured.Unstructured, cluster.Resource, error) {
	r, err := c.Cluster.Resolve(ctx, o.Kind)
	if err != nil {
		return nil, r, err
	}
	namespace := c.scope(r)
	if !c.exists(r, namespace, o.Name) {
		return nil, r, notFoundError(r, o.Name)
	}
	object, err := c.Cluster.Dynamic().Resource(r.GVR()).Namespace(namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return nil, r, err
	}
	if c.claimed(object) {
		return nil, r, notFoundError(r, o.Name)
	}
	c.clean(object)
	return object, r, nil
}

// objects reads up to limit objects of a kind that the selectors choose.
func (c *call) objects(ctx context.Context, r cluster.Resource, limit int) (found []*unstructured.Unstructured, more bool, err error) {
	o := metav1.ListOptions{LabelSelector: c.op.LabelSelector, FieldSelector: c.op.FieldSelector, Limit: int64(limit)}
	for range maxPages {
		list, err := c.Cluster.Dynamic().Resource(r.GVR()).Namespace(c.scope(r)).List(ctx, o)
		if err != nil {
			return nil, false, err
		}
		for i := range list.Items {
			object := &list.Items[i]
			if !c.exists(r, object.GetNamespace(), object.GetName()) || c.claimed(object) {
				continue
			}
			if len(found) == limit {
				return found, true, nil
			}
			c.clean(object)
			found = append(found, object)
		}
		if o.Continue = list.GetContinue(); o.Continue == "" || len(found) == limit {
			break
		}
	}
	return found, o.Continue != "", nil
}

// claimed reports whether a volume belongs to a hidden namespace.
func (c *call) claimed(o *unstructured.Unstructured) bool {
	namespace, _, _ := unstructured.NestedString(o.Object, "spec", "claimRef", "namespace")
	return c.hidden(namespace)
}

// clean takes out what is secret, hidden or noise.
func (c *call) clean(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", lastApplied)
	metadata := o.Object["metadata"]
	delete(o.Object, "metadata") // its own namespace is no reference
	c.prune(o.Object)
	o.Object["metadata"] = metadata
	redact.Object(o.Object)
}

// whole writes objects as documents.
func (c *call) whole(objects []*unstructured.Unstructured, more bool) (turn.Output, error) {
	out := turn.Output{Truncated: more}
	if strings.HasPrefix(c.op.Output, operation.JSONPath) || strings.HasPrefix(c.op.Output, operation.CustomColumns) {
		return c.chosen(objects, more)
	}
	var b bytes.Buffer
	if more {
		b.WriteString(notAll)
	}
	for i, o := range objects {
		out.Untrusted = append(out.Untrusted, untrustedTexts(o)...)
		out.Cite(citeObject(o))
		if c.op.Output == "json" {
			raw, err := json.MarshalIndent(o.Object, "", "  ")
			if err != nil {
				return out, err
			}
			b.Write(append(raw, '\n'))
			continue
		}
		raw, err := yaml.Marshal(o.Object)
		if err != nil {
			return out, err
		}
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(raw)
	}
	if len(objects) == 0 {
		b.WriteString("There are no such objects.\n")
	}
	out.Text = b.String()
	if c.op.Output == "json" {
		out.Whole, out.WholeTruncated = strings.TrimPrefix(out.Text, notAll), more
	}
	return out, nil
}

// citeObject returns the reference to an object that was read.
func citeObject(o *unstructured.Unstructured) operation.Reference {
	kind := o.GroupVersionKind()
	return operation.Reference{Group: kind.Group, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), ResourceVersion: o.GetResourceVersion()}
}

// untrustedTexts returns the text that others than the object's owner may have written into it.
func untrustedTexts(o *unstructured.Unstructured) []string {
	var texts []string
	for _, value := range o.GetAnnotations() {
		texts = append(texts, value)
	}
	if o.GetKind() == "Event" {
		message, _, _ := unstructured.NestedString(o.Object, "message")
		texts = append(texts, message)
	}
	return texts
}
