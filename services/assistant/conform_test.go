package assistant_test

import (
	"strings"
	"testing"

	api "github.com/mlp-platform/platform/clients/go/assistant"
	"github.com/mlp-platform/platform/libs/apitest"
)

// document judges the answers of all tests.
var document = apitest.New(api.Document)

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	b := startBench(t)
	doc := b.want(200, "GET", "/openapi.json", "", "").document(t)
	if doc["openapi"] != "3.0.3" {
		t.Errorf(`%v; want "3.0.3"`, doc["openapi"])
	}
	for _, page := range []string{"/docs", "/redoc"} {
		if a := b.want(200, "GET", page, "", ""); !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
			t.Errorf(`%s: %s; want strings.HasPrefix(a.Header.Get("Content-Type"), "text/html")`, page, a.Header.Get("Content-Type"))
		}
	}
}
