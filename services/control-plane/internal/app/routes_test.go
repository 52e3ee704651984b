package app

import (
	"regexp"
	"testing"

	"github.com/goccy/go-yaml"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
)

// Every mounted route is in the OpenAPI document.
func TestRoutesAreDocumented(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Unmarshal(api.Document, &doc); err != nil {
		t.Fatal(err)
	}
	param := regexp.MustCompile(`:([a-z_]+)`)
	lower := map[string]string{"GET": "get", "POST": "post", "PUT": "put", "DELETE": "delete"}
	for _, r := range (&parts{}).routes() {
		path := param.ReplaceAllString(r.path, "{$1}")
		if doc.Paths[path][lower[r.method]] == nil {
			t.Errorf("%s %s is not documented; want doc.Paths[path][lower[r.method]] != nil", r.method, path)
		}
		if r.method != "GET" && r.scope != signed && (r.scope == "" || r.class == classNone) {
			t.Errorf(`%s %s writes without scope or rate limit; want ((r.method == "GET" || r.scope == signed) || !r.scope == "" || r.class == classNone)`, r.method, path)
		}
	}
}
