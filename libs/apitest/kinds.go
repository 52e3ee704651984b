package apitest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// Kind is a kind of problem as its declaration names it.
type Kind struct {
	Status      int
	Code, Title string
}

// Kinds reads the kinds of problem that the Go source of folders declares, sorted by
// status and code, each once. Tests are left out; a folder without source is an error.
func Kinds(folders ...string) ([]Kind, error) {
	var kinds []Kind
	for _, folder := range folders {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("%s holds no Go source", folder)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return nil, err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if k, ok := kindOf(n); ok {
					kinds = append(kinds, k)
				}
				return true
			})
		}
	}
	slices.SortFunc(kinds, func(a, b Kind) int {
		return cmp.Or(a.Status-b.Status, cmp.Compare(a.Code, b.Code), cmp.Compare(a.Title, b.Title))
	})
	return slices.Compact(kinds), nil
}

// kindOf reads a literal of three members whose type is called Kind.
func kindOf(n ast.Node) (k Kind, ok bool) {
	lit, ok := n.(*ast.CompositeLit)
	if !ok || !strings.HasSuffix(Literal(lit.Type), "Kind") || len(lit.Elts) != 3 {
		return k, false
	}
	for i, e := range lit.Elts {
		member, value := [...]string{"Code", "Status", "Title"}[i], e
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			member, value = Literal(kv.Key), kv.Value
		}
		switch member {
		case "Code":
			k.Code = Literal(value)
		case "Title":
			k.Title = Literal(value)
		case "Status":
			k.Status = Status(Literal(value))
		}
	}
	return k, k.Status != 0
}
