package shape

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// finding is one thing that the validator found, in the words of the product.
type finding struct {
	place  []string // of the value
	rank   int
	code   string
	detail string
}

// The ranks of findings that lie equally deep, most telling first.
const (
	missingKey = iota
	unknownKey
	wrongKind // another type, or another document
	wrongValue
)

// maxPattern limits the regular expressions that people are shown.
const maxPattern = 60

func (f finding) pointer() string {
	path := ""
	for _, token := range f.place {
		path = canon.Pointer(path, token)
	}
	return path
}

func compareFindings(a, b finding) int {
	return cmp.Or(cmp.Compare(len(a.place), len(b.place)), cmp.Compare(a.rank, b.rank), slices.CompareFunc(a.place, b.place, compareTokens))
}

func compareTokens(a, b string) int {
	i, errA := strconv.Atoi(a)
	j, errB := strconv.Atoi(b)
	if errA == nil && errB == nil {
		return cmp.Compare(i, j)
	}
	return strings.Compare(a, b)
}

// collectFindings lists the findings of e. Conditions are left out: cross-field rules belong to the package that owns
// the document, with codes of their own.
func (s *Schema) collectFindings(e *jsonschema.ValidationError, out *[]finding) {
	if strings.Contains(e.SchemaURL, "/then") || strings.Contains(e.SchemaURL, "/else") {
		return
	}
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		*out = append(*out, s.closestBranch(e)...)
		return
	}
	if len(e.Causes) > 0 {
		for _, cause := range e.Causes {
			s.collectFindings(cause, out)
		}
		return
	}
	*out = append(*out, s.translateError(e))
}

// closestBranch picks the alternative closest to the value: one of the value's type, then the one with the fewest
// faults. If no alternative has its type, the finding names all.
func (s *Schema) closestBranch(e *jsonschema.ValidationError) []finding {
	var best []finding
	var types []string
	for _, branch := range e.Causes {
		leaf := branch
		for len(leaf.Causes) == 1 {
			leaf = leaf.Causes[0]
		}
		if k, ok := leaf.ErrorKind.(*kind.Type); ok && len(leaf.InstanceLocation) == len(e.InstanceLocation) {
			types = append(types, k.Want...)
			continue
		}
		var found []finding
		if s.collectFindings(branch, &found); best == nil || len(found) < len(best) {
			best = found
		}
	}
	if best == nil {
		return []finding{s.translateError(withType(e, types...))}
	}
	return best
}

// translateError converts an error of the validator to the product's code and text. No message quotes the document.
func (s *Schema) translateError(e *jsonschema.ValidationError) finding {
	f := finding{place: e.InstanceLocation, rank: wrongValue, code: s.codes.Value}
	value := func(format string, args ...any) finding {
		f.detail = fmt.Sprintf(format, args...)
		if term := s.findTerm(f.pointer(), e.SchemaURL); term != (Term{}) {
			f.code = cmp.Or(term.Code, f.code)
			if term.What != "" {
				f.detail = "expected " + term.What
			}
		}
		return f
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		f.place, f.rank = append(slices.Clone(f.place), k.Missing[0]), missingKey
		f.code, f.detail = s.codes.Missing, "the key is missing"
	case *kind.AdditionalProperties:
		f.place, f.rank = append(slices.Clone(f.place), slices.Min(k.Properties)), unknownKey
		f.code, f.detail = s.codes.Unknown, "the key is not known here"
	case *kind.Type:
		f.rank, f.code, f.detail = wrongKind, s.typeCode(f.place, k.Want), "expected "+describeTypes(k.Want)
	case *kind.Const:
		f.rank = wrongKind
		if !sameType(k.Got, k.Want) {
			return s.translateError(withType(e, typeOfFixed(k.Want)))
		}
		return value("expected %v", k.Want)
	case *kind.Enum:
		if !sameType(k.Got, k.Want[0]) {
			return s.translateError(withType(e, typeOfFixed(k.Want[0])))
		}
		return value("expected one of %s", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(k.Want)), ", "), "[]"))
	case *kind.UniqueItems:
		f.place = append(slices.Clone(f.place), strconv.Itoa(k.Duplicates[1]))
		f.code, f.detail = s.codes.Duplicate, "an earlier one is the same"
	case *kind.MinItems:
		f.detail = fmt.Sprintf("the array needs %d or more elements", k.Want)
	case *kind.MaxItems:
		f.detail = fmt.Sprintf("the array may have %d elements", k.Want)
	case *kind.MinLength:
		return value("the string must not be empty")
	case *kind.MaxLength:
		return value("expected at most %d characters", k.Want)
	case *kind.Minimum:
		return value("expected a number of %s or more", k.Want.RatString())
	case *kind.Maximum:
		return value("expected a number of at most %s", k.Want.RatString())
	case *kind.Pattern:
		if len(k.Want) <= maxPattern {
			return value("expected a text that matches %s", k.Want)
		}
		return value("the text has another form here")
	default:
		return value("the value has another form here")
	}
	return f
}

// findTerm looks up the term of a value by its pointer, then by the definition that refused it.
func (s *Schema) findTerm(pointer, schemaURL string) Term {
	if term, ok := s.codes.Terms[pointer]; ok {
		return term
	}
	const defs = "/$defs/"
	at := strings.LastIndex(schemaURL, defs)
	if at < 0 {
		return Term{}
	}
	name, part, _ := strings.Cut(schemaURL[at+len(defs):], "/")
	if part != "" && !strings.HasPrefix(part, "anyOf/") { // of something within the value
		return Term{}
	}
	if term, ok := s.codes.Terms[name]; ok {
		return term
	}
	return commonTerms[name]
}

func (s *Schema) typeCode(place, want []string) string {
	switch {
	case len(place) == 0:
		return s.codes.Root
	case slices.Contains(want, "object") || slices.Contains(want, "array"):
		return s.codes.Shape
	}
	return s.codes.Type
}

func withType(e *jsonschema.ValidationError, want ...string) *jsonschema.ValidationError {
	return &jsonschema.ValidationError{SchemaURL: e.SchemaURL, InstanceLocation: e.InstanceLocation, ErrorKind: &kind.Type{Want: want}}
}

// typeOfFixed is the type of a value that a schema fixes.
func typeOfFixed(v any) string {
	if _, ok := v.(bool); ok {
		return "boolean"
	}
	return "string"
}

func sameType(a, b any) bool { return fmt.Sprintf("%T", a) == fmt.Sprintf("%T", b) }

var typeNames = map[string]string{
	"object": "an object", "array": "an array", "string": "a string", "boolean": "true or false",
	"integer": "an integer", "number": "a number", "null": "null",
}

func describeTypes(types []string) string {
	var names []string
	types = slices.Clone(types)
	slices.SortStableFunc(types, func(a, b string) int { // null comes last: it is the alternative
		return cmp.Compare(strings.Count(a, "null"), strings.Count(b, "null"))
	})
	for _, t := range types {
		if name := typeNames[t]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}
