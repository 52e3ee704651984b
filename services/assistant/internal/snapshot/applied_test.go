package snapshot_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/libs/samplecluster"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/snapshot"
)

// TestAppliedManifests: a manifest in a possibly removed version is kept, without its secret values; any other is
// dropped.
func TestAppliedManifests(t *testing.T) {
	t.Parallel()
	own := samplecluster.New(time.Now)
	t.Cleanup(own.Close)
	client, err := kubernetes.NewForConfig(own.Config())
	if err != nil {
		t.Fatal(err)
	}
	for name, version := range map[string]string{"old": "extensions/v1beta1", "new": "apps/v1"} {
		labels := map[string]string{"app": name}
		manifest := `{"apiVersion":"` + version + `","kind":"Deployment","metadata":{"name":"` + name + `"},"spec":{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"DB_PASSWORD","value":"hunter2-value"}]}]}}}}`
		if _, err := client.AppsV1().Deployments("shop").Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: manifest}},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "registry.example/a:1"}}}},
			},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := cluster.Open(t.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) { return own.Config(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s, err := snapshot.Read(t.Context(), c, guard.Policy{}, "shop", time.Now(), (&shown{t: t}).show)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, d := range s.Deployments {
		text, kept := d.Annotations[corev1.LastAppliedConfigAnnotation]
		switch d.Name {
		case "old":
			seen++
			if !strings.Contains(text, "extensions/v1beta1") || strings.Contains(text, "hunter2") {
				t.Errorf(`the manifest of a version that may be gone is %q; want strings.Contains(text, "extensions/v1beta1") && !strings.Contains(text, "hunter2")`, text)
			}
		case "new":
			seen++
			if kept {
				t.Errorf("a manifest that nobody reads is kept: %q; want !kept", text)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d of 2 deployments; want 2", seen)
	}
}
