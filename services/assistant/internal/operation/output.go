package operation

import (
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// Prefixes of outputs that select fields by path.
const (
	JSONPath      = "jsonpath="
	CustomColumns = "custom-columns="
)

// maxColumns limits the columns of a caller-defined table.
const maxColumns = 20

// outputWord returns the output if it is one of a few words; forms that select fields are checked by validPaths.
func (o Operation) outputWord() string {
	if strings.HasPrefix(o.Output, JSONPath) || strings.HasPrefix(o.Output, CustomColumns) {
		return ""
	}
	return o.Output
}

// validPaths checks the paths of an output and of the field to sort by.
func (o Operation) validPaths() error {
	bad := func(field, text string) error {
		return Refuse(InvalidArgument, field, "%s cannot be read as a path of fields.", Quote(text))
	}
	if err := validText("output", o.Output); err != nil {
		return err
	}
	if path, ok := strings.CutPrefix(o.Output, JSONPath); ok {
		if !strings.Contains(path, "{") || jsonpath.New("output").Parse(path) != nil {
			return bad("output", path)
		}
	}
	if text, ok := strings.CutPrefix(o.Output, CustomColumns); ok {
		if _, ok := SplitColumns(text); !ok {
			return bad("output", text)
		}
	}
	if o.SortBy != "" {
		if err := validText("sort_by", o.SortBy); err != nil {
			return err
		}
		if jsonpath.New("sort_by").Parse(RelaxPath(o.SortBy)) != nil || strings.ContainsAny(o.SortBy, " \t\n") {
			return bad("sort_by", o.SortBy)
		}
	}
	return nil
}

// OwnColumn is a caller-defined column.
type OwnColumn struct{ Head, Path string }

// SplitColumns parses HEAD:path,HEAD:path.
func SplitColumns(text string) ([]OwnColumn, bool) {
	var columns []OwnColumn
	for part := range strings.SplitSeq(text, ",") {
		head, path, ok := strings.Cut(part, ":")
		if !ok || head == "" || path == "" || jsonpath.New("column").Parse(RelaxPath(path)) != nil || len(columns) == maxColumns {
			return nil, false
		}
		columns = append(columns, OwnColumn{head, RelaxPath(path)})
	}
	return columns, true
}

// RelaxPath converts a path to a template: .spec.x and spec.x mean {.spec.x}, as in kubectl.
func RelaxPath(path string) string {
	path = strings.TrimSpace(path)
	if strings.HasPrefix(path, "{") {
		return path
	}
	return "{." + strings.TrimPrefix(path, ".") + "}"
}
