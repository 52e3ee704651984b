package filter

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

var grammar = Grammar{
	Entities: []Entity{Metric, Param, Tag, Dataset},
	Fields: map[string]Field{
		"run_id": {Name: "id", List: true}, "run_name": {Name: "name"}, "Run name": {Name: "name"}, "status": {Name: "status"},
		"start_time": {Name: "start", Numeric: true}, "created": {Name: "start", Numeric: true, NoOrder: true},
	},
}

func TestParse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]Clause{
		"":                     nil,
		" \t\n":                nil,
		"metrics.rmse > 1":     {{Entity: Metric, Key: "rmse", Op: Gt, Number: 1}},
		"metrics.rmse>-.5":     {{Entity: Metric, Key: "rmse", Op: Gt, Number: -0.5}},
		"metric.a.b <= 1e-3":   {{Entity: Metric, Key: "a.b", Op: Le, Number: 1e-3}},
		"metrics.a < 1e999":    {{Entity: Metric, Key: "a", Op: Lt, Number: math.Inf(1)}},
		"metrics.`a b/c` != 5": {{Entity: Metric, Key: "a b/c", Op: Ne, Number: 5}},
		"metrics.1m = +2":      {{Entity: Metric, Key: "1m", Op: Eq, Number: 2}},
		"params.p = '1' and tags.t != \"it's\" AND status LIKE 'R%'": {
			{Entity: Param, Key: "p", Op: Eq, Text: "1"}, {Entity: Tag, Key: "t", Op: Ne, Text: "it's"}, {Key: "status", Op: Like, Text: "R%"}},
		"tags.'a''b' iLiKe 'it''s'":          {{Entity: Tag, Key: "a'b", Op: ILike, Text: "it's"}},
		"tag.mlflow.runName = ''":            {{Entity: Tag, Key: "mlflow.runName", Op: Eq}},
		"parameters.x is null":               {{Entity: Param, Key: "x", Op: IsNull}},
		"params.x IS NOT NULL":               {{Entity: Param, Key: "x", Op: IsNotNull}},
		"run_id IN ('a', \"b\")":             {{Key: "id", Op: In, List: []string{"a", "b"}}},
		"run_id not in ('a',)":               {{Key: "id", Op: NotIn, List: []string{"a"}}},
		"ATTRIBUTES.start_time >= 17":        {{Key: "start", Op: Ge, Number: 17}},
		"\"Run name\" = 'x'":                 {{Key: "name", Op: Eq, Text: "x"}},
		"`run_name` = 'and'":                 {{Key: "name", Op: Eq, Text: "and"}},
		"datasets.context IN ('train')":      {{Entity: Dataset, Key: "context", Op: In, List: []string{"train"}}},
		"tags.größe = 'ü'":                   {{Entity: Tag, Key: "größe", Op: Eq, Text: "ü"}},
		"tags.t = '1''; drop table run; --'": {{Entity: Tag, Key: "t", Op: Eq, Text: "1'; drop table run; --"}},
	} {
		got, err := Parse(in, grammar)
		if err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Errorf("%q gives %+v, %v; want %+v", in, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"status", "status =", "= 'x'", "status = x", "status = 5", "status > 'a'", "status == 'a'", "status = 'a", "status = `a`",
		"nothing = 'x'", "foo.bar = 'x'", "metrics. > 1", "metrics.a = 'x'", "metrics.a IN (1)", "metrics.a IS NULL", "metrics.a LIKE '1'",
		"params.p > '1'", "params.p IN ('1')", "params.p = 1", "start_time > '1'", "start_time LIKE '1'", "datasets.bogus = 'x'",
		"run_id IN ()", "run_id IN (1)", "run_id IN ('a'", "run_id IN ('a' 'b')", "run_id IN 'a'", "run_id NOT 'a'", "params.p IS 'x'",
		"and", "status = 'a' and", "status = 'a' and and run_name = 'b'", "status = 'a' or run_name = 'b'", "status = 'a' status = 'b'",
		"(status = 'a')", "not status = 'a'", "status = 'a'; drop table run", "status = 'a' -- x", "metrics.a > 1.2.3", "metrics.a > 1e", "\x00", "*",
		strings.Repeat("status = 'a' and ", MaxClauses) + "status = 'a'", "run_id IN (" + strings.Repeat("'a',", MaxList+1) + "'b')",
		"status = '" + strings.Repeat("x", MaxLength) + "'",
	} {
		_, err := Parse(in, grammar)
		var fault *Error
		if !errors.As(err, &fault) || fault.Error() == "" {
			t.Errorf("%.80q: %v, want a fault", in, err)
		}
	}
}

