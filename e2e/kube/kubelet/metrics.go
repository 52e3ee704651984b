package kubelet

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const metricsVersion = "metrics.k8s.io/v1beta1"

// ServeMetrics makes the API server take the metrics API from here.
func (k *Kubelet) ServeMetrics(ctx context.Context) error {
	_, err := k.client.CoreV1().Services("kube-system").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1.metrics.k8s.io"},
		"spec": map[string]any{
			"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "kube-system", "name": "metrics", "port": k.Port()},
		},
	})
	if err != nil {
		return err
	}
	return k.client.Discovery().RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").Body(body).
		SetHeader("Content-Type", "application/json").Do(ctx).Error()
}

func (k *Kubelet) routeMetrics(mux *http.ServeMux) {
	at := "GET /apis/" + metricsVersion
	mux.HandleFunc(at, func(w http.ResponseWriter, _ *http.Request) {
		resources := []map[string]any{}
		for _, r := range []struct {
			name, kind string
			namespaced bool
		}{{"nodes", "NodeMetrics", false}, {"pods", "PodMetrics", true}} {
			resources = append(resources, map[string]any{"name": r.name, "singularName": "", "kind": r.kind, "namespaced": r.namespaced, "verbs": []string{"get", "list"}})
		}
		writeJSON(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": metricsVersion, "resources": resources})
	})
	mux.HandleFunc(at+"/pods", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, k.usage("")) })
	mux.HandleFunc(at+"/namespaces/{namespace}/pods", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, k.usage(r.PathValue("namespace"))) })
	mux.HandleFunc(at+"/nodes", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"kind": "NodeMetricsList", "apiVersion": metricsVersion, "metadata": map[string]any{}, "items": []any{}})
	})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the reader may be gone
}

// usage returns the usage of running pods, as their programs declare it.
func (k *Kubelet) usage(namespace string) map[string]any {
	items := []any{}
	if more := k.others(); more != nil {
		for _, m := range more.Usage(namespace) {
			items = append(items, m)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.pods {
		p := &k.pods[i]
		if namespace != "" && p.Namespace != namespace || k.told[p.UID].status.Phase != corev1.PodRunning {
			continue
		}
		progs, err := readPrograms(p)
		if err != nil {
			continue
		}
		containers := []any{}
		for _, c := range p.Spec.Containers {
			cpu, memory := resource.MustParse("5m"), resource.MustParse("20Mi")
			if v := progs[c.Name].CPU; !v.IsZero() {
				cpu = v
			}
			if v := progs[c.Name].Memory; !v.IsZero() {
				memory = v
			}
			containers = append(containers, map[string]any{"name": c.Name, "usage": map[string]any{"cpu": cpu.String(), "memory": memory.String()}})
		}
		items = append(items, map[string]any{
			"metadata":  map[string]any{"name": p.Name, "namespace": p.Namespace, "labels": p.Labels},
			"timestamp": time.Now().UTC().Format(time.RFC3339), "window": "15s", "containers": containers,
		})
	}
	return map[string]any{"kind": "PodMetricsList", "apiVersion": metricsVersion, "metadata": map[string]any{}, "items": items}
}
