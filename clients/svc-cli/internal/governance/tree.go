package governance

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// Codes of a workflow's faults.
const (
	InvalidWorkflow = "invalid_workflow"
	InvalidUTF8     = "invalid_utf8"
)

// Limits of a workflow once its aliases are expanded: a few lines of aliases of aliases
// can expand to more values than any machine holds.
const (
	maxValues = 100_000
	maxNested = 100
)

func workflowFault(format string, args ...any) error {
	return command.Failf(InvalidWorkflow, "the workflow "+format, args...)
}

// parseYAML parses one YAML document. It returns scalars as their literal texts, or as
// nil; the reader of a key decides what "on" or "yes" mean.
func parseYAML(data []byte) (canon.Value, error) {
	if !utf8.Valid(data) {
		return nil, command.Failf(InvalidUTF8, "the workflow is not UTF-8")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := dec.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, workflowFault("is empty")
		}
		return nil, workflowFault("is no YAML: %.200s", err.Error())
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, workflowFault("holds more than one document")
	}
	x := expander{}
	return x.value(&document, 0)
}

type expander struct{ values int }

func (x *expander) value(n *yaml.Node, depth int) (canon.Value, error) {
	if x.values++; x.values > maxValues {
		return nil, workflowFault("holds more than %d values, aliases expanded", maxValues)
	}
	if depth > maxNested {
		return nil, workflowFault("is nested more than %d deep, aliases expanded", maxNested)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) != 1 {
			return nil, workflowFault("is empty")
		}
		return x.value(n.Content[0], depth)
	case yaml.AliasNode:
		return x.value(n.Alias, depth+1) // an alias inside itself ends at the bound of depth
	case yaml.SequenceNode:
		out := make(canon.Array, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := x.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.MappingNode:
		return x.mapping(n, depth)
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return nil, nil
		}
		return n.Value, nil
	}
	return nil, workflowFault("holds something that is no value, at line %d", n.Line)
}

func (x *expander) mapping(n *yaml.Node, depth int) (canon.Value, error) {
	out := &canon.Object{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := x.value(n.Content[i], depth+1)
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		switch _, twice := out.Get(name); {
		case !ok:
			return nil, workflowFault("has a key that is no text, at line %d", n.Content[i].Line)
		case n.Content[i].Tag == "!!merge":
			// The forge refuses them, so their meaning is undefined.
			return nil, workflowFault("has a merge key, at line %d", n.Content[i].Line)
		case twice:
			return nil, workflowFault("has a key twice, at line %d", n.Content[i].Line)
		}
		v, err := x.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		out.Set(name, v)
	}
	return out, nil
}

// LoadWorkflow reads a workflow's file: a regular file of at most 2 MiB.
func LoadWorkflow(path string) (Workflow, error) {
	data, err := canon.ReadBytes(path)
	if err != nil {
		return Workflow{}, command.Failf(command.InputReadError, "cannot read the workflow: %w", err)
	}
	w, err := ParseWorkflow(data)
	if err != nil {
		f := *command.FaultOf(err)
		f.Message = fmt.Sprintf("%s: %s", path, f.Message)
		return Workflow{}, &f
	}
	return w, nil
}