func TestParseOrder(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Order{
		"start_time":               {Attribute, "start", false},
		"metrics.rmse DESC":        {Metric, "rmse", true},
		"metrics.`val/a b` asc":    {Metric, "val/a b", false},
		"`metrics`.`rmse`  desc":   {Metric, "rmse", true},
		"params.p":                 {Param, "p", false},
		"tags.\"sp ace\" DeSc":     {Tag, "sp ace", true},
		"attribute.start_time asc": {Attribute, "start", false},
	} {
		if got, err := ParseOrder(in, grammar); err != nil || got != want {
			t.Errorf("%q gives %+v, %v; want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "bogus", "foo.bar", "metrics.rmse SIDEWAYS", "start_time asc desc", "start_time, run_id", "created", "5", "datasets.name", "start_time; drop"} {
		var fault *Error
		if _, err := ParseOrder(in, grammar); !errors.As(err, &fault) {
			t.Errorf("%q: %v, want a fault", in, err)
		}
	}
}

// FuzzParse: an accepted filter can be written again in canonical form, and that form parses to the same filter.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"metrics.rmse > 1 and params.`a b` = 'it''s'", "run_id IN ('a', 'b')", "tags.t IS NOT NULL", "start_time >= 1e5",
		"run_name = 'a' OR 1=1", "tags.\"a\"\"b\" ILIKE '%'", "metrics.1 > .5e-3", "'Run name' = ''", "status = '"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clauses, err := Parse(s, grammar)
		if err != nil {
			var fault *Error
			if !errors.As(err, &fault) {
				t.Fatalf("%q: error of another kind: %v; want errors.As(err, &fault)", s, err)
			}
			return
		}
		again := renderClauses(clauses)
		if len(again) > MaxLength {
			return
		}
		got, err := Parse(again, grammar)
		if err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", clauses) {
			t.Fatalf(`%q is %+v; written as %q it is %+v, %v; want fmt.Sprintf("%%#v", got) == fmt.Sprintf("%%#v", clauses)`, s, clauses, again, got, err)
		}
	})
}

var spelled = map[string]string{"id": "run_id", "name": "run_name", "status": "status", "start": "start_time"}

func renderClauses(clauses []Clause) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	var out []string
	for _, c := range clauses {
		name, numeric := c.Entity.String()+"."+quote(c.Key), c.Entity == Metric
		if c.Entity == Attribute {
			name, numeric = spelled[c.Key], c.Key == "start"
		}
		s := name + " " + string(c.Op)
		switch {
		case c.Op == IsNull || c.Op == IsNotNull:
		case c.Op == In || c.Op == NotIn:
			var list []string
			for _, v := range c.List {
				list = append(list, quote(v))
			}
			s += " (" + strings.Join(list, ", ") + ")"
		case numeric && math.IsInf(c.Number, 0):
			s += fmt.Sprintf(" %c1e999", "-+"[(1+int(math.Copysign(1, c.Number)))/2])
		case numeric:
			s += " " + strconv.FormatFloat(c.Number, 'g', -1, 64)
		default:
			s += " " + quote(c.Text)
		}
		out = append(out, s)
	}
	return strings.Join(out, " and ")
}
