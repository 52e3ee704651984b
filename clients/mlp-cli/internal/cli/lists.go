package cli

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// listOptions are the options common to all lists.
type listOptions struct {
	limit   int // 0 is all
	sort    string
	columns []string
	wrapped bool // the document is {items, more}
}

// listFlags returns the options of a list; limit is the default of --limit, 0 for all.
func listFlags(limit int) []cli.Flag {
	return append(arrangeFlags(limit), &cli.BoolFlag{Name: "all", Usage: "show every row; overrides --limit"})
}

// arrangeFlags returns the options of a list whose --all has another meaning.
func arrangeFlags(limit int) []cli.Flag {
	unlimited := "" // the help shows the number
	if limit == 0 {
		unlimited = "all"
	}
	return []cli.Flag{
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: limit, DefaultText: unlimited, Usage: "show at most this many rows"},
		&cli.StringFlag{Name: "sort", Usage: "sort by this column; --sort=-COLUMN reverses the order"},
		&cli.StringFlag{Name: "columns", Usage: "only these columns, in this order, separated by commas (tables and CSV)"},
		&cli.BoolFlag{Name: "envelope", Usage: "JSON and YAML: {items, more} instead of the bare list; more is true if the list was cut short"},
	}
}

func (e *Env) readListOptions(c *cli.Context) (listOptions, error) {
	o := listOptions{limit: c.Int("limit"), sort: c.String("sort"), wrapped: c.Bool("envelope")}
	if o.wrapped && e.Format != output.JSON && e.Format != output.YAML {
		return o, fault.Usage("--envelope is for JSON and YAML").WithHint("for example: mlp --json %s --envelope", e.command)
	}
	if o.limit < 0 || o.limit == 0 && c.IsSet("limit") {
		return o, fault.Usage("--limit must be at least 1").WithHint("for every row: leave it out, or give --all")
	}
	if c.Bool("all") && hasLimitOverride(c) {
		o.limit = 0
	}
	if columns := c.String("columns"); columns != "" {
		if e.Format == output.JSON || e.Format == output.YAML {
			return o, fault.Usage("--columns is for tables and CSV; it does not go with --output %s", e.Format)
		}
		o.columns = strings.Split(columns, ",")
	}
	return o, nil
}

// hasLimitOverride reports whether the command's --all is the one of listFlags.
func hasLimitOverride(c *cli.Context) bool {
	for _, f := range c.Command.Flags {
		if b, ok := f.(*cli.BoolFlag); ok && b.Name == "all" {
			return strings.Contains(b.Usage, "--limit")
		}
	}
	return false
}

// fetch returns the number of rows to request from a service; 0 is all: a list that is sorted here must be complete.
func (o listOptions) fetch() int {
	if o.sort != "" {
		return 0
	}
	return o.limit
}

// printList prints a list as its options specify. more reports that the service has further rows than were read.
func (e *Env) printList(o listOptions, g output.Grid, more bool) error {
	if o.limit > 0 && len(g.Rows) > o.limit {
		more = true
	}
	if doc := reflect.ValueOf(g.Doc); doc.Kind() == reflect.Slice {
		items := reflect.New(doc.Type())
		items.Elem().Set(doc)
		if err := o.arrange(&g, items.Interface()); err != nil {
			return err
		}
		g.Doc = items.Elem().Interface()
	} else if o.wrapped {
		return fault.Usage("--envelope is for lists; the document of mlp %s is an object already", e.command)
	} else if err := o.arrange(&g, nil); err != nil {
		return err
	}
	if o.wrapped {
		g.Doc = map[string]any{"items": g.Doc, "more": more}
	}
	if err := e.Printer().Print(g); err != nil || !more {
		return err
	}
	e.Talk("the first %d; for more: --limit N or --all", len(g.Rows))
	return nil
}

