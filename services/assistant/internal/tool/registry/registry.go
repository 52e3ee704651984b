// Package registry is the one table of the tools that read: the facts that the assistant can tell about a cluster,
// each with a JSON Schema of its arguments, a typed result and its text. The list for a language model, the tools of
// the Model Context Protocol and a page of the manual are derived from it.
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Source is a store that a tool reads, and that need not be configured.
type Source string

// The sources. Every assistant has a cluster.
const (
	Cluster    Source = ""
	Prometheus Source = "prometheus"
	Loki       Source = "loki"
	Runbooks   Source = "runbooks" // a folder of them
)

// Result is the result of a tool.
type Result struct {
	// Text is for people and models, redacted and limited in size.
	Text string `json:"-"`
	// Truncated means that something was left out, and that Text says so.
	Truncated  bool                  `json:"truncated"`
	References []operation.Reference `json:"references"`
	// Data is of the type whose schema the tool names; nil for tools whose text is the result.
	Data any `json:"data,omitempty"`
}

// Tool is one row of the table.
type Tool struct {
	Name  string
	About string // a sentence
	// Arguments is the JSON Schema of the arguments, and Structured that of the structured result.
	Arguments, Structured json.RawMessage
	Source                Source

	arguments *jsonschema.Resolved // nil for operations, which check their arguments themselves
	result    *jsonschema.Schema   // Structured, with the cluster of each reference
	run       func(ctx context.Context, c call) (Result, error)
}

// call is one call of a tool.
type call struct {
	box       turn.Toolbox
	arguments json.RawMessage
}

// Registry holds the tools whose sources are configured. It is immutable and safe for concurrent use.
type Registry struct {
	tools  []Tool
	byName map[string]*Tool
}

// New returns the tools that can be offered with the sources besides the cluster.
func New(configured ...Source) *Registry {
	r := &Registry{byName: map[string]*Tool{}}
	for _, t := range slices.Concat(facts(), operations()) {
		if t.Source == Cluster || slices.Contains(configured, t.Source) {
			t.Structured = encode(WithoutCluster(t.result))
			r.add(t)
		}
	}
	return r
}

func (r *Registry) add(t Tool) {
	r.tools = append(r.tools, t)
	r.byName[t.Name] = &t
}

// Tools lists the tools: the facts, then the operations that read.
func (r *Registry) Tools() []Tool { return slices.Clone(r.tools) }

// Call checks the arguments and runs a tool. The error of a refusal is an *operation.Fault; others are those of the
// toolbox.
func (r *Registry) Call(ctx context.Context, box turn.Toolbox, name string, arguments []byte) (Result, error) {
	t := r.byName[name]
	if t == nil {
		return Result{}, operation.Refuse(operation.UnknownVerb, "name", "There is no tool %s.", operation.Quote(name))
	}
	if t.arguments != nil {
		var err error
		if arguments, err = t.check(arguments); err != nil {
			return Result{}, err
		}
	}
	out, err := t.run(ctx, call{box, arguments})
	if out.References == nil {
		out.References = []operation.Reference{} // a list in JSON
	}
	return out, err
}

// maxArguments limits the arguments of one call, in bytes.
const maxArguments = 64 << 10

// check validates arguments against the schema. Members that are null are as good as absent, since models send them.
func (t *Tool) check(raw []byte) (json.RawMessage, error) {
	if len(raw) > maxArguments {
		return nil, operation.Refuse(operation.TooLarge, "", "The arguments are over %d bytes.", maxArguments)
	}
	members := map[string]any{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, operation.Refuse(operation.InvalidArgument, "", "The arguments of %s are no JSON object.", t.Name)
		}
	}
	for name, value := range members {
		if value == nil {
			delete(members, name)
		}
	}
	if err := t.arguments.Validate(members); err != nil {
		return nil, operation.Refuse(operation.InvalidArgument, "", "The arguments of %s do not fit its schema: %s.", t.Name, strings.TrimSuffix(innermost(err).Error(), "."))
	}
	return json.Marshal(members)
}

// innermost is the reason at the end of a chain of errors that each name one step of the validation.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// define makes a tool of a function whose argument and result types give the schemas; restrict may limit the arguments
// further.
func define[A, D any](name, about string, run func(ctx context.Context, box turn.Toolbox, a A) (Result, error), restrict ...func(*jsonschema.Schema)) Tool {
	arguments := SchemaFor[A]()
	for _, limit := range restrict {
		limit(arguments)
	}
	resolved, err := arguments.Resolve(nil)
	if err != nil {
		panic(fmt.Sprintf("the schema of the tool %s: %v", name, err)) // of a type in this package: every test would see it
	}
	return Tool{
		Name: name, About: about, Arguments: encode(arguments), result: structured(SchemaFor[D]()), arguments: resolved,
		run: func(ctx context.Context, c call) (Result, error) {
			var a A
			if err := json.Unmarshal(c.arguments, &a); err != nil {
				return Result{}, operation.Refuse(operation.InvalidArgument, "", "An argument of %s has the wrong type.", name)
			}
			return run(ctx, c.box, a)
		},
	}
}

// anyValue is the schema of a value of any type. One that says nothing would be encoded as a bare true, which is legal, but
// clients that map schemas to types of their own may refuse the tool.
var anyValue = &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[any](): {Description: "Any value."}}}

// SchemaFor is the JSON Schema of a type of this program; one without a schema is a fault that every test would see.
func SchemaFor[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](anyValue)
	if err != nil {
		panic(fmt.Sprintf("the schema of %T: %v", *new(T), err))
	}
	return s
}

// structured is the schema of a Result, with that of its data.
func structured(data *jsonschema.Schema) *jsonschema.Schema {
	s := SchemaFor[Result]()
	if data == nil {
		delete(s.Properties, "data")
	} else {
		s.Properties["data"] = data
		s.Required = append(s.Required, "data")
	}
	return s
}

func encode(s *jsonschema.Schema) json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("encode a schema: %v", err))
	}
	return raw
}

// operations makes a tool of every operation that reads.
func operations() []Tool {
	var tools []Tool
	for _, v := range operation.Verbs() {
		if v.Writes() {
			continue
		}
		t := Tool{Name: string(v), About: operation.About(v), Arguments: operation.Schema(v), result: structured(nil), Source: sourceOf(v)}
		t.run = func(ctx context.Context, c call) (Result, error) {
			op, err := operation.Decode(v, c.arguments)
			if err != nil {
				return Result{}, err
			}
			out, err := c.box.Call(ctx, op)
			return Result{Text: out.Text, Truncated: out.Truncated, References: out.References}, err
		}
		tools = append(tools, t)
	}
	return tools
}

func sourceOf(v operation.Verb) Source {
	switch v {
	case operation.QueryPrometheus:
		return Prometheus
	case operation.QueryLoki:
		return Loki
	}
	return Cluster
}
