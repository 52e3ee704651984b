// Package paramschema checks the parameters of a flow run against the JSON
// schema its deployment declares (draft 2020-12 unless the schema names another).
package paramschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is a compiled parameter schema. The zero value accepts everything.
type Schema struct{ compiled *jsonschema.Schema }

// noLoader refuses references out of the document: by default the library
// would read local files for them.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to %s: only references within the schema are followed", url)
}

// Compile reads a schema. partial drops the demand that required parameters are
// present: a deployment's own parameters need not be complete.
func Compile(raw json.RawMessage, partial bool) (Schema, error) {
	if len(bytes.TrimSpace(raw)) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return Schema{}, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return Schema{}, fmt.Errorf("parameter_openapi_schema is not JSON: %w", err)
	}
	root, ok := doc.(map[string]any)
	if !ok {
		return Schema{}, errors.New("parameter_openapi_schema must be an object")
	}
	if partial {
		delete(root, "required")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	const name = "mem:///parameters.json"
	if err := c.AddResource(name, root); err != nil {
		return Schema{}, fmt.Errorf("parameter_openapi_schema: %w", err)
	}
	s, err := c.Compile(name)
	if err != nil {
		return Schema{}, fmt.Errorf("parameter_openapi_schema: %w", err)
	}
	return Schema{s}, nil
}

var english = message.NewPrinter(language.English)

// Check validates parameters; its error is a [*Fault] for the first at fault.
func (s Schema) Check(parameters json.RawMessage) error {
	if s.compiled == nil {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(parameters))
	if err != nil {
		return fmt.Errorf("parameters are not JSON: %w", err)
	}
	err = s.compiled.Validate(v)
	var fault *jsonschema.ValidationError
	if err == nil || !errors.As(err, &fault) {
		return err
	}
	for len(fault.Causes) > 0 {
		fault = fault.Causes[0]
	}
	return &Fault{Field: strings.Join(fault.InstanceLocation, "."), Reason: fault.ErrorKind.LocalizedString(english)}
}

// Fault is a parameter that does not fit.
type Fault struct {
	Field  string // path of the parameter; empty for the parameters as a whole
	Reason string
}

func (f *Fault) Error() string {
	if f.Field == "" {
		return "Validation failed. Failure reason: " + f.Reason // the real server's wording
	}
	return fmt.Sprintf("Validation failed for field '%s'. Failure reason: %s", f.Field, f.Reason)
}