// arrange sorts and cuts the rows and, with them, the items of the document, a pointer to a slice or nil; and
// chooses the columns.
func (o listOptions) arrange(g *output.Grid, items any) error {
	var doc reflect.Value
	if items != nil {
		if doc = reflect.ValueOf(items).Elem(); doc.Len() != len(g.Rows) {
			doc = reflect.Value{}
		}
	}
	if o.sort != "" {
		if err := sortGrid(g, doc, o.sort); err != nil {
			return err
		}
	}
	if o.limit > 0 && len(g.Rows) > o.limit {
		g.Rows = g.Rows[:o.limit]
		if doc.IsValid() {
			doc.Set(doc.Slice(0, o.limit))
		}
	}
	if len(o.columns) > 0 {
		return chooseColumns(g, o.columns)
	}
	return nil
}

// findColumn finds a column by its heading or its key, in any case.
func findColumn(g *output.Grid, name, option string) (int, error) {
	name = strings.TrimSpace(name)
	keys := make([]string, len(g.Columns))
	for i, c := range g.Columns {
		keys[i] = output.Snake(c)
		if strings.EqualFold(name, c) || strings.EqualFold(name, keys[i]) || strings.EqualFold(strings.ReplaceAll(name, "-", "_"), keys[i]) {
			return i, nil
		}
	}
	return 0, fault.Usage("%s: there is no column %q; the columns are %s", option, name, strings.Join(keys, ", "))
}

func chooseColumns(g *output.Grid, names []string) error {
	chosen := make([]int, len(names))
	columns := make([]string, len(names))
	for i, n := range names {
		at, err := findColumn(g, n, "--columns")
		if err != nil {
			return err
		}
		chosen[i], columns[i] = at, g.Columns[at]
	}
	rows := make([][]any, len(g.Rows))
	for i, row := range g.Rows {
		for _, at := range chosen {
			rows[i] = append(rows[i], row[at])
		}
	}
	g.Columns, g.Rows, g.Spare = columns, rows, nil
	return nil
}

// sortGrid sorts the rows, and the items of the document with them.
func sortGrid(g *output.Grid, doc reflect.Value, by string) error {
	name, down := strings.CutPrefix(by, "-")
	at, err := findColumn(g, name, "--sort")
	if err != nil {
		return err
	}
	order := make([]int, len(g.Rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := sortKey(g.Rows[i][at]), sortKey(g.Rows[j][at])
		if (a == nil) != (b == nil) { // unknown values are last, in both orders
			if a == nil {
				return 1
			}
			return -1
		}
		if down {
			a, b = b, a
		}
		return compareKeys(a, b)
	})
	rows := make([][]any, len(order))
	var sorted reflect.Value
	if doc.IsValid() {
		sorted = reflect.MakeSlice(doc.Type(), len(order), len(order))
	}
	for to, from := range order {
		rows[to] = g.Rows[from]
		if doc.IsValid() {
			sorted.Index(to).Set(doc.Index(from))
		}
	}
	g.Rows = rows
	if doc.IsValid() {
		doc.Set(sorted)
	}
	return nil
}

// sortKey returns a cell as a number or a text; nil when it is not known.
func sortKey(v any) any {
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer {
		if r.IsNil() {
			return nil
		}
		v = r.Elem().Interface()
	}
	switch x := v.(type) {
	case nil:
		return nil
	case output.Styled:
		return sortKey(x.Value)
	case output.Age: // the younger is the smaller
		if time.Time(x).IsZero() {
			return nil
		}
		return -float64(time.Time(x).UnixMicro())
	case time.Time:
		return float64(x.UnixMicro())
	case float64:
		return x
	case int:
		return float64(x)
	case int32:
		return float64(x)
	case int64:
		return float64(x)
	case string:
		if x == "" {
			return nil
		}
		var n float64
		if _, err := fmt.Sscanf(x, "%g", &n); err == nil && fmt.Sprint(n) == x { // versions are texts of digits
			return n
		}
		return strings.ToLower(x)
	}
	return strings.ToLower(fmt.Sprint(v))
}

func compareKeys(a, b any) int {
	x, isNumber := a.(float64)
	y, alsoNumber := b.(float64)
	switch {
	case isNumber && alsoNumber:
		return cmp.Compare(x, y)
	case isNumber != alsoNumber: // numbers before words
		if isNumber {
			return -1
		}
		return 1
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}
