package dashboard_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/apitest"
)

var update = flag.Bool("update", false, "rewrite the generated part of docs/dashboard.md")

const (
	manual = "../../docs/dashboard.md"
	// below begins the part of the page that is made from the code.
	below = "<!-- Below: go test ./services/dashboard-bff -run TestManual -update -->\n"
)

// TestManual compares docs/dashboard.md with the code: every route, every setting and every error code.
func TestManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(page), below)
	if !ok {
		t.Fatalf("%s has no line %q", manual, below)
	}
	generated, err := apitest.Manual{
		Document: api.Document, Access: "Role", AccessNote: "Role `public` needs no credential; an admin may do all that a viewer may.",
		Settings: []apitest.SettingsStruct{
			{File: "internal/app/config.go", Name: "Config"}, {File: "internal/app/config.go", Name: "Upstreams"}, {File: "../../libs/service/config.go", Name: "Base"}, {File: "../../libs/service/tracing.go", Name: "Tracing"},
		},
		Kinds: []string{"internal/fault", "../../libs/problem", "../../libs/service"},
	}.Render()
	if err != nil {
		t.Fatal(err)
	}
	want := head + below + "\n" + generated
	if *update {
		if err := os.WriteFile(manual, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Fatalf("%s does not match the code; run the command that it names (-want +got):\n%s", manual, diff)
	}
}
