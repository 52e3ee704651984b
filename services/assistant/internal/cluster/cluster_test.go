package cluster_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/libs/samplecluster"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
)

func openSample(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Open(t.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) {
		s := samplecluster.New(time.Now)
		return s.Config(), s.Close
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestNamesOfKinds(t *testing.T) {
	t.Parallel()
	c := openSample(t)
	for name, want := range map[string]string{
		"deploy": "deployments", "Deployment": "deployments", "deployments.apps": "deployments", "deployments.v1.apps": "deployments",
		"po": "pods", "pods.v1": "pods", "pods.v1.": "pods", "PVC": "persistentvolumeclaims", "hpa": "horizontalpodautoscalers",
	} {
		r, err := c.Resolve(t.Context(), name)
		if err != nil || r.Resource != want {
			t.Errorf("%s is %s, %v; want %s", name, r.Resource, err, want)
		}
	}
	_, err := c.Resolve(t.Context(), "deploymnet")
	if err == nil || err.Error() != `The cluster has no kind "deploymnet"; similar ones are deployments.apps.` {
		t.Errorf("unknown kind: %v; want an error && err.Error() == `The cluster has no kind \"deploymnet\"; similar ones are deployments.apps.`", err)
	}
}

func TestSecretsArriveAsKeys(t *testing.T) {
	t.Parallel()
	c := openSample(t)
	all, err := c.SecretKeys(t.Context(), "payments")
	if err != nil || !slices.ContainsFunc(all, func(s cluster.Secret) bool {
		return s.Namespace == "payments" && s.Name == "gateway-db" && slices.Contains(s.Keys, "DB_URL") && s.Certificate == nil
	}) {
		t.Errorf("got %+v, %v; want the Secret payments/gateway-db with the key DB_URL and no certificate", all, err)
	}
}
