package tool

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// maxChosen limits the objects of which fields are chosen or compared.
const maxChosen = 500

// writesObjects reports whether the output is made of whole objects, and not of the server's table.
func (c *call) writesObjects() bool {
	return c.op.Output == "yaml" || c.op.Output == "json" || strings.HasPrefix(c.op.Output, operation.JSONPath) || strings.HasPrefix(c.op.Output, operation.CustomColumns)
}

// chosen writes fields of objects that a path or columns choose. The objects are redacted already.
func (c *call) chosen(objects []*unstructured.Unstructured, more bool) (turn.Output, error) {
	out := turn.Output{Truncated: more}
	for _, o := range objects {
		out.Untrusted = append(out.Untrusted, untrustedTexts(o)...)
		out.Cite(citeObject(o))
	}
	if path, ok := strings.CutPrefix(c.op.Output, operation.JSONPath); ok {
		var data any
		if c.op.Verb == operation.Get && len(objects) == 1 {
			data = objects[0].Object
		} else {
			items := make([]any, len(objects))
			for i, o := range objects {
				items[i] = o.Object
			}
			data = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
		}
		text, err := evaluatePath(path, data)
		if err != nil {
			return out, operation.Refuse(operation.InvalidArgument, "output", "The path does not fit these objects: %s.", operation.Quote(err.Error()))
		}
		out.Text = text
		if text != "" && !strings.HasSuffix(text, "\n") {
			out.Text += "\n"
		}
	} else {
		columns, _ := operation.SplitColumns(strings.TrimPrefix(c.op.Output, operation.CustomColumns))
		out.Text = columnsTable(columns, objects)
	}
	out.Whole, out.WholeTruncated, out.Empty = out.Text, more, out.Text == ""
	if more {
		out.Text += fmt.Sprintf("[of the first %d objects only]\n", len(objects))
	}
	return out, nil
}

// columnsTable is a table of made-up columns.
func columnsTable(columns []operation.OwnColumn, objects []*unstructured.Unstructured) string {
	t := table.Table{}
	for _, column := range columns {
		t.Columns = append(t.Columns, table.Column{Name: column.Head})
	}
	for _, o := range objects {
		row := table.Row{Namespace: o.GetNamespace(), Name: o.GetName()}
		for _, column := range columns {
			text, err := evaluatePath(column.Path, o.Object)
			if err != nil || text == "" {
				text = "<none>"
			}
			row.Cells = append(row.Cells, text)
		}
		t.Rows = append(t.Rows, row)
	}
	text, _ := t.Text(table.View{Characters: wholeCharacters})
	return text
}

// evaluatePath evaluates a template of paths. The library may panic on templates that fit no value; that
// is a path that does not fit.
func evaluatePath(path string, data any) (text string, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%s does not fit", path)
		}
	}()
	j := jsonpath.New("path").AllowMissingKeys(true)
	if err := j.Parse(path); err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := j.Execute(&b, data); err != nil {
		return "", err
	}
	return b.String(), nil
}

// sortObjects orders objects by the value at a path; those without one come first.
func sortObjects(objects []*unstructured.Unstructured, path string) {
	keys := make(map[*unstructured.Unstructured]string, len(objects))
	for _, o := range objects {
		keys[o], _ = evaluatePath(operation.RelaxPath(path), o.Object) // one without the field has an empty key
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return compareValues(keys[a], keys[b]) })
}

// compareValues compares amounts as amounts and all else as text.
func compareValues(a, b string) int {
	x, badX := resource.ParseQuantity(a)
	y, badY := resource.ParseQuantity(b)
	if badX == nil && badY == nil {
		return x.Cmp(y)
	}
	return cmp.Compare(a, b)
}

// sortRows orders the rows of a table by a field, which only whole objects have.
func (c *call) sortRows(ctx context.Context, r cluster.Resource, page *table.Page) error {
	if c.op.SortBy == "" {
		return nil
	}
	if len(page.Rows) > maxChosen {
		return operation.Refuse(operation.TooLarge, "sort_by", "At most %d objects can be sorted by a field, and there are %d; choose fewer.", maxChosen, len(page.Rows))
	}
	objects, _, err := c.objects(ctx, r, maxChosen)
	if err != nil {
		return err
	}
	sortObjects(objects, c.op.SortBy)
	rank := map[[2]string]int{}
	for i, o := range objects {
		rank[[2]string{o.GetNamespace(), o.GetName()}] = i
	}
	slices.SortStableFunc(page.Rows, func(a, b table.Row) int {
		return cmp.Compare(rank[[2]string{a.Namespace, a.Name}], rank[[2]string{b.Namespace, b.Name}])
	})
	return nil
}
