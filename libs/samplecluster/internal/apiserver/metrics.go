package apiserver

import (
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

const (
	metricsGroup   = "metrics.k8s.io"
	metricsVersion = "v1beta1"
	metricsPath    = "/apis/" + metricsGroup + "/" + metricsVersion + "/"
	// window is over how long a metrics server takes its average.
	window = 15 * time.Second
)

// The documents of the metrics API. Its module is not needed for six fields.
type (
	podMetrics struct {
		metav1.TypeMeta
		Metadata   metav1.ObjectMeta  `json:"metadata"`
		Timestamp  metav1.Time        `json:"timestamp"`
		Window     metav1.Duration    `json:"window"`
		Containers []containerMetrics `json:"containers"`
	}
	containerMetrics struct {
		Name  string              `json:"name"`
		Usage corev1.ResourceList `json:"usage"`
	}
	nodeMetrics struct {
		metav1.TypeMeta
		Metadata  metav1.ObjectMeta   `json:"metadata"`
		Timestamp metav1.Time         `json:"timestamp"`
		Window    metav1.Duration     `json:"window"`
		Usage     corev1.ResourceList `json:"usage"`
	}
	metricsList struct {
		metav1.TypeMeta
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []any           `json:"items"`
	}
)

// metrics serves the metrics API; it reports whether the request was for it.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) bool {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/"), metricsPath)
	if !ok || r.Method != http.MethodGet {
		return false
	}
	req := request{Request: r}
	parts := strings.Split(rest, "/")
	if len(parts) >= 3 && parts[0] == "namespaces" {
		req.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) == 2 {
		req.name = parts[1]
	}
	var kind string
	var measure func(store.Tx, resource.Object) any
	switch {
	case len(parts) <= 2 && parts[0] == "pods" && (req.name == "" || req.namespace != ""):
		req.kind, kind, measure = resource.Of(resource.Pods), "PodMetrics", s.podUsage
	case len(parts) <= 2 && parts[0] == "nodes" && req.namespace == "":
		req.kind, kind, measure = resource.Of(resource.Nodes), "NodeMetrics", s.nodeUsage
	default:
		writeError(w, errNoRoute)
		return true
	}
	match, err := parseSelectors(req)
	if err != nil {
		writeError(w, err)
		return true
	}
	out := metricsList{TypeMeta: metricsType(kind + "List"), Items: []any{}}
	s.store.Do(func(tx store.Tx) {
		for _, o := range tx.List(req.kind.GroupResource(), req.namespace) {
			if !match(o) {
				continue
			}
			if m := measure(tx, o); m != nil {
				out.Items = append(out.Items, m)
			}
		}
	})
	switch {
	case req.name == "":
		writeJSON(w, http.StatusOK, out)
	case len(out.Items) == 0: // also a pod that has not run yet
		writeError(w, apierrors.NewNotFound(schema.GroupResource{Group: metricsGroup, Resource: req.kind.Plural}, req.name))
	default:
		writeJSON(w, http.StatusOK, out.Items[0])
	}
	return true
}

func metricsType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: metricsGroup + "/" + metricsVersion}
}

func (s *Server) measured(o resource.Object) (metav1.ObjectMeta, metav1.Time, metav1.Duration) {
	meta := metav1.ObjectMeta{Name: o.GetName(), Namespace: o.GetNamespace(), Labels: o.GetLabels(), CreationTimestamp: o.GetCreationTimestamp()}
	return meta, metav1.NewTime(s.now().Truncate(window)), metav1.Duration{Duration: window}
}

// podUsage is nil for a pod in which nothing runs.
func (s *Server) podUsage(tx store.Tx, o resource.Object) any {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	var containers []containerMetrics
	for i := range pod.Spec.Containers {
		if usage, running := s.kubelet.Usage(tx, pod, &pod.Spec.Containers[i]); running {
			containers = append(containers, containerMetrics{pod.Spec.Containers[i].Name, usage})
		}
	}
	if len(containers) == 0 {
		return nil
	}
	m := podMetrics{TypeMeta: metricsType("PodMetrics"), Containers: containers}
	m.Metadata, m.Timestamp, m.Window = s.measured(o)
	return m
}

// nodeUsage returns the sum of its pods' usage: the node's own processes run in the part of its capacity that is not
// allocatable.
func (s *Server) nodeUsage(tx store.Tx, o resource.Object) any {
	node, ok := o.(*corev1.Node)
	if !ok {
		return nil
	}
	sum := corev1.ResourceList{}
	add := func(list corev1.ResourceList) {
		for name, amount := range list {
			total := sum[name]
			total.Add(amount)
			sum[name] = total
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		own := node.Status.Capacity[name]
		own.Sub(node.Status.Allocatable[name])
		add(corev1.ResourceList{name: own})
	}
	for _, pod := range store.List[*corev1.Pod](tx, resource.Pods, "") {
		if pod.Spec.NodeName != node.Name {
			continue
		}
		for i := range pod.Spec.Containers {
			if usage, running := s.kubelet.Usage(tx, pod, &pod.Spec.Containers[i]); running {
				add(usage)
			}
		}
	}
	m := nodeMetrics{TypeMeta: metricsType("NodeMetrics"), Usage: sum}
	m.Metadata, m.Timestamp, m.Window = s.measured(o)
	return m
}
