package outboxtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/outbox"
)

// RequireDeclaredEventsEmitted fails for each event of the catalogue whose name or
// namespace is a string nowhere in the Go files below dir, other than tests and
// catalogue.go. Outbox.Insert writes the namespace audit and the name recorded; that
// nothing undeclared is emitted is for the store to refuse.
func RequireDeclaredEventsEmitted(t *testing.T, dir string, declared outbox.Catalogue) {
	t.Helper()
	literals := map[string]bool{"recorded": true, "audit": true}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "catalogue.go" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil {
					literals[s] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range declared {
		if !literals[d.Name] || !literals[d.Namespace] {
			t.Errorf("%s is declared and never emitted", d.Type())
		}
	}
}
