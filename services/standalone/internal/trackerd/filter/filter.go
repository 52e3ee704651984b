// Package filter reads the filter and order grammars of the tracker's searches:
//
//	filter  = clause { "AND" clause }
//	clause  = name op value | name [ "NOT" ] "IN" "(" string { "," string } ")" | name "IS" [ "NOT" ] "NULL"
//	name    = [ entity "." ] key        metrics.rmse, params."learning rate", tags.`a b`, status
//	op      = "=" | "!=" | "<" | "<=" | ">" | ">=" | "LIKE" | "ILIKE"
//	value   = number | string
//	order   = name [ "ASC" | "DESC" ]
//
// Strings are in single or double quotes, keys also in backticks; a quote inside is written twice. Keywords and
// entities are in any case.
//
// The result is plain data: the caller turns it into SQL with bound values.
package filter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of the input, far above what clients send.
const (
	MaxLength  = 64 << 10 // bytes of a filter
	MaxClauses = 64
	MaxList    = 1000
)

// Entity is the kind of object that a name belongs to.
type Entity int

// The entities.
const (
	Attribute Entity = iota
	Metric
	Param
	Tag
	Dataset
)

var entities = map[string]Entity{
	"attribute": Attribute, "attributes": Attribute, "attr": Attribute, "run": Attribute,
	"metric": Metric, "metrics": Metric,
	"param": Param, "params": Param, "parameter": Param, "parameters": Param,
	"tag": Tag, "tags": Tag,
	"dataset": Dataset, "datasets": Dataset,
}

func (e Entity) String() string {
	return [...]string{"attribute", "metric", "parameter", "tag", "dataset"}[e]
}

// Op is a comparison, in its canonical spelling.
type Op string

// The comparisons.
const (
	Eq        Op = "="
	Ne        Op = "!="
	Lt        Op = "<"
	Le        Op = "<="
	Gt        Op = ">"
	Ge        Op = ">="
	Like      Op = "LIKE"
	ILike     Op = "ILIKE"
	In        Op = "IN"
	NotIn     Op = "NOT IN"
	IsNull    Op = "IS NULL"
	IsNotNull Op = "IS NOT NULL"
)

// Clause is one condition.
type Clause struct {
	Entity Entity
	Key    string // for attributes the canonical name
	Op     Op
	Number float64  // of metrics and numeric attributes; infinite if out of range
	Text   string   // of all others
	List   []string // of IN and NOT IN
}

// Order is one sort key.
type Order struct {
	Entity Entity
	Key    string
	Desc   bool
}

// Field is an attribute that a search knows.
type Field struct {
	Name    string // canonical
	Numeric bool
	List    bool // may be compared with IN
	NoOrder bool // may not be sorted by
	Ops     []Op // allowed comparisons; nil means those of its type
}

// Grammar defines the names that one search allows: attributes by every spelling, and further entities.
type Grammar struct {
	Fields   map[string]Field
	Entities []Entity
}

// Error is a fault of the filter or order itself, in a sentence.
type Error struct{ msg string }

func (e *Error) Error() string { return e.msg }

func newError(format string, a ...any) error { return &Error{fmt.Sprintf(format, a...)} }

var (
	textOps    = []Op{Eq, Ne, Like, ILike}
	numericOps = []Op{Eq, Ne, Lt, Le, Gt, Ge}
	storedOps  = []Op{Eq, Ne, Like, ILike, IsNull, IsNotNull} // of tags and parameters
)

// resolve gives a name its entity and canonical key.
func (g Grammar) resolve(name token) (Entity, string, Field, error) {
	kind, key, dotted := name.entity, name.text, name.dotted
	if !dotted {
		f, ok := g.Fields[key]
		if !ok {
			return 0, "", f, newError("Invalid attribute key '%s' specified. Valid keys are %s.", key, g.names())
		}
		return Attribute, f.Name, f, nil
	}
	e, ok := entities[strings.ToLower(kind)]
	if !ok || e != Attribute && !slices.Contains(g.Entities, e) {
		valid := []string{Attribute.String()}
		for _, e := range g.Entities {
			valid = append(valid, e.String())
		}
		return 0, "", Field{}, newError("Invalid entity type '%s'. Valid values are %s.", kind, strings.Join(valid, ", "))
	}
	switch e {
	case Attribute:
		f, ok := g.Fields[key]
		if !ok {
			return 0, "", f, newError("Invalid attribute key '%s' specified. Valid keys are %s.", key, g.names())
		}
		return e, f.Name, f, nil
	case Dataset:
		if key != "name" && key != "digest" && key != "context" {
			return 0, "", Field{}, newError("Invalid dataset key '%s' specified. Valid keys are context, digest, name.", key)
		}
		return e, key, Field{List: true, Ops: append([]Op{In, NotIn}, textOps...)}, nil
	case Metric:
		return e, key, Field{Numeric: true, Ops: numericOps}, nil
	}
	return e, key, Field{Ops: storedOps}, nil
}

func (g Grammar) names() string {
	return strings.Join(slices.Sorted(maps.Keys(g.Fields)), ", ")
}

func (f Field) ops() []Op {
	switch {
	case f.Ops != nil:
		return f.Ops
	case f.Numeric:
		return numericOps
	case f.List:
		return append([]Op{In, NotIn}, textOps...)
	}
	return textOps
}

// Parse reads a filter; an empty one has no clauses. Errors are of type *Error.
func Parse(s string, g Grammar) ([]Clause, error) {
	if len(s) > MaxLength {
		return nil, newError("The filter has %d bytes; at most %d are read.", len(s), MaxLength)
	}
	p := &parser{lexer: lexer{rest: s}, grammar: g}
	if err := p.next(); err != nil {
		return nil, err
	}
	if p.tok.kind == end {
		return nil, nil
	}
	var out []Clause
	for {
		c, err := p.clause()
		if err != nil {
			return nil, err
		}
		if out = append(out, c); len(out) > MaxClauses {
			return nil, newError("The filter has more than %d conditions.", MaxClauses)
		}
		switch {
		case p.tok.kind == end:
			return out, nil
		case !p.tok.is("AND"):
			return nil, newError("Invalid clause(s) in filter string: %s where AND was expected. Conditions can only be joined by AND.", p.tok)
		}
		if err := p.next(); err != nil {
			return nil, err
		}
	}
}

// ParseOrder reads one sort key. Errors are of type *Error.
func ParseOrder(s string, g Grammar) (Order, error) {
	if len(s) > MaxLength {
		return Order{}, newError("The order_by clause has %d bytes; at most %d are read.", len(s), MaxLength)
	}
	p := &parser{lexer: lexer{rest: s}, grammar: g}
	if err := p.next(); err != nil {
		return Order{}, err
	}
	if p.tok.kind != name && p.tok.kind != str {
		return Order{}, newError("Invalid order_by clause '%s'. Could not be parsed.", s)
	}
	e, key, f, err := g.resolve(p.tok)
	if err != nil {
		return Order{}, err
	}
	if f.NoOrder || e == Dataset {
		return Order{}, newError("Invalid order by key '%s' specified.", key)
	}
	o := Order{Entity: e, Key: key}
	if err := p.next(); err != nil {
		return Order{}, err
	}
	if p.tok.is("ASC") || p.tok.is("DESC") {
		o.Desc = p.tok.is("DESC")
		if err := p.next(); err != nil {
			return Order{}, err
		}
	}
	if p.tok.kind != end {
		return Order{}, newError("Invalid ordering key in order_by clause '%s': %s was not expected.", s, p.tok)
	}
	return o, nil
}
