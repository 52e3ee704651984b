package controlplane_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/apitest"
)

var update = flag.Bool("update", false, "rewrite the generated part of docs/control-plane.md")

const (
	manual = "../../docs/control-plane.md"
	// below begins the part of the page that is made from the code.
	below = "<!-- Below: go test ./services/control-plane -run TestManual -update -->\n"
)

// TestManual holds docs/control-plane.md against the code: every route, every
// setting and every code of an error.
func TestManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(page), below)
	if !ok {
		t.Fatalf("%s has no line %q; want ok", manual, below)
	}
	want := head + below + "\n" + manualRoutes(t) + "\n" + manualSettings(t) + "\n" + manualErrors(t)
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

func manualRoutes(t *testing.T) string {
	t.Helper()
	var doc struct {
		Tags []struct {
			Name, Description string
		}
		Paths yaml.MapSlice
	}
	if err := yaml.UnmarshalWithOptions(api.Document, &doc, yaml.UseOrderedMap()); err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, path := range doc.Paths {
		for _, method := range path.Value.(yaml.MapSlice) {
			op, ok := method.Value.(yaml.MapSlice)
			if !ok { // the parameters of the path
				continue
			}
			o := op.ToMap()
			tag := o["tags"].([]any)[0].(string)
			var query []string
			for _, p := range asList(o["parameters"]) {
				if m := p.(yaml.MapSlice).ToMap(); m["in"] == "query" {
					query = append(query, m["name"].(string))
				} else if ref, _ := m["$ref"].(string); strings.HasSuffix(ref, "/Limit") || strings.HasSuffix(ref, "/Cursor") {
					query = append(query, strings.ToLower(filepath.Base(ref)))
				}
			}
			summary := o["summary"].(string)
			i := strings.LastIndexAny(summary, "[(")
			rows[tag] = append(rows[tag], fmt.Sprintf("| %s `%s` | %s | %s | %s |\n", strings.ToUpper(method.Key.(string)), path.Key,
				strings.Trim(summary[i:], "[]()"), strings.Join(query, ", "), strings.TrimSpace(summary[:i])))
		}
	}
	var b strings.Builder
	b.WriteString("## Every route\n\nPath parameters are in braces. Scope `public` needs no credential; `signed` needs the forge's signature or token.\n")
	for _, tag := range doc.Tags {
		fmt.Fprintf(&b, "\n**%s**\n\n| Route | Scope | Query | Does |\n|---|---|---|---|\n%s", tag.Description, strings.Join(rows[tag.Name], ""))
		delete(rows, tag.Name)
	}
	for tag := range rows {
		t.Errorf("the document describes no tag %q", tag)
	}
	return b.String()
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

// setting is one environment variable, told by the comment of its field.
type setting struct{ env, standard, text string }

func manualSettings(t *testing.T) string {
	t.Helper()
	settings := append(settingsOf(t, "internal/app/config.go", "Config"), settingsOf(t, "../../libs/service/config.go", "Base")...)
	if len(settings) < 50 {
		t.Fatalf("only %d settings; want len(settings) >= 50", len(settings))
	}
	var b strings.Builder
	b.WriteString("## Every setting\n\nA secret may also be read from the file that `<NAME>_FILE` names. All configuration errors are reported together.\n\n| Variable | Default | |\n|---|---|---|\n")
	for _, s := range settings {
		if s.standard != "" {
			s.standard = "`" + s.standard + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.env, s.standard, s.text)
	}
	return b.String()
}

// settingsOf are the settings of a struct. A comment stands for the fields below it
// that have none, and speaks of fields by their names in Go.
func settingsOf(t *testing.T, path, name string) []setting {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var out []setting
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		text := ""
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			if f.Doc != nil {
				text = strings.Join(strings.Fields(f.Doc.Text()), " ")
			}
			if f.Tag == nil || len(f.Names) != 1 {
				continue
			}
			raw, _ := strconv.Unquote(f.Tag.Value)
			tag := reflect.StructTag(raw)
			out = append(out, setting{tag.Get("env"), tag.Get("envDefault"), text})
			names = append(names, f.Names[0].Name)
		}
		return false
	})
	for i := range out {
		for j, field := range names {
			out[i].text = regexp.MustCompile(`\b`+field+`\b`).ReplaceAllString(out[i].text, "`"+out[j].env+"`")
		}
		out[i].text = strings.TrimPrefix(out[i].text, "`"+out[i].env+"` is ")
	}
	return out
}

// kindsOf are the files that hold tables of errors which this service can answer.
var kindsOf = []string{"internal/fault", "../../libs/auth", "../../libs/problem", "../../libs/service", "../../libs/outbox/admin"}

func manualErrors(t *testing.T) string {
	t.Helper()
	kinds, err := apitest.Kinds(kindsOf...)
	if err != nil {
		t.Fatal(err)
	}
	if len(kinds) < 50 {
		t.Fatalf("only %d errors; want len(kinds) >= 50", len(kinds))
	}
	var b strings.Builder
	b.WriteString("## Every error\n\nErrors are problem documents (RFC 9457). `code` is stable; `detail` states the cause and the remedy.\n\n| Status | Code | |\n|---|---|---|\n")
	for _, k := range kinds {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", k.Status, k.Code, k.Title)
	}
	return b.String()
}
