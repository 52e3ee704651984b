package evidenceapi_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/route"
	"github.com/mlp-platform/platform/services/evidence-api/internal/status"
)

const (
	manual = "../../docs/evidence-api.md"
	// below begins the part of the page that is made from the code.
	below = "<!-- Below: go test ./services/evidence-api -run TestManual -update -->\n"
)

// TestManual compares docs/evidence-api.md with the code: every route, setting, limit and error.
func TestManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(page), below)
	if !ok {
		t.Fatalf("%s lacks the line %q; want ok", manual, below)
	}
	want := head + below + manualRoutes() + manualSettings(t) + manualLimits(t) + manualErrors()
	if *update {
		if err := os.WriteFile(manual, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(page) != want {
		t.Fatalf("%s does not match the code; run the command that it names; want string(page) == %v", manual, want)
	}
}

func manualRoutes() string {
	var b strings.Builder
	b.WriteString("\n## Every route\n\n| Route | Token | Query | Answer | Does |\n|---|---|---|---|---|\n")
	for _, o := range route.Table() {
		token, answer := "yes", "`"+o.Schema+"`"
		if o.Open {
			token = "no"
		}
		switch {
		case o.Text != "":
			answer = "`" + o.Text + "`"
		case o.Item != "":
			item, _, _ := strings.Cut(o.Item, "#")
			answer = "`list` of `" + strings.TrimSuffix(strings.TrimPrefix(item, "control-tower-"), "-response") + "`"
		case o.Schema == "":
			answer = "OpenAPI 3.1.0"
		}
		fmt.Fprintf(&b, "| %s `%s` | %s | %s | %s | %s |\n", o.Method, o.Path, token, strings.Join(o.Query, ", "), answer, o.Summary)
	}
	return b.String()
}

func manualSettings(t *testing.T) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "internal/app/config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("\n## Every variable\n\nAll configuration errors are reported together, before the server listens.\n\n| Variable | Default | |\n|---|---|---|\n")
	rows := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Config" {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			if f.Tag == nil {
				continue
			}
			text, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			tag := reflect.StructTag(text)
			says := strings.Join(strings.Fields(f.Doc.Text()), " ")
			standard := tag.Get("default")
			if standard != "" {
				standard = "`" + standard + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", tag.Get("env"), standard, says)
			rows++
		}
		return false
	})
	if rows != 7 {
		t.Fatalf("%d variables; want 7", rows)
	}
	return b.String()
}

func manualLimits(t *testing.T) string {
	t.Helper()
	text := status.Settings{RequestTimeout: evidenceapi.DefaultRequestTimeout, MaxConcurrentRequests: evidenceapi.DefaultConcurrentRequests,
		MaxStreams: evidenceapi.DefaultStreams, DrainTimeout: 5 * time.Second, Heartbeat: 15 * time.Second, MaxStream: 300 * time.Second}.Limits()
	var b strings.Builder
	b.WriteString("\n## Every limit\n\nThe defaults, as `operations.limits` of the status document lists them.\n\n| Limit | |\n|---|---|\n")
	for key, v := range canon.MustFrom(text).(*canon.Object).All() {
		value, err := canon.C1(v)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", key, value)
	}
	return b.String()
}

func manualErrors() string {
	var b strings.Builder
	b.WriteString("\n## Every error\n\n| Code | Status | Try again | When |\n|---|---|---|---|\n")
	for _, e := range catalogue.Entries {
		again := "no"
		if e.Retryable {
			again = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", e.Code, e.Status, again, e.When)
	}
	return b.String()
}
