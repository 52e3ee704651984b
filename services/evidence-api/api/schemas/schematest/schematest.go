// Package schematest validates documents against the schemas in tests.
package schematest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mlp-platform/platform/clients/go/controltower/schemas"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// loaded holds every schema; each is compiled on first use, so that a faulty one fails only the tests that use it.
var loaded = sync.OnceValues(func() (*jsonschema.Compiler, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	for _, name := range schemas.Names() {
		text, _ := schemas.Get(name)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := c.AddResource(schemas.ID(name), doc); err != nil {
			return nil, err
		}
	}
	return c, nil
})

var (
	mu       sync.Mutex // guards compiled, and the compiler while it compiles
	compiled = map[string]*jsonschema.Schema{}
)

// Schema gives the compiled schema of this name.
func Schema(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	c, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if compiled[name] == nil {
		if _, ok := schemas.Get(name); !ok {
			t.Fatalf("there is no schema %q; want ok", name)
		}
		s, err := c.Compile(schemas.ID(name))
		if err != nil {
			t.Fatal(err)
		}
		compiled[name] = s
	}
	return compiled[name]
}

// Validate returns what is wrong with a document, which may be any Go value that canon writes.
func Validate(t testing.TB, name string, doc any) error {
	t.Helper()
	text, err := canon.C1(doc)
	if err != nil {
		t.Fatal(err)
	}
	return ValidateBytes(t, name, text)
}

// ValidateBytes is Validate for an encoded document.
func ValidateBytes(t testing.TB, name string, text []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return Schema(t, name).Validate(v)
}
