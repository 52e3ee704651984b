package assistant_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"

	api "github.com/mlp-platform/platform/clients/go/assistant"
	"github.com/mlp-platform/platform/libs/apitest"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/metrics"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

const (
	manual    = "../../docs/assistant.md"
	playbooks = "../../docs/assistant-playbooks.md"
	// below begins the part of a page that is made from the code.
	below = "<!-- Below: go test ./services/assistant -run TestManual -update -->\n"
)

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestManual holds the generated parts of the manual against the code: every route, setting, metric, failure in a stream
// and code of an error; and every tool.
func TestManual(t *testing.T) {
	t.Parallel()
	for path, made := range map[string]string{
		manual:    manualRoutes(t) + manualSettings(t) + manualMetrics(t) + manualFailures() + manualErrors(t),
		playbooks: manualTools(),
	} {
		have := readPage(t, path)
		head, _, ok := strings.Cut(have, below)
		if !ok {
			t.Fatalf("%s lacks the line %q; want ok", path, below)
		}
		want := head + below + made
		if assistanttest.Updating() {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have != want {
			t.Errorf("%s is not what the code has; run the command that it names; want have == %v", path, want)
		}
	}
}

func manualRoutes(t *testing.T) string {
	t.Helper()
	var doc struct {
		Tags  []struct{ Name, Description string }
		Paths yaml.MapSlice
	}
	if err := yaml.UnmarshalWithOptions(api.Document, &doc, yaml.UseOrderedMap()); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("\n## Every route\n\n`public` needs no key, `admin` one of that role.\n\n| Route | Needs | Query | Does |\n|---|---|---|---|\n")
	for _, path := range doc.Paths {
		for _, method := range path.Value.(yaml.MapSlice) {
			op, ok := method.Value.(yaml.MapSlice)
			if !ok { // the parameters of the path
				continue
			}
			o := op.ToMap()
			var query []string
			parameters, _ := o["parameters"].([]any)
			for _, p := range parameters {
				m := p.(yaml.MapSlice).ToMap()
				if ref, _ := m["$ref"].(string); strings.HasSuffix(ref, "/Limit") || strings.HasSuffix(ref, "/Cursor") {
					query = append(query, strings.ToLower(filepath.Base(ref)))
				} else if m["in"] == "query" {
					query = append(query, m["name"].(string))
				}
			}
			summary, needs := o["summary"].(string), "key"
			for _, who := range []string{"public", "admin"} {
				if rest, ok := strings.CutSuffix(summary, " ("+who+")"); ok {
					summary, needs = rest, who
				}
			}
			fmt.Fprintf(&b, "| %s `%s` | %s | %s | %s |\n", strings.ToUpper(method.Key.(string)), path.Key, needs, strings.Join(query, ", "), summary)
		}
	}
	return b.String()
}

func manualSettings(t *testing.T) string {
	t.Helper()
	settings := append(settingsOf(t, "internal/app/config.go", "Config"), settingsOf(t, "../../libs/service/config.go", "Base")...)
	settings = append(settings, settingsOf(t, "../../libs/service/tracing.go", "Tracing")...)
	if len(settings) < 45 {
		t.Fatalf("only %d settings; want len(settings) >= 45", len(settings))
	}
	var b strings.Builder
	b.WriteString("\n## Every setting\n\nSecrets may come from the file that `<NAME>_FILE` names.\n\n| Variable | Default | |\n|---|---|---|\n")
	for _, s := range settings {
		b.WriteString(s)
	}
	return b.String()
}

// settingsOf returns rows for the settings of a struct. A comment also covers the fields below it that have none, and
// refers to fields by their names in Go; a row says it once.
func settingsOf(t *testing.T, path, name string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	type setting struct{ field, variable, standard, text string }
	var found []setting
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			if f.Tag == nil || len(f.Names) != 1 {
				continue
			}
			raw, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			tag := reflect.StructTag(raw)
			found = append(found, setting{f.Names[0].Name, tag.Get("env"), tag.Get("envDefault"), strings.Join(strings.Fields(f.Doc.Text()), " ")})
		}
		return false
	})
	rows := make([]string, 0, len(found))
	for _, s := range found {
		for _, other := range found {
			s.text = regexp.MustCompile(`\b`+other.field+`\b`).ReplaceAllString(s.text, "`"+other.variable+"`")
		}
		s.text = strings.TrimPrefix(s.text, "`"+s.variable+"` is ")
		if s.standard != "" {
			s.standard = "`" + strings.ReplaceAll(s.standard, ",", ", ") + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", s.variable, s.standard, s.text))
	}
	return rows
}

