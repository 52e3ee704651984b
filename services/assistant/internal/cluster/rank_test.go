package cluster_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// servedGroup is a group of one kind for each word "plural Kind short".
type servedGroup struct {
	name, version string
	kinds         []string
	stale         bool
}

// aggregatedDiscovery is the discovery document of groups, in one piece, as API servers send it
// since 1.26.
func aggregatedDiscovery(groups ...servedGroup) string {
	var items []any
	for _, g := range groups {
		resources := []any{}
		for _, k := range g.kinds {
			f := strings.Fields(k)
			resources = append(resources, map[string]any{
				"resource": f[0], "singularResource": "", "shortNames": f[2:], "scope": "Namespaced", "verbs": []string{"list"},
				"responseKind": map[string]string{"group": g.name, "version": g.version, "kind": f[1]},
			})
		}
		freshness := "Current"
		if g.stale {
			freshness = "Stale"
		}
		items = append(items, map[string]any{
			"metadata": map[string]any{"name": g.name},
			"versions": []any{map[string]any{"version": g.version, "freshness": freshness, "resources": resources}},
		})
	}
	text, _ := json.Marshal(map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": map[string]any{}, "items": items})
	return string(text)
}

// serveDiscovery answers as a server with core kinds and these groups does.
func serveDiscovery(core servedGroup, groups ...servedGroup) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		switch r.URL.Path {
		case "/api":
			_, _ = fmt.Fprint(w, aggregatedDiscovery(core))
		case "/apis":
			_, _ = fmt.Fprint(w, aggregatedDiscovery(groups...))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
}

// A bare word means the same kind at every start: core before all others, whatever aggregated
// APIs and custom kinds call theirs.
func TestBareWordMeansCoreFirst(t *testing.T) {
	t.Parallel()
	core := servedGroup{name: "", version: "v1", kinds: []string{"pods Pod po", "nodes Node no", "services Service svc", "events Event ev"}}
	groups := []servedGroup{
		{name: "metrics.k8s.io", version: "v1beta1", kinds: []string{"pods PodMetrics", "nodes NodeMetrics"}},
		{name: "apps", version: "v1", kinds: []string{"deployments Deployment deploy"}},
		{name: "events.k8s.io", version: "v1", kinds: []string{"events Event ev"}},
		{name: "serving.knative.dev", version: "v1", kinds: []string{"services Service kservice,ksvc"}},
		{name: "cluster.x-k8s.io", version: "v1beta1", kinds: []string{"deployments Deployment deploy"}},
		{name: "aaa.example.com", version: "v1", kinds: []string{"pods Pod po", "deployments Deployment deploy"}},
	}
	rows := map[string]string{
		"pods": "/pods", "pod": "/pods", "po": "/pods", "nodes": "/nodes", "no": "/nodes", "services": "/services", "svc": "/services",
		"events": "/events", "deployments": "apps/deployments", "deploy": "apps/deployments", "podmetrics": "metrics.k8s.io/pods",
		"pods.metrics.k8s.io": "metrics.k8s.io/pods", "services.serving.knative.dev": "serving.knative.dev/services",
		"deployments.v1beta1.cluster.x-k8s.io": "cluster.x-k8s.io/deployments", "pods.aaa.example.com": "aaa.example.com/pods",
	}
	for range 30 { // one start each: the order came out of a map
		c := newServedCluster(t, serveDiscovery(core, groups...))
		for word, want := range rows {
			r, err := c.Resolve(t.Context(), word)
			if got := r.Group + "/" + r.Resource; err != nil || got != want {
				t.Fatalf("%s means %s, %v; want %s", word, got, err, want)
			}
		}
	}
}

// Where core does not answer, no pods are better than those of the metrics API: an answer of
// "none" about measurements would be read as one about pods.
func TestBareWordIsNeverAMeasurement(t *testing.T) {
	t.Parallel()
	core := servedGroup{name: "", version: "v1", kinds: []string{"configmaps ConfigMap cm"}}
	c := newServedCluster(t, serveDiscovery(core, servedGroup{name: "metrics.k8s.io", version: "v1beta1", kinds: []string{"pods PodMetrics", "nodes NodeMetrics"}}))
	for _, word := range []string{"pods", "nodes"} {
		if r, err := c.Resolve(t.Context(), word); err == nil {
			t.Errorf("%s means %s of group %s; want reason %s", word, r.Resource, r.Group, operation.UnknownKind)
		}
	}
}
