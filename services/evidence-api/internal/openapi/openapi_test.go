package openapi_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/go/controltower"
	"github.com/mlp-platform/platform/services/evidence-api/internal/openapi"
	"github.com/mlp-platform/platform/services/evidence-api/internal/route"
)

const (
	snapshot = "../../../../clients/go/controltower/openapi.json"
	version  = "snapshot" // in place of the build's
)

func TestSnapshot(t *testing.T) {
	t.Parallel()
	want, err := openapi.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%s is not what the code has: go generate ./services/evidence-api; want bytes.Equal(have, want)", snapshot)
	}
}

// The service serves the client's copy, which must match the routes of the build.
func TestServedDocumentIsThatOfTheRoutes(t *testing.T) {
	t.Parallel()
	want, err := openapi.Document("1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	got, err := controltower.OpenAPI("1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the served document has %d bytes and differs from the routes' %d", len(got), len(want))
	}
}

// TestPromises: what programs rely on in the document whatever else it gains.
func TestPromises(t *testing.T) {
	t.Parallel()
	text, err := openapi.Document(version)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		OpenAPI    string
		Servers    json.RawMessage
		Security   json.RawMessage
		Kind       string `json:"x-svc-kind"`
		Schema     string `json:"x-svc-schema-version"`
		Components struct {
			SecuritySchemes map[string]struct{ Type, In, Name string }
		}
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	scheme := doc.Components.SecuritySchemes["LocalSessionToken"]
	if doc.OpenAPI != "3.1.0" || string(doc.Servers) != `[{"url":"/"}]` || string(doc.Security) != `[{"LocalSessionToken":[]}]` ||
		doc.Kind != "svc-openapi" || doc.Schema != "0.1" || len(doc.Components.SecuritySchemes) != 1 ||
		scheme.Type != "apiKey" || scheme.In != "header" || scheme.Name != "X-SVC-UI-Token" {
		t.Errorf("%+v %s %s; want doc.OpenAPI == \"3.1.0\" && string(doc.Servers) == `[{\"url\":\"/\"}]` && string(doc.Security) == `[{\"LocalSessionToken\":[]}]` && doc.Kind == \"svc-openapi\" && …", doc, doc.Servers, doc.Security)
	}
	for endpoint, id := range map[string]string{
		"get /healthz": "health", "get /readyz": "readiness", "get /api/v1/status": "status", "get /api/v1/openapi.json": "openapi",
		"get /api/v1/metrics": "metrics", "post /api/v1/run-evidence/inspect": "inspect_run_evidence",
		"get /api/v1/connections": "list_connections", "get /api/v1/connections/{connection_id}": "read_connection",
		"get /api/v1/runs": "list_runs", "get /api/v1/runs/{run_id}": "read_run", "get /api/v1/runs/{run_id}/attempts": "read_run_attempts",
		"get /api/v1/runs/{run_id}/evidence": "read_run_evidence", "get /api/v1/work-units": "list_work_units",
		"get /api/v1/work-units/{work_unit_id}": "read_work_unit", "get /api/v1/projects/{project_id}": "read_project",
		"get /api/v1/events": "list_events", "get /api/v1/events/stream": "stream_events",
	} {
		method, path, _ := strings.Cut(endpoint, " ")
		if got := doc.Paths[path][method].OperationID; got != id {
			t.Errorf("%s is %q, want %s", endpoint, got, id)
		}
	}
}

// TestEveryRouteStandsInIt compares the document with the route table, both ways.
func TestEveryRouteStandsInIt(t *testing.T) {
	t.Parallel()
	text, err := openapi.Document(version)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string           `json:"operationId"`
			Security    *json.RawMessage `json:"security"`
			Parameters  []struct{ Name, In string }
			Responses   map[string]struct {
				Ref string `json:"$ref"`
			}
		}
		Components struct {
			Responses map[string]struct {
				Codes []string `json:"x-svc-codes"`
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, o := range route.Table() {
		op, ok := doc.Paths[o.Path][strings.ToLower(o.Method)]
		if !ok || len(doc.Paths[o.Path]) != 1 || op.OperationID != o.ID {
			t.Errorf("%s %s stands in the document as %+v; want ok && len(doc.Paths[o.Path]) == 1 && op.OperationID == o.ID", o.Method, o.Path, doc.Paths[o.Path])
			continue
		}
		if open := op.Security != nil && string(*op.Security) == "[]"; open != o.Open {
			t.Errorf("%s: tokenless is %v in the document; want open == %v", o.ID, open, o.Open)
		}
		var query []string
		for _, p := range op.Parameters {
			if p.In == "query" {
				query = append(query, p.Name)
			}
		}
		if strings.Join(query, " ") != strings.Join(o.Query, " ") {
			t.Errorf("%s: query %v, want %v", o.ID, query, o.Query)
		}
		n := 0
		for _, r := range op.Responses {
			n += len(doc.Components.Responses[strings.TrimPrefix(r.Ref, "#/components/responses/")].Codes)
		}
		if n != len(o.AllCodes()) {
			t.Errorf("%s: %d codes, want %d", o.ID, n, len(o.AllCodes()))
		}
		delete(doc.Paths, o.Path)
	}
	for path := range doc.Paths {
		t.Errorf("the document has %s, the table has not", path)
	}
	// Every reference leads somewhere.
	var any map[string]any
	if err := json.Unmarshal(text, &any); err != nil {
		t.Fatal(err)
	}
	walkRefs(any, func(ref string) {
		var at = interface{}(any)
		for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			m, _ := at.(map[string]interface{})
			at = m[part]
		}
		if at == nil {
			t.Errorf("%s leads nowhere; want at != nil", ref)
		}
	})
}

func walkRefs(v interface{}, fn func(ref string)) {
	switch v := v.(type) {
	case []interface{}:
		for _, e := range v {
			walkRefs(e, fn)
		}
	case map[string]interface{}:
		if ref, ok := v["$ref"].(string); ok {
			fn(ref)
		}
		for _, e := range v {
			walkRefs(e, fn)
		}
	}
}
