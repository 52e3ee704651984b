package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
)

// TestReleasesAreAskedForWithoutData: Helm's Secrets are left out where keys are listed, and only their metadata is
// requested.
func TestReleasesAreAskedForWithoutData(t *testing.T) {
	t.Parallel()
	var whole, metadata atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path != "/api/v1/namespaces/shop/secrets":
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Query().Get("fieldSelector") == "type!=helm.sh/release.v1":
			whole.Add(1)
			_, _ = w.Write([]byte(`{"kind":"SecretList","apiVersion":"v1","items":[{"metadata":{"namespace":"shop","name":"plain"},"type":"Opaque","data":{"a":"aHVudGVyMg=="}},` +
				`{"metadata":{"namespace":"shop","name":"sh.helm.release.v1.web.v1"},"type":"helm.sh/release.v1","data":{"release":"aHVudGVyMg=="}}]}`))
		case r.URL.Query().Get("labelSelector") == "owner=helm" && strings.HasPrefix(r.Header.Get("Accept"), "application/json;as=PartialObjectMetadataList;"):
			metadata.Add(1)
			_, _ = w.Write([]byte(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[` +
				`{"metadata":{"namespace":"shop","name":"sh.helm.release.v1.web.v1","labels":{"owner":"helm","name":"web","version":"1","status":"deployed"}}},` +
				`{"metadata":{"namespace":"shop","name":"other","labels":{"owner":"helm"}}}]}`))
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(server.Close)
	c, err := cluster.Open(t.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) { return &rest.Config{Host: server.URL}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	all, err := c.SecretKeys(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range all {
		got[s.Name] = strings.Join(s.Keys, ",")
		if s.Release != nil {
			got[s.Name] += s.Release.Name + " " + s.Release.Status
		}
	}
	if diff := cmp.Diff(map[string]string{"plain": "a", "sh.helm.release.v1.web.v1": "web deployed"}, got); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	if whole.Load() != 1 || metadata.Load() != 1 {
		t.Errorf("%d lists with data and %d without; want one of each", whole.Load(), metadata.Load())
	}
}
