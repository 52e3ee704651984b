package app

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/outbox/admin"
	"github.com/mlp-platform/platform/services/inference/internal/hook"
	"github.com/mlp-platform/platform/services/inference/internal/inventory"
	"github.com/mlp-platform/platform/services/inference/internal/monitor"
	"github.com/mlp-platform/platform/services/inference/internal/openinference"
	"github.com/mlp-platform/platform/services/inference/internal/predict"
	"github.com/mlp-platform/platform/services/inference/internal/traffic"
)

// The document and the router must name the same routes; the shared ones come from libs/service.
func TestDocumentNamesTheRoutes(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := yaml.Unmarshal(api.Document, &doc); err != nil {
		t.Fatal(err)
	}
	shared := []string{"GET /livez", "GET /readyz", "GET /metrics"}
	var documented []string
	for path, methods := range doc.Paths {
		for method := range methods {
			route := strings.ToUpper(method) + " " + strings.NewReplacer("{", ":", "}", "").Replace(path)
			if !slices.Contains(shared, route) {
				documented = append(documented, route)
			}
		}
	}
	e := echo.New()
	addRoutes(e, auth.Load("", "", auth.Rules{}), handlers{
		predictions: &predict.Handlers{}, tensors: &openinference.Handlers{}, models: &inventory.Handlers{}, drift: &monitor.Monitor{}, traffic: &traffic.Traffic{}, hooks: &hook.Handlers{}, outbox: admin.Handlers{},
	})
	var served []string
	for _, r := range e.Routes() {
		if r.Method != http.MethodHead {
			served = append(served, r.Method+" "+r.Path)
		}
		if r.Method == http.MethodGet && !slices.ContainsFunc(e.Routes(), func(h *echo.Route) bool { return h.Method == http.MethodHead && h.Path == r.Path }) {
			t.Errorf("%s has GET and no HEAD; want (r.Method != http.MethodGet || slices.ContainsFunc(e.Routes(), func(h *echo.Route) bool { return h.Method == http.MethodHead && h.Path == r.Path }))", r.Path)
		}
	}
	slices.Sort(documented)
	slices.Sort(served)
	if !slices.Equal(documented, served) {
		t.Errorf("documented %v\nserved     %v; want slices.Equal(documented, served)", documented, served)
	}
}
