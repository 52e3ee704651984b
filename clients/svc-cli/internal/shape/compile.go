package shape

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/mlp-platform/platform/clients/go/controltower/schemas"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// compileSchema compiles a part of a shipped schema. Every schema is in the binary, so that a fault is the program's own.
func compileSchema(name, part string) *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: "date-time", Validate: checkTimestamp})
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: "urn:svc:vocabulary:documents", Compile: compileKeywords})
	c.AssertVocabs()
	text, _ := schemas.Get(name)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		renameItems(doc)
		err = c.AddResource(schemas.ID(name), doc)
	}
	if err != nil {
		panic(err)
	}
	return c.MustCompile(schemas.ID(name) + "#" + part)
}

// checkTimestamp is stricter than RFC 3339, as all documents of the product are.
func checkTimestamp(v any) error {
	if t, ok := v.(string); ok && !spine.IsTimestamp(t) {
		return errors.New("no timestamp")
	}
	return nil
}

// firstItems replaces the keyword items, see elements.
const firstItems = "x-first-items"

// renameItems renames the keyword items in every schema below v.
func renameItems(v any) {
	schema, _ := v.(map[string]any)
	for key, value := range schema {
		switch key {
		case "properties", "$defs":
			for _, part := range value.(map[string]any) {
				renameItems(part)
			}
		case "anyOf", "oneOf", "allOf":
			for _, part := range value.([]any) {
				renameItems(part)
			}
		case "items", "additionalProperties":
			renameItems(value)
		}
	}
	if items, ok := schema["items"]; ok {
		delete(schema, "items")
		schema[firstItems] = items
	}
}

// keywords are the checks in which the validator differs for the product's documents.
type keywords struct {
	integer bool               // refuse 1.0, which has another digest than 1
	items   *jsonschema.Schema // check up to the first wrong element: a document may hold a million of them
}

func compileKeywords(ctx *jsonschema.CompilerContext, schema map[string]any) (jsonschema.SchemaExt, error) {
	k := keywords{integer: schema["type"] == "integer"}
	if _, ok := schema[firstItems]; ok {
		k.items = ctx.Enqueue([]string{firstItems})
	}
	if k == (keywords{}) {
		return nil, nil
	}
	return k, nil
}

// Validate implements jsonschema.SchemaExt.
func (k keywords) Validate(ctx *jsonschema.ValidatorContext, v any) {
	switch v := v.(type) {
	case float64:
		if k.integer {
			ctx.AddError(&kind.Type{Got: "number", Want: []string{"integer"}})
		}
	case []any:
		for i := 0; k.items != nil && i < len(v); i++ {
			if err := ctx.Validate(k.items, v[i], []string{strconv.Itoa(i)}); err != nil {
				ctx.AddErr(err)
				return
			}
		}
	}
}
