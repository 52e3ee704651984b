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

// productFolders hold what is shipped.
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
	// secretName is the last part of a name whose value opens something.
	secretName = regexp.MustCompile(`(?i)(token|secret|password|passphrase|apikey|signature|hmac)$`)
	// comparedPlainly says of comparisons by file and name why no caller's guess meets a secret in them.
	comparedPlainly = map[string]string{
		"pair.go secret":           "a class of text",
		"stepup.go Password":       "a way to sign in",
		"watch.go Password":        "a way to sign in",
		"announce.go Password":     "a way to sign in",
		"css.go ErrorToken":        "a token of the CSS grammar",
		"scan.go TextToken":        "a token of the HTML grammar",
		"keys.go Secret":           "a kind of setting",
		"credentials.go secret":    "with itself, trimmed, at start",
		"auth.go secret":           "two secrets of one configuration, at start",
		"parse.go secret":          "two secrets of one configuration, at start",
		"run.go token":             "two tokens of pages",
		"auth_renew.go token":      "two tokens of one's own file",
		"config.go dashboardToken": "the name of a setting",
	}
)

// A caller's guess never meets a secret in == or !=, whose time tells how much of it was right.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	t.Parallel()
	files, constant := 0, 0
	walkProduct(t, ".go", func(path string) {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files++
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && (sel.Sel.Name == "ConstantTimeCompare" || sel.Sel.Name == "Equal" && lastName(sel.X) == "hmac") {
				constant++
			}
			b, ok := n.(*ast.BinaryExpr)
			if !ok || b.Op != token.EQL && b.Op != token.NEQ || isFixed(b.X) || isFixed(b.Y) {
				return true
			}
			for _, x := range []ast.Expr{b.X, b.Y} {
				if name := lastName(x); secretName.MatchString(name) {
					if at := set.Position(b.Pos()); comparedPlainly[filepath.Base(path)+" "+name] == "" {
						t.Errorf("%s:%d: %s is compared with %s, want subtle.ConstantTimeCompare", path, at.Line, name, b.Op)
					}
				}
			}
			return true
		})
	})
	if files < 500 || constant < 10 {
		t.Errorf("got %d files with %d comparisons in constant time, want at least 500 and 10", files, constant)
	}
}

// lastName is the name that an expression ends with: Token of c.creds.Token and of string(c.Token).
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

// unpickles finds what would run code that a file brings.
var unpickles = regexp.MustCompile(`(?m)^\s*(import|from)\s+(pickle|cloudpickle|dill|joblib|shelve)\b|allow_pickle\s*=\s*True|torch\.load\(|read_pickle\(`)

// Nothing that is shipped reads a pickle, and neither do the examples.
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
	examples, err := filepath.Glob("../../examples/*/*.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range examples {
		check(path)
	}
	if checked < 10 {
		t.Errorf("got %d Python files, want at least 10", checked)
	}
}
