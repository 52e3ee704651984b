package controlplane_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/apitest"
)

var update = flag.Bool("update", false, "rewrite the generated part of docs/control-plane.md")

const (
	manual = "../../docs/control-plane.md"
	// below starts the part of the page that is generated from the code.
	below = "<!-- Below: go test ./services/control-plane -run TestManual -update -->\n"
)

// kindsOf lists the files with tables of errors that this service can return.
var kindsOf = []string{"internal/fault", "../../libs/auth", "../../libs/problem", "../../libs/service", "../../libs/outbox/admin"}

// TestManual checks docs/control-plane.md against the code: every route, every setting and every error code.
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
		Document: api.Document, Access: "Scope", AccessNote: "Scope `public` needs no credential; `signed` needs the forge's signature or token.",
		Settings: []apitest.SettingsStruct{{File: "internal/app/config.go", Name: "Config"}, {File: "../../libs/service/config.go", Name: "Base"}, {File: "../../libs/service/tracing.go", Name: "Tracing"}},
		Kinds:    kindsOf,
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
