package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFieldsAndExpressions(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"registered_models":[{"name":"jpcp","aliases":[{"alias":"Production","version":"9007199254740993"}]},{"name":"mack"}]}`))
	}))
	t.Cleanup(srv.Close)
	vars := map[string]string{"HOME": t.TempDir(), "TRACKING_URI": srv.URL, "CONTROL_PLANE_URL": srv.URL}
	list := []string{"models", "list"}
	for _, tc := range []struct {
		name    string
		options []string
		command []string
		want    string
		code    int
	}{
		{"fields in their order", []string{"--json", "--fields", "production,name"}, list,
			"[\n  {\n    \"production\": \"9007199254740993\",\n    \"name\": \"JPCP\"\n  },\n  {\n    \"production\": null,\n    \"name\": \"MACK\"\n  }\n]\n", 0},
		{"fields of an envelope", []string{"--json", "--fields", "name"}, []string{"models", "list", "--envelope", "--limit", "1"},
			"{\n  \"items\": [\n    {\n      \"name\": \"JPCP\"\n    }\n  ],\n  \"more\": true\n}\n", 0},
		{"texts as they are", []string{"--json", "--jq", ".[].name"}, list, "JPCP\nMACK\n", 0},
		{"options in any order", []string{"--jq", ".[0].name", "--json"}, list, "JPCP\n", 0},
		{"objects a line", []string{"-o", "json", "--jq", ".[] | {name, v: .production}"}, list, "{\"name\":\"JPCP\",\"v\":\"9007199254740993\"}\n{\"name\":\"MACK\",\"v\":null}\n", 0},
		{"integers stay", []string{"--json", "--jq", ".[0].production | tonumber"}, list, "9007199254740993\n", 0},
		{"both", []string{"--json", "--fields", "name", "--jq", ".[0] | keys"}, list, "[\"name\"]\n", 0},
		{"nothing", []string{"--json", "--jq", "empty"}, list, "", 0},
		{"no environment", []string{"--json", "--jq", "env | length"}, list, "0\n", 0},
		{"unknown field", []string{"--json", "--fields", "nam"}, list, `"hint": "did you mean: --fields name"`, 1},
		{"failing expression", []string{"--json", "--jq", ".name"}, list, `the expression failed: `, 1},
		{"wrong expression", []string{"--json", "--jq", ".["}, list, `"exit_code": 2`, 2},
		{"an error is whole", []string{"--json", "--jq", ".name"}, []string{"models", "list", "--limit", "0"}, `"error": `, 2},
	} {
		r := runMLP(t, vars, "", append(append([]string{}, tc.options...), tc.command...)...)
		if r.code != tc.code || r.err != "" || tc.code == 0 && r.out != tc.want || !strings.Contains(r.out, tc.want) {
			t.Errorf("%s: got exit %d, %q, %q; want %d, %q", tc.name, r.code, r.out, r.err, tc.code, tc.want)
		}
	}
	if r := runMLP(t, vars, "", "--fields", "name", "models", "list"); r.code != 2 || !strings.Contains(r.err, "--fields and --jq are for JSON") {
		t.Errorf("got %+v, want exit 2: a table has --columns", r)
	}
}
