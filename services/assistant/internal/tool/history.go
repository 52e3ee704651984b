package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	causeAnnotation    = "kubernetes.io/change-cause"
)

// revision is an earlier state of a workload's pods.
type revision struct {
	number   int64
	cause    string
	created  metav1.Time
	template map[string]any
}

// history shows the revisions of a workload, or the pod template of one of them.
func (c *call) history(ctx context.Context) (turn.Output, error) {
	o, r, err := c.object(ctx, c.op.Objects()[0])
	if err != nil {
		return turn.Output{}, err
	}
	var revisions []revision
	switch r.GVR().GroupResource().String() {
	case "deployments.apps":
		revisions, err = c.replicaSets(ctx, o)
	case "statefulsets.apps", "daemonsets.apps":
		revisions, err = c.controllerRevisions(ctx, o)
	default:
		return turn.Output{}, operation.Refuse(operation.InvalidArgument, "kind", "A %s has no revisions; a Deployment, StatefulSet or DaemonSet has.", r.Kind)
	}
	if err != nil {
		return turn.Output{}, err
	}
	slices.SortFunc(revisions, func(a, b revision) int { return cmp.Compare(b.number, a.number) })
	var out turn.Output
	if c.op.Revision == 0 {
		t := table.Table{Columns: newColumns("REVISION", "AGE", "IMAGES", "CHANGE CAUSE")}
		for _, v := range revisions {
			t.Rows = append(t.Rows, table.Row{Cells: []string{strconv.FormatInt(v.number, 10), formatAge(v.created, c), templateImages(v.template), shortenRedacted(v.cause)}})
			out.Untrusted = append(out.Untrusted, v.cause)
		}
		if len(revisions) == 0 {
			return turn.Output{Text: fmt.Sprintf("%s %s has no recorded revisions.\n", r.Kind, o.GetName())}, nil
		}
		out.Text, out.Truncated = t.Text(table.View{Characters: maxCharacters})
		return out, nil
	}
	for _, v := range revisions {
		if v.number != c.op.Revision {
			continue
		}
		// As a whole object, so that redaction finds the pod template where it expects it.
		whole := map[string]any{"kind": r.Kind, "spec": map[string]any{"template": v.template}}
		c.prune(whole)
		redact.Object(whole)
		raw, err := yaml.Marshal(v.template)
		if err != nil {
			return turn.Output{}, err
		}
		return turn.Output{Text: fmt.Sprintf("Pod template of %s %s at revision %d:\n%s", r.Kind, o.GetName(), v.number, raw)}, nil
	}
	return turn.Output{}, operation.Refuse(operation.NotFound, "revision", "%s %s has no revision %d.", r.Kind, o.GetName(), c.op.Revision)
}

// replicaSets are the revisions of a Deployment.
func (c *call) replicaSets(ctx context.Context, o *unstructured.Unstructured) ([]revision, error) {
	selector, err := podSelector(o)
	if err != nil {
		return nil, err
	}
	list, err := c.Cluster.Typed().AppsV1().ReplicaSets(o.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: pageSize})
	if err != nil {
		return nil, err
	}
	var found []revision
	for i := range list.Items {
		set := &list.Items[i]
		number, err := strconv.ParseInt(set.Annotations[revisionAnnotation], 10, 64)
		if err != nil || !metav1.IsControlledBy(set, o) {
			continue
		}
		template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&set.Spec.Template)
		if err != nil {
			return nil, err
		}
		unstructured.RemoveNestedField(template, "metadata", "labels", appsv1.DefaultDeploymentUniqueLabelKey)
		found = append(found, revision{number, set.Annotations[causeAnnotation], set.CreationTimestamp, template})
	}
	return found, nil
}

// controllerRevisions are the revisions of a StatefulSet or DaemonSet.
func (c *call) controllerRevisions(ctx context.Context, o *unstructured.Unstructured) ([]revision, error) {
	selector, err := podSelector(o)
	if err != nil {
		return nil, err
	}
	list, err := c.Cluster.Typed().AppsV1().ControllerRevisions(o.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: pageSize})
	if err != nil {
		return nil, err
	}
	var found []revision
	for i := range list.Items {
		item := &list.Items[i]
		if !metav1.IsControlledBy(item, o) {
			continue
		}
		var data struct {
			Spec struct {
				Template map[string]any `json:"template"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(item.Data.Raw, &data); err != nil {
			return nil, fmt.Errorf("revision %d of %s: %w", item.Revision, o.GetName(), err)
		}
		delete(data.Spec.Template, "$patch")
		found = append(found, revision{item.Revision, item.Annotations[causeAnnotation], item.CreationTimestamp, data.Spec.Template})
	}
	return found, nil
}

// templateImages are those of a pod template's containers.
func templateImages(template map[string]any) string {
	var found []string
	for _, member := range []string{"initContainers", "containers"} {
		list, _, _ := unstructured.NestedSlice(map[string]any{"template": template}, "template", "spec", member)
		for _, entry := range list {
			if container, ok := entry.(map[string]any); ok {
				image, _ := container["image"].(string)
				found = append(found, image)
			}
		}
	}
	return strings.Join(found, ",")
}
