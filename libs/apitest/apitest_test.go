package apitest_test

import (
	"go/parser"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/apitest"
)

const document = `
openapi: 3.0.3
info: {title: things, version: "1"}
paths:
  /things/{id}:
    get:
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses:
        "200":
          description: a thing
          content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}}}
        "204": {description: none}
components:
  schemas:
    Thing: {type: object, required: [name], properties: {name: {type: string}, at: {type: string, format: date-time}}}
`

func TestConforms(t *testing.T) {
	t.Parallel()
	doc := apitest.New([]byte(document))
	for _, c := range []struct {
		name, method, path string
		status             int
		kind, body, want   string
	}{
		{"as promised", "GET", "/things/a", 200, "application/json; charset=utf-8", `{"name":"a","at":"2026-01-02T03:04:05Z"}`, ""},
		{"no body", "GET", "/things/a", 204, "", "", ""},
		{"a head", "HEAD", "/things/a", 200, "application/json", "", ""},
		{"a page", "GET", "/docs", 200, "text/html", "<p>", ""},
		{"nothing there", "GET", "/nothing", 404, "application/problem+json", `{}`, ""},
		{"another status", "GET", "/things/a", 500, "application/json", `{}`, "does not know status 500"},
		{"another type", "GET", "/things/a", 200, "text/plain", "a", `does not promise "text/plain"`},
		{"a body where none is", "GET", "/things/a", 204, "application/json", `{}`, "does not promise"},
		{"a member missing", "GET", "/things/a", 200, "application/json", `{}`, "unlike the document"},
		{"a member too many", "GET", "/things/a", 200, "application/json", `{"name":"a","more":1}`, "unlike the document"},
		{"a bad time", "GET", "/things/a", 200, "application/json", `{"name":"a","at":"soon"}`, "unlike the document"},
		{"an unknown route", "GET", "/other", 200, "application/json", `{}`, "is not in the document"},
	} {
		err := doc.Conforms(httptest.NewRequest(c.method, c.path, nil), apitest.Answer{Status: c.status, Header: http.Header{"Content-Type": {c.kind}}, Body: []byte(c.body)})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if err := apitest.New([]byte("openapi: 3.0.3")).Conforms(httptest.NewRequest("GET", "/", nil), apitest.Answer{Status: 200}); err == nil || !strings.Contains(err.Error(), "the document") {
		t.Errorf(`a document without paths: %v; want an error && strings.Contains(err.Error(), "the document")`, err)
	}
}

func TestSource(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		"http.StatusNotFound": 404, "422": 422, "http.StatusRequestURITooLong": 414, "status": 0, "http.StatusOK": 0,
	} {
		e, err := parser.ParseExpr(code)
		if err != nil {
			t.Fatal(err)
		}
		if got := apitest.Status(apitest.Literal(e)); got != want {
			t.Errorf("%s is %d, want %d", code, got, want)
		}
	}
	if e, err := parser.ParseExpr(`"a\tb"`); err != nil || apitest.Literal(e) != "a\tb" {
		t.Errorf("a text is not read: %v; want apitest.Literal(e) == \"a\\tb\"", err)
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go":      "package a\nvar (\n X = problem.Kind{Code: \"gone\", Status: http.StatusGone, Title: \"Gone\"}\n Y = Kind{\"bad\", 422, \"Bad\"}\n Z = Kind{\"bad\", 422, \"Bad\"}\n W = other{1, 2, 3}\n)\n",
		"a_test.go": "package a\nvar T = Kind{\"test\", 400, \"Test\"}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kinds, err := apitest.Kinds(dir)
	if want := []apitest.Kind{{410, "gone", "Gone"}, {422, "bad", "Bad"}}; err != nil || !slices.Equal(kinds, want) {
		t.Errorf("got %v, %v, want %v", kinds, err, want)
	}
	if _, err := apitest.Kinds(t.TempDir()); err == nil {
		t.Error("a folder without source is no error")
	}
}
