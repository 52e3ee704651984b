package registry_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/services/assistant/internal/tool/registry"
)

const callingObjects = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: web, creationTimestamp: "2026-03-01T09:00:00Z"}
spec:
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: a, env: [{name: API, value: "http://api.shop.svc:8080/v1"}, {name: PORT, value: "api is up"}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: api}
spec:
  template:
    metadata: {labels: {app: api}}
    spec: {containers: [{name: api, image: b, env: [{name: SELF, value: api}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: mail}
spec:
  template:
    metadata: {labels: {app: mail}}
    spec: {containers: [{name: mail, image: c, env: [{name: API_HOST, value: api}, {name: OTHER, value: unrelated}]}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: api}
spec: {selector: {app: api}, ports: [{port: 8080}]}
`

// TestCallers: a workload is used by those whose variables name a Service that leads to it, but never by the workload
// itself.
func TestCallers(t *testing.T) {
	t.Parallel()
	out, _ := callTool(t, recordedBox(t, callingObjects), "dependencies", map[string]any{"namespace": "shop", "name": "api"})
	got := map[string]string{}
	for _, d := range out.Data.(*registry.Dependencies).UsedBy {
		got[d.Object.Kind+"/"+d.Object.Name] = d.How
	}
	want := map[string]string{
		"Service/api": "sends traffic to its pods", "Deployment/web": "its variable API names Service api", "Deployment/mail": "its variable API_HOST names Service api",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("callers (-want +got):\n%s", diff)
	}
}