var description = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "([^"]*)", unit: "", ` +
	`constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)

func manualMetrics(t *testing.T) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	metrics.New(registry, "playbooks")
	metrics.NewStored(registry, nil, nil, nil) // described, not collected
	described := make(chan *prometheus.Desc, 100)
	registry.Describe(described)
	close(described)
	var rows []string
	for d := range described {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("not understood: %s; want m != nil", d)
		}
		name := m[1]
		if m[3] != "" {
			name += "{" + m[3] + "}"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", name, m[2]))
	}
	if len(rows) < 14 {
		t.Fatalf("only %d metrics; want len(rows) >= 14", len(rows))
	}
	slices.Sort(rows)
	return "\n## Every metric\n\n`/metrics` needs no key; beside these are requests by route and the outbox, as [operations](operations.md) tells.\n\n| Metric | |\n|---|---|\n" + strings.Join(rows, "")
}

func manualFailures() string {
	var b strings.Builder
	b.WriteString("\n## Every failure in a stream\n\nAs `ki_event` of type `error`; after a `fatal` one the answer states what is known, and ends. The cause is in the log alone.\n\n| Code | Says |\n|---|---|\n")
	for _, f := range assistanttest.Failures() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Code, f.Message)
	}
	return b.String()
}

// unanswered are shared codes that nothing in this service answers with.
var unanswered = []string{"bad_gateway", "unauthorized", "conflict", "missing_credential", "invalid_credential", "insufficient_scope", "auth_not_configured", "host_not_allowed"}

func manualErrors(t *testing.T) string {
	t.Helper()
	rows, err := apitest.Kinds("internal/fault", "../../libs/problem", "../../libs/service", "../../libs/auth")
	if err != nil {
		t.Fatal(err)
	}
	rows = slices.DeleteFunc(rows, func(k apitest.Kind) bool { return slices.Contains(unanswered, k.Code) })
	rows = slices.CompactFunc(rows, func(a, b apitest.Kind) bool { return a.Status == b.Status && a.Code == b.Code })
	if len(rows) < 25 {
		t.Fatalf("only %d errors; want len(rows) >= 25", len(rows))
	}
	var b strings.Builder
	b.WriteString("\n## Every error\n\nA problem document (RFC 9457) with `code`, which is stable, and `error` for clients of chat completions. 422 names each place in `errors`.\n\n| Status | Code | |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", r.Status, r.Code, r.Title)
	}
	return b.String()
}

func manualTools() string {
	var b strings.Builder
	b.WriteString("\n## Every tool\n\nThe language model calls these by name; a kubectl line of a person becomes one. Whether a call is `high` or always needs confirmation is decided once the object is known.\n\n| Tool | Risk | Does |\n|---|---|---|\n")
	for _, v := range operation.Verbs() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v, operation.Operation{Verb: v}.Risk(), operation.About(v))
	}
	return b.String()
}

// TestManualTables holds what is written by hand in the tables against the code.
func TestManualTables(t *testing.T) {
	t.Parallel()
	text, books := readPage(t, manual), readPage(t, playbooks)
	for row, begin := range map[guard.Row]string{
		guard.Read: "reads, logs, metrics, own sessions", guard.MediumWrite: "medium write", guard.HighWrite: "high write",
		guard.ImageOrResources: "container image or resources",
		guard.PrivilegeGain:    "pod spec that gains privilege, host paths or namespaces, capabilities, another account",
		guard.Forbidden:        "write in a protected namespace, or to Secret, ServiceAccount, RBAC, admission, CSR, APIService",
		guard.OthersSessions:   "others' sessions, demo keys", guard.MintDemoKeys: "others' sessions, demo keys",
	} {
		want := "| " + begin
		for _, role := range []guard.Role{guard.Admin, guard.Operator, guard.Readonly} {
			want += " | " + guard.Permit(role, row).String()
		}
		if !strings.Contains(text, want+" |\n") {
			t.Errorf("%s lacks the row %q", manual, want)
		}
	}
	for _, c := range readConstants(t, "internal/guard/verdict.go", "Confirm") {
		if !strings.Contains(text, "`"+c+"`") {
			t.Errorf("%s lacks the reason %s; want strings.Contains(text, \"`\"+c+\"`\")", manual, c)
		}
	}
	for _, s := range readConstants(t, "internal/action/action.go", "State") {
		if !strings.Contains(text, "`"+s+"`") {
			t.Errorf("%s lacks the state %s; want strings.Contains(text, \"`\"+s+\"`\")", manual, s)
		}
	}
	for _, outcome := range readConstants(t, "internal/turn/turn.go", "") {
		if !strings.Contains(text, "`"+outcome+"`") {
			t.Errorf("%s lacks the outcome %s; want strings.Contains(text, \"`\"+outcome+\"`\")", manual, outcome)
		}
	}
	for row, verdict := range map[string]chat.Verdict{
		"`yes` `approve` `/approve` `proceed`": chat.Approve, "`no` `deny` `/deny` `cancel`": chat.Deny,
		"`approve all` `auto-approve`": chat.ApproveAll, "`auto-approve off`": chat.AutoApproveOff,
	} {
		if !strings.Contains(text, "| "+row+" |") {
			t.Errorf(`%s lacks the words %s; want strings.Contains(text, "| "+row+" |")`, manual, row)
		}
		for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row, -1) {
			if got := chat.ParseWord(word[1]).Verdict; got != verdict {
				t.Errorf("%q is %s, not %s; want got == %v", word[1], got, verdict, verdict)
			}
		}
	}
	limit := fmt.Sprintf("`ASSISTANT_MAX_BODY_BYTES`, %d,%03d, %d KiB, %d characters", chat.MaxMessages/1000, chat.MaxMessages%1000, chat.MaxText>>10, chat.MaxUser)
	for _, want := range []string{limit, fmt.Sprintf("| %d, 5 |", action.MaxPending), fmt.Sprintf("| 500, %d, %d |", operation.MaxDocuments, operation.MaxNames)} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", manual, want)
		}
	}
	names := classNames(t)
	for class := engine.CrashLoop; class <= engine.VolumeNotAttached; class++ {
		if want := fmt.Sprintf("\n| `%s` | %s | ", names[class-1], class); !strings.Contains(books, want) {
			t.Errorf("%s lacks the class %q", playbooks, want)
		}
	}
	for intent := question.Overview; intent <= question.Prices; intent++ {
		m := regexp.MustCompile("\n\\| `" + intent.String() + "` \\| ([^|]+) \\|").FindStringSubmatch(books)
		if m == nil {
			t.Errorf("%s lacks the question %s; want m != nil", playbooks, intent.String())
			continue
		}
		if got := question.Parse(m[1], nil).Intent; got != intent {
			t.Errorf("%q is taken for %s, not %s; want got == %v", m[1], got.String(), intent.String(), intent)
		}
	}
	for _, reason := range readConstants(t, "internal/model/budget.go", "stop") {
		if !strings.Contains(books, "`"+reason+"`") {
			t.Errorf("%s lacks the reason %s; want strings.Contains(books, \"`\"+reason+\"`\")", playbooks, reason)
		}
	}
}

// readConstants are the values of a file's constants of a type of strings; of no type for an empty kind.
func readConstants(t *testing.T, path, kind string) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || apitest.Literal(spec.Type) != kind {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			values = append(values, apitest.Literal(lit))
		}
		return true
	})
	if len(values) < 5 {
		t.Fatalf("%s has %d constants of type %s; want len(values) >= 5", path, len(values), kind)
	}
	return values
}

// classNames returns the constants of the classes, in order.
func classNames(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "internal/playbook/engine/finding.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		block, ok := d.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST || apitest.Literal(block.Specs[0].(*ast.ValueSpec).Type) != "Class" {
			continue
		}
		for _, spec := range block.Specs {
			names = append(names, spec.(*ast.ValueSpec).Names[0].Name)
		}
	}
	if want := int(engine.VolumeNotAttached); len(names) != want {
		t.Fatalf("got %d classes, want %d", len(names), want)
	}
	return names
}
