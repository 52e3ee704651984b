package apitest

import (
	"go/ast"
	"net/http"
	"regexp"
	"strconv"
)

// Literal is the value of a literal in Go source, or the last name of an identifier or
// selector; empty for other expressions.
func Literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil {
			return s
		}
		return e.Value
	}
	return ""
}

var letters = regexp.MustCompile(`[^A-Za-z]`)

// Status parses an error status from its number or from the name of its constant in
// net/http; it returns 0 for anything else, such as a parameter.
func Status(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	for code := 400; code < 600; code++ {
		text := letters.ReplaceAllString(http.StatusText(code), "")
		// The one constant that is named otherwise than its text.
		if text != "" && "Status"+text == s || s == "StatusRequestURITooLong" && code == http.StatusRequestURITooLong {
			return code
		}
	}
	return 0
}
