package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
)

func newColumns(names ...string) []table.Column {
	list := make([]table.Column, 0, len(names))
	for _, n := range names {
		list = append(list, table.Column{Name: n})
	}
	return list
}

// shortenRedacted takes secrets out before a text is cut: what is left of a token that was cut
// may no longer look like one.
func shortenRedacted(s string) string {
	if len(s) <= 40 { // is never cut; the whole result is redacted once more
		return s
	}
	return redact.Text(s)
}

func fromMap(m map[string]any, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(m, into)
}

// badWhenTrue ends the names of conditions that are in order while false.
var badWhenTrue = []string{"Pressure", "Unavailable", "Failure", "Failed", "Stalled", "Degraded", "Target"}

// conditionTable shows an object's conditions, those that are not in order first.
func conditionTable(o *unstructured.Unstructured, now time.Time) table.Table {
	t := table.Table{Columns: newColumns("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE")}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, entry := range list {
		m, _ := entry.(map[string]any)
		field := func(name string) string { s, _ := m[name].(string); return s }
		since := ""
		if at, err := time.Parse(time.RFC3339, field("lastTransitionTime")); err == nil {
			since = duration.HumanDuration(now.Sub(at))
		}
		t.Rows = append(t.Rows, table.Row{Cells: []string{field("type"), field("status"), since, field("reason"), shortenRedacted(field("message"))}})
	}
	slices.SortStableFunc(t.Rows, func(a, b table.Row) int { return cmp.Compare(inOrder(a), inOrder(b)) })
	return t
}

func inOrder(row table.Row) int {
	kind, status := row.Cells[0], row.Cells[1]
	good := "True"
	if slices.ContainsFunc(badWhenTrue, func(end string) bool { return strings.HasSuffix(kind, end) }) {
		good = "False"
	}
	if status == good {
		return 1
	}
	return 0
}

// containerTable shows the state of a pod's containers. Other objects have none.
func containerTable(o *unstructured.Unstructured, now time.Time) table.Table {
	t := table.Table{Columns: newColumns("NAME", "STATE", "READY", "RESTARTS", "LAST END", "IMAGE")}
	if o.GetKind() != "Pod" || o.GetAPIVersion() != "v1" {
		return t
	}
	var pod corev1.Pod
	if err := fromMap(o.Object, &pod); err != nil {
		return t // the specification below shows what there is
	}
	for _, part := range []struct {
		specs    []corev1.Container
		statuses []corev1.ContainerStatus
		prefix   string
	}{{pod.Spec.InitContainers, pod.Status.InitContainerStatuses, "init "}, {pod.Spec.Containers, pod.Status.ContainerStatuses, ""}} {
		for _, spec := range part.specs {
			row := []string{part.prefix + spec.Name, "not seen by a node", "", "", "", spec.Image}
			if i := slices.IndexFunc(part.statuses, func(s corev1.ContainerStatus) bool { return s.Name == spec.Name }); i >= 0 {
				s := part.statuses[i]
				row = []string{row[0], describeState(s.State, now), strconv.FormatBool(s.Ready), strconv.Itoa(int(s.RestartCount)), "", spec.Image}
				if s.LastTerminationState.Terminated != nil {
					row[4] = describeState(s.LastTerminationState, now)
				}
			}
			t.Rows = append(t.Rows, table.Row{Cells: row})
		}
	}
	return t
}

// describeState describes a container's state.
func describeState(s corev1.ContainerState, now time.Time) string {
	switch {
	case s.Waiting != nil:
		return strings.TrimSuffix("waiting: "+s.Waiting.Reason+": "+shortenRedacted(s.Waiting.Message), ": ")
	case s.Running != nil:
		return "running since " + duration.HumanDuration(now.Sub(s.Running.StartedAt.Time))
	case s.Terminated != nil:
		text := fmt.Sprintf("ended %s ago: %s, exit code %d", duration.HumanDuration(now.Sub(s.Terminated.FinishedAt.Time)), s.Terminated.Reason, s.Terminated.ExitCode)
		if s.Terminated.Message != "" {
			text += ": " + shortenRedacted(s.Terminated.Message)
		}
		return text
	}
	return "waiting"
}

// beside is a table of further objects.
type beside struct {
	title string
	table.Table
}

// maxBeside limits the rows of a table beside an object.
const maxBeside = 20

// related finds what belongs to an object: the pods of a workload or node, the endpoints
// of a Service.
func (c *call) related(ctx context.Context, o *unstructured.Unstructured, r cluster.Resource) (beside, error) {
	options := metav1.ListOptions{}
	switch r.GVR().GroupResource().String() {
	case "services":
		return c.endpoints(ctx, o)
	case "nodes":
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", o.GetName()).String()
	case "deployments.apps", "statefulsets.apps", "daemonsets.apps", "replicasets.apps", "jobs.batch":
		selector, err := podSelector(o)
		if err != nil {
			return beside{}, nil // it chooses no pods
		}
		options.LabelSelector = selector
	default:
		return beside{}, nil
	}
	pods, err := c.Cluster.Resolve(ctx, "pods")
	if err != nil {
		return beside{}, err
	}
	page, err := c.rows(ctx, pods, o.GetNamespace(), options)
	if apierrors.IsForbidden(err) {
		return beside{}, nil // the object itself was allowed
	}
	if err != nil {
		return beside{}, err
	}
	page.TroubleFirst()
	title := fmt.Sprintf("Pods (%d)", len(page.Rows))
	if len(page.Rows) > maxBeside {
		title = fmt.Sprintf("Pods (%d of %d, troubled ones first)", maxBeside, len(page.Rows))
		page.Rows = page.Rows[:maxBeside]
	}
	return beside{title, page.Table}, nil
}

// endpoints shows where a Service sends its traffic.
func (c *call) endpoints(ctx context.Context, o *unstructured.Unstructured) (beside, error) {
	list, err := c.Cluster.Typed().DiscoveryV1().EndpointSlices(o.GetNamespace()).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + o.GetName(), Limit: pageSize,
	})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return beside{}, nil
	}
	if err != nil {
		return beside{}, err
	}
	t := table.Table{Columns: newColumns("ADDRESS", "READY", "POD", "PORTS")}
	for _, slice := range list.Items {
		var ports []string
		for _, p := range slice.Ports {
			if p.Port != nil {
				ports = append(ports, strconv.Itoa(int(*p.Port)))
			}
		}
		for _, e := range slice.Endpoints {
			ready, pod := "true", ""
			if e.Conditions.Ready != nil {
				ready = strconv.FormatBool(*e.Conditions.Ready)
			}
			if e.TargetRef != nil {
				pod = e.TargetRef.Name
			}
			t.Rows = append(t.Rows, table.Row{Cells: []string{strings.Join(e.Addresses, ","), ready, pod, strings.Join(ports, ",")}})
		}
	}
	if len(t.Rows) == 0 {
		return beside{"Endpoints", table.Table{Columns: newColumns("ADDRESS"), Rows: []table.Row{{Cells: []string{"none: no ready pod has the labels of the selector and the target ports"}}}}}, nil
	}
	t.TroubleFirst()
	title := fmt.Sprintf("Endpoints (%d)", len(t.Rows))
	t.Rows = t.Rows[:min(len(t.Rows), maxBeside)]
	return beside{title, t}, nil
}
