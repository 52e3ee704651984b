// Package shape checks the shape of a document against its JSON Schema and decodes what fits.
// Rules that span several parts of a document stay with the package that owns the document.
package shape

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
)

// Schema is a schema, or a part of one, and the codes that its documents' faults have.
type Schema struct {
	codes    Codes
	compiled func() *jsonschema.Schema
}

// Codes are the codes of one kind of document.
type Codes struct {
	closed.Codes
	Duplicate string
	// Terms describe the valid form of a value, and the code of an invalid one, by the JSON pointer of the value or by
	// the name of its definition in the schema. A term without a code has Codes.Value.
	Terms map[string]Term
}

// Term describes one kind of value.
type Term struct{ Code, What string }

// commonTerms are the definitions that mean the same in every schema.
var commonTerms = map[string]Term{
	"identifier":   {What: "an identifier"},
	"digest":       {What: `"sha256:" and 64 lower-case hex digits`},
	"revision":     {What: "a revision of 40 or 64 hex digits"},
	"time":         {What: "a time such as 2026-01-02T03:04:05Z"},
	"path":         {What: "a relative path with / between its parts and without . or .."},
	"work_unit_id": {What: "the id of a work unit: 3 to 128 of a-z 0-9 . _ / -, the first a letter or digit"},
	"line":         {What: "a text of one line"},
	"open":         {What: "a string or an object"},
}

// New names a schema. Part is "" or the JSON pointer of the part that describes the document. The schema is compiled at
// its first use, so that a command pays for the documents it reads and no others.
func New(name, part string, codes Codes) *Schema {
	return &Schema{codes: codes, compiled: sync.OnceValue(func() *jsonschema.Schema { return compileSchema(name, part) })}
}

// Decode checks v and decodes it into out, a pointer to a struct with JSON tags. An error is a *closed.Fault.
func (s *Schema) Decode(v canon.Value, out any) error {
	if f := s.Check(v); f != nil {
		return f
	}
	text, err := canon.C1(v)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong): // all that the schema takes and a Go type does not
		return &closed.Fault{Code: s.codes.Value, Path: "/" + strings.ReplaceAll(wrong.Field, ".", "/"), Detail: "the number is beyond 64 bits"}
	case err != nil:
		return &closed.Fault{Code: s.codes.Value, Detail: err.Error()}
	}
	return nil
}

// Check returns the first fault of v: the one least deep, missing and unknown keys before values, then by pointer.
func (s *Schema) Check(v canon.Value) *closed.Fault {
	var wrong *jsonschema.ValidationError
	if !errors.As(s.compiled().Validate(plainValue(v)), &wrong) {
		return nil
	}
	var all []finding
	s.collectFindings(wrong, &all)
	if len(all) == 0 {
		return nil
	}
	first := slices.MinFunc(all, compareFindings)
	return &closed.Fault{Code: first.code, Path: first.pointer(), Detail: first.detail}
}

// plainValue converts a document to the types that the validator reads. Integers keep all their digits; floats stay
// floats.
func plainValue(v canon.Value) any {
	switch v := v.(type) {
	case canon.Array:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plainValue(e)
		}
		return out
	case *canon.Object:
		out := make(map[string]any, v.Len())
		for k, e := range v.All() {
			out[k] = plainValue(e)
		}
		return out
	case canon.Int:
		return json.Number(v.String())
	case canon.Float:
		return float64(v)
	}
	return v
}
