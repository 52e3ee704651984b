package registry

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

type tableArguments struct {
	Table     string `json:"table" jsonschema:"Name of the table."`
	Namespace string `json:"namespace,omitempty" jsonschema:"Namespace; left out: all."`
	Kind      string `json:"kind,omitempty" jsonschema:"Kind of the object that the table is limited to; with name."`
	Name      string `json:"name,omitempty" jsonschema:"Name of the object that the table is limited to."`
	Minutes   int    `json:"minutes,omitempty" jsonschema:"How many minutes back, for tables of what happened; left out: the whole time."`
}

// Table is the rows of a table as text, in the order of its columns.
type Table struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	// More is the number of further rows, which are left out.
	More int `json:"more"`
	// Unread lists the kinds that could not be read, so that rows may be missing.
	Unread []string `json:"unread"`
}

// tableTool makes a tool of the tables that have none of their own.
func tableTool() Tool {
	var about []string
	var names []any
	for _, t := range report.Tables {
		about, names = append(about, t.Name+" ("+t.About+")"), append(names, t.Name)
	}
	return define[tableArguments, Table]("table", "Show one of these tables of a namespace, of one object or of everything: "+strings.Join(about, "; ")+".", tableNamed,
		func(s *jsonschema.Schema) { s.Properties["table"].Enum = names })
}

func tableNamed(ctx context.Context, box turn.Toolbox, a tableArguments) (Result, error) {
	table := report.TableNamed(a.Table)
	if table == nil {
		return Result{}, operation.Refuse(operation.InvalidArgument, "table", "There is no table %s.", operation.Quote(a.Table))
	}
	if a.Minutes < 0 {
		return Result{}, operation.Refuse(operation.InvalidArgument, "minutes", "minutes must not be negative.")
	}
	about, namespace, err := scopeOf(ctx, box, operation.Reference{Namespace: a.Namespace, Kind: a.Kind, Name: a.Name})
	if err != nil {
		return Result{}, err
	}
	s, err := snapshotOf(ctx, box, namespace)
	if err != nil {
		return Result{}, err
	}
	view := report.View{Snapshot: s, Namespace: namespace, Within: time.Duration(a.Minutes) * time.Minute}
	var references []operation.Reference
	if about != nil {
		view.Objects = []operation.Ref{{Group: about.Group, Kind: about.Kind, Namespace: about.Namespace, Name: about.Name}}
		references = append(references, *about)
	}
	answer := table.Make(view)
	rows, more := answer.Rows()
	data := &Table{Title: strings.ReplaceAll(answer.Head, "`", ""), Columns: answer.Columns(), Rows: rows, More: more, Unread: unread(s)}
	return shown(answer.String()+notRead(s.Unread, slices.Clone(data.Unread)...), data, references...), nil
}
