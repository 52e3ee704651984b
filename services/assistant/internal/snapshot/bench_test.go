package snapshot_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/snapshot"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

var discovery = map[string]string{
	"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis":   `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	"/api/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"pods","namespaced":true,"kind":"Pod","verbs":["get","list"]}]}`,
}

// manyPods serves pages of pods, as large as a kubelet leaves them, and no other kind.
func manyPods(b *testing.B, pods int) *httptest.Server {
	b.Helper()
	const page = 500
	var pages [][]byte
	for from := 0; from < pods; from += page {
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
		for i := from; i < min(from+page, pods); i++ {
			list.Items = append(list.Items, benchPod(i))
		}
		if from+page < pods {
			list.Continue = strconv.Itoa(from/page + 1)
		}
		raw, err := json.Marshal(list)
		if err != nil {
			b.Fatal(err)
		}
		pages = append(pages, raw)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if body, ok := discovery[r.URL.Path]; ok {
			_, _ = w.Write([]byte(body))
			return
		}
		if r.URL.Path != "/api/v1/pods" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
			return
		}
		n, err := strconv.Atoi(r.URL.Query().Get("continue"))
		if err != nil {
			n = 0 // the first page
		}
		_, _ = w.Write(pages[n])
	}))
	b.Cleanup(s.Close)
	return s
}

func benchPod(i int) corev1.Pod {
	labels := map[string]string{"app": fmt.Sprintf("app-%d", i/10), "pod-template-hash": "5d4f8c7b9d", "team": "payments"}
	managed := metav1.ManagedFieldsEntry{Manager: "kubelet", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{},"f:startTime":{}}}`)}
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("app-%d-5d4f8c7b9d-%05d", i/10, i), Namespace: fmt.Sprintf("team-%d", i%50), UID: "0f3a9c2b-0000-0000-0000-000000000000", Labels: labels, ManagedFields: []metav1.ManagedFieldsEntry{managed}}}
	env := []corev1.EnvVar{}
	for _, name := range []string{"LOG_LEVEL", "DATABASE_HOST", "DATABASE_PORT", "FEATURE_FLAGS", "CACHE_URL"} {
		env = append(env, corev1.EnvVar{Name: name, Value: "some value of ordinary length"})
	}
	p.Spec = corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i%100), ServiceAccountName: "default", Containers: []corev1.Container{{
		Name: "app", Image: "registry.example/team/app:1.2.3", Env: env, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
	}}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: true, Image: "registry.example/team/app:1.2.3", ImageID: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	for _, c := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue})
	}
	return p
}

// BenchmarkQuestion reads 5,000 pods and diagnoses them. It has to stay well below 2 s on two cores.
func BenchmarkQuestion(b *testing.B) {
	s := manyPods(b, 5000)
	c, err := cluster.Open(b.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) { return &rest.Config{Host: s.URL}, func() {} }})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	for b.Loop() {
		snap, err := snapshot.Read(b.Context(), c, guard.Policy{}, "", time.Now(), func(operation.Operation) func(turn.Output, error) { return func(turn.Output, error) {} })
		if err != nil || len(snap.Pods) != 5000 {
			b.Fatalf("%d pods, %v; want len(snap.Pods) == 5000", len(snap.Pods), err)
		}
		playbook.Diagnose(snap, "")
	}
}
