package openapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/services/evidence-api/internal/openapi"
	"github.com/mlp-platform/platform/services/evidence-api/internal/route"
)

var update = flag.Bool("update", false, "rewrite the tracked snapshot")

const (
	snapshot = "../../api/openapi.json"
	version  = "snapshot" // in place of the build's
)

func TestSnapshot(t *testing.T) {
	t.Parallel()
	text, err := openapi.Document(version)
	if err != nil {
		t.Fatal(err)
	}
	v, err := canon.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	want, err := canon.P(v)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(snapshot, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%s is not what the code has: go generate ./services/evidence-api", snapshot)
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
			t.Errorf("%s %s stands in the document as %+v", o.Method, o.Path, doc.Paths[o.Path])
			continue
		}
		if open := op.Security != nil && string(*op.Security) == "[]"; open != o.Open {
			t.Errorf("%s: tokenless is %v in the document", o.ID, open)
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
	walk(any, func(ref string) {
		var at = interface{}(any)
		for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			m, _ := at.(map[string]interface{})
			at = m[part]
		}
		if at == nil {
			t.Errorf("%s leads nowhere", ref)
		}
	})
}

func walk(v interface{}, fn func(ref string)) {
	switch v := v.(type) {
	case []interface{}:
		for _, e := range v {
			walk(e, fn)
		}
	case map[string]interface{}:
		if ref, ok := v["$ref"].(string); ok {
			fn(ref)
		}
		for _, e := range v {
			walk(e, fn)
		}
	}
}
