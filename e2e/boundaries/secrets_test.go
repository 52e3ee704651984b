package boundaries

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// productFolders contain the shipped files.
var productFolders = []string{"../../services", "../../libs", "../../clients"}

// walkProduct calls visit with each shipped file that has the suffix.
func walkProduct(t *testing.T, suffix string, visit func(path string)) {
	t.Helper()
	for _, root := range productFolders {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (slices.Contains([]string{"node_modules", "testdata"}, d.Name()) || strings.HasSuffix(d.Name(), "test")):
				return filepath.SkipDir
			case !d.IsDir() && strings.HasSuffix(path, suffix) && !strings.HasSuffix(path, "_test.go"):
				visit(path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

var (
	// secretName matches the last part of a name whose value is a secret.
	secretName = regexp.MustCompile(`(?i)(token|secret|password|passphrase|apikey|signature|hmac)$`)
	// comparedPlainly lists comparisons by file and name, with the reason why they never compare a caller's guess with
	// a secret.
	comparedPlainly = map[string]string{
		"services/control-plane/internal/audit/chain/epoch.go Signature": "two signatures that anybody may read",
		"services/dashboard-bff/internal/proxy/exchange.go token":        "a token of a header's grammar",
		"services/assistant/internal/redact/pair.go secret":              "a class of text",
		"services/dashboard-bff/internal/access/stepup.go Password":      "a way to sign in",
		"services/dashboard-bff/internal/access/watch.go Password":       "a way to sign in",
		"services/dashboard-bff/internal/announce/announce.go Password":  "a way to sign in",
		"services/dashboard-bff/internal/proxy/css.go ErrorToken":        "a token of the CSS grammar",
		"services/dashboard-bff/internal/proxy/scan.go TextToken":        "a token of the HTML grammar",
		"services/dashboard-bff/internal/settings/keys.go Secret":        "a kind of setting",
		"services/standalone/internal/credentials/credentials.go secret": "with itself, trimmed, at start",
		"libs/auth/auth.go secret":                                       "two secrets of one configuration, at start",
		"libs/auth/parse.go secret":                                      "two secrets of one configuration, at start",
		"libs/tracker/run.go token":                                      "two tokens of pages",
		"clients/mlp-cli/internal/cli/auth_renew.go token":               "two tokens of one's own file",
		"clients/mlp-cli/internal/config/config.go dashboardToken":       "the name of a setting",
	}
)

// A caller's guess is never compared with a secret by == or !=, whose time reveals how much of it was right.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	t.Parallel()
	files, constant, used := 0, 0, map[string]bool{}
	walkProduct(t, ".go", func(path string) {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files++
		report := func(at token.Pos, name, with string) {
			key := strings.TrimPrefix(path, "../../") + " " + name
			switch {
			case !secretName.MatchString(name) || name == "TLSSecret": // a class of finding
			case comparedPlainly[key] != "":
				used[key] = true
			default:
				t.Errorf("%s: %s is compared with %s, want subtle.ConstantTimeCompare", set.Position(at), name, with)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && (sel.Sel.Name == "ConstantTimeCompare" || sel.Sel.Name == "Equal" && lastName(sel.X) == "hmac") {
				constant++
			}
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 2 && slices.Contains([]string{"EqualFold", "Equal"}, lastName(call.Fun)) && isPlainEqual(call.Fun) {
				for _, x := range call.Args {
					report(call.Pos(), lastName(x), lastName(call.Fun))
				}
			}
			b, ok := n.(*ast.BinaryExpr)
			if !ok || b.Op != token.EQL && b.Op != token.NEQ || isFixed(b.X) || isFixed(b.Y) {
				return true
			}
			for _, x := range []ast.Expr{b.X, b.Y} {
				report(b.Pos(), lastName(x), b.Op.String())
			}
			return true
		})
	})
	for key := range comparedPlainly {
		if !used[key] {
			t.Errorf("%s is excepted, and compared nowhere", key)
		}
	}
	if files < 500 || constant < 10 {
		t.Errorf("got %d files with %d comparisons in constant time, want at least 500 and 10", files, constant)
	}
}

// isPlainEqual reports whether a function compares in variable time, as bytes.Equal and strings.EqualFold do.
func isPlainEqual(fun ast.Expr) bool {
	sel, ok := fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"bytes", "strings", "slices"}, lastName(sel.X))
}

// lastName returns the last name of an expression: Token of c.creds.Token and of string(c.Token).
func lastName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.ParenExpr:
		return lastName(x.X)
	case *ast.CallExpr:
		if len(x.Args) == 1 {
			return lastName(x.Args[0])
		}
	}
	return ""
}

// isFixed reports whether an expression is a literal, nil or a length: not a secret.
func isFixed(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return x.Name == "nil"
	case *ast.CallExpr:
		return lastName(x.Fun) == "len"
	}
	return false
}

// unpickles matches calls that would run code from a file.
var unpickles = regexp.MustCompile(`(?m)^\s*(import|from)\s+([\w., ]*,\s*)?(pickle|cloudpickle|dill|joblib|shelve)\b|__import__\(|allow_pickle\s*=\s*True|torch\.load\(|read_pickle\(`)

// No shipped file reads a pickle, and neither do the examples.
func TestNothingUnpickles(t *testing.T) {
	t.Parallel()
	checked := 0
	check := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		if found := unpickles.Find(text); found != nil {
			t.Errorf("%s: got %q, want nothing that reads a pickle", path, found)
		}
	}
	walkProduct(t, ".py", check)
	for _, pattern := range []string{"../../examples/*/*.py", "../../scripts/*.py", "../../deploy/docker/*/*.py"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			check(path)
		}
	}
	if checked < 10 {
		t.Errorf("got %d Python files, want at least 10", checked)
	}
}
