package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// input is how one graph input is filled: from the columns listed, side by side.
type input struct {
	info    runtime.Info
	columns []int
	width   int // values a row
}

// bindInputs maps columns to graph inputs, completes the schema from the graph, and refuses a signature that the graph
// contradicts.
func bindInputs(s *schema.Schema, graph []runtime.Info) ([]input, error) {
	if len(graph) == 0 {
		return nil, fmt.Errorf("the graph has no inputs")
	}
	byName := make(map[string]int, len(graph))
	for i, in := range graph {
		byName[in.Name] = i
		if len(in.Dims) > 2 || len(in.Dims) > 0 && in.Dims[0] > 1 {
			return nil, fmt.Errorf("graph input %q has shape %v; served are [N] and [N, width]", in.Name, in.Dims)
		}
	}
	if s.Tensors && len(s.Columns) == 1 && s.Columns[0].Name == "" {
		s.Columns[0].Name = graph[0].Name
	}
	var inputs []input
	if _, named := byName[s.Columns[0].Name]; len(graph) == 1 && (len(s.Columns) > 1 || !named) {
		in := input{info: graph[0]}
		for i := range s.Columns {
			in.columns = append(in.columns, i)
		}
		inputs = append(inputs, in)
	} else {
		inputs = make([]input, len(graph))
		for i, c := range s.Columns {
			at, ok := byName[c.Name]
			if !ok {
				return nil, fmt.Errorf("the signature has a column %q, the graph has no input of that name; it has %s", c.Name, listTensors(graph))
			}
			inputs[at] = input{info: graph[at], columns: []int{i}}
		}
		for i, in := range inputs {
			if in.columns == nil {
				return nil, fmt.Errorf("the graph has an input %q, the signature has no column of that name", graph[i].Name)
			}
		}
	}
	for i := range inputs {
		if err := inputs[i].settle(s); err != nil {
			return nil, err
		}
	}
	return inputs, s.Seal()
}

func listTensors(infos []runtime.Info) string {
	names := make([]string, len(infos))
	for i, in := range infos {
		names[i] = in.Name
	}
	return strings.Join(names, ", ")
}

// settle fixes element types and lengths of the input's columns.
func (in *input) settle(s *schema.Schema) error {
	declared := 0 // 0 = open
	switch {
	case len(in.info.Dims) == 1:
		declared = 1
	case len(in.info.Dims) == 2 && in.info.Dims[1] > 0:
		declared = int(in.info.Dims[1])
	}
	var open *schema.Column
	for _, i := range in.columns {
		c := &s.Columns[i]
		if err := suitColumn(c, in.info); err != nil {
			return err
		}
		switch {
		case c.Kind != schema.Vector:
			in.width++
		case c.Length > 0:
			in.width += c.Length
		case open != nil:
			return &openLengthError{fmt.Sprintf("the lengths of %q and %q are stated neither by the signature nor by the graph", open.Name, c.Name)}
		default:
			open = c
		}
	}
	if open != nil && declared > in.width {
		open.Length = declared - in.width
		in.width = declared
	}
	if open != nil && open.Length == 0 {
		return &openLengthError{fmt.Sprintf("the length of vector %q is stated neither by the signature nor by the graph", open.Name)}
	}
	if declared > 0 && declared != in.width {
		return fmt.Errorf("graph input %q takes %d values a row, the signature has %d", in.info.Name, declared, in.width)
	}
	return nil
}

// suitColumn limits the column to the range of the graph's element type.
func suitColumn(c *schema.Column, info runtime.Info) error {
	bad := func() error {
		return fmt.Errorf("column %q is a %s, graph input %q takes %s", c.Name, c.Kind, info.Name, info.Type)
	}
	if (c.Kind == schema.Category) != (info.Type == runtime.String) {
		return bad()
	}
	c.Optional = (c.Optional || c.Unstated && info.Missing) && (info.Type == runtime.Float || info.Type == runtime.Double)
	switch info.Type {
	case runtime.Float:
		switch {
		case info.Narrow != nil:
			c.Range = schema.Range{Min: info.Narrow.Min, Max: info.Narrow.Max}
		case c.Kind != schema.Integer:
			c.Range = schema.Magnitude(math.MaxFloat32)
		}
	case runtime.Int64, runtime.Int32:
		switch c.Kind {
		case schema.Number:
			c.Kind = schema.Integer
		case schema.Vector:
			c.Whole, c.Range = true, schema.Magnitude(1<<53)
		case schema.Boolean:
			return nil
		}
		switch {
		case info.Narrow != nil:
			c.Range = schema.Range{Min: info.Narrow.Min, Max: min(info.Narrow.Max, 1<<53)}
		case info.Type == runtime.Int32:
			c.Range = schema.Magnitude(math.MaxInt32)
		}
	case runtime.Bool:
		if c.Kind != schema.Boolean {
			return bad()
		}
	}
	return nil
}

// output is where a model's answer is found among its outputs.
type output struct {
	kind          schema.OutputKind
	answer        int // index of the value or label
	probabilities int // index, or −1
}

// findOutputs finds a label with its probabilities, else a number.
func findOutputs(s *schema.Schema, graph []runtime.Info) (output, error) {
	if s.Output.Kind != schema.Value {
		if o := findLabel(graph); o.answer >= 0 {
			return o, o.checkUnserved(graph)
		}
		if s.Output.Kind == schema.Label {
			return output{kind: schema.Label, answer: -1, probabilities: -1}, fmt.Errorf("the graph has no label output; it has %s", listTensors(graph))
		}
	}
	o := output{kind: schema.Value, answer: -1, probabilities: -1}
	isNumber := func(i runtime.Info) bool {
		return i.Type != runtime.String && i.Type != runtime.Bool && isSingleValue(i)
	}
	if o.answer = slices.IndexFunc(graph, func(i runtime.Info) bool { return i.Name == "prediction" && isNumber(i) }); o.answer < 0 {
		o.answer = slices.IndexFunc(graph, isNumber)
	}
	if o.answer < 0 {
		return o, &unansweredError{"the graph answers no single value a row; its outputs are " + listTensors(graph)}
	}
	return o, o.checkUnserved(graph)
}

// findLabel finds a label and its probabilities. The outputs of a ZipMap are probabilities by construction, so a text
// or a whole number beside them is the label, in any order and under any names. Otherwise names decide: those of the
// platform's own graphs and of skl2onnx, mlflow.onnx's usual source.
func findLabel(graph []runtime.Info) output {
	o := output{kind: schema.Label, answer: -1, probabilities: -1}
	mapped := func(i runtime.Info) bool { return i.Labels != nil }
	named := func(i runtime.Info) bool {
		return (i.Type == runtime.Float || i.Type == runtime.Double) && len(i.Dims) == 2 && strings.Contains(strings.ToLower(i.Name), "probabilit")
	}
	if o.probabilities = slices.IndexFunc(graph, mapped); o.probabilities < 0 {
		o.probabilities = slices.IndexFunc(graph, named)
	}
	isLabel := func(i runtime.Info) bool {
		return (i.Type == runtime.Int64 || i.Type == runtime.String) && isSingleValue(i)
	}
	o.answer = slices.IndexFunc(graph, func(i runtime.Info) bool { return isLabel(i) && strings.Contains(strings.ToLower(i.Name), "label") })
	if o.answer < 0 {
		o.answer = slices.IndexFunc(graph, func(i runtime.Info) bool { return isLabel(i) && (i.Type == runtime.String || o.probabilities >= 0) })
	}
	return o
}

// unansweredError is why the graph's outputs make no answer to a row of columns. They can still be had as tensors.
type unansweredError struct{ reason string }

func (e *unansweredError) Error() string { return e.reason }

// openLengthError is why rows cannot have columns: a request chooses their lengths. They can still be sent as tensors.
type openLengthError struct{ reason string }

func (e *openLengthError) Error() string { return e.reason }

// checkTensors refuses inputs of a graph without columns that cannot be divided into rows.
func checkTensors(graph []runtime.Info) error {
	if len(graph) == 0 {
		return fmt.Errorf("the graph has no inputs")
	}
	for _, in := range graph {
		if len(in.Dims) == 0 || in.Dims[0] > 1 {
			return fmt.Errorf("graph input %q has shape %v; served are [N, …] and [1, …]", in.Name, in.Dims)
		}
	}
	return nil
}

// checkUnserved finds outputs that no answer would contain: half of a model must not pass for the registered one. It
// ignores the raw scores that skl2onnx adds to a label, since the label follows from them.
func (o output) checkUnserved(graph []runtime.Info) error {
	var unserved []runtime.Info
	for i, info := range graph {
		scores := o.kind == schema.Label && strings.EqualFold(info.Name, "scores")
		if i != o.answer && i != o.probabilities && !scores {
			unserved = append(unserved, info)
		}
	}
	if len(unserved) == 0 {
		return nil
	}
	return &unansweredError{fmt.Sprintf("the graph has %d outputs (%s), and an answer would lack %s: an answer is one value a row, or a label with its probabilities",
		len(graph), listTensors(graph), listTensors(unserved))}
}

// isSingleValue reports whether an output may hold one value per row.
func isSingleValue(i runtime.Info) bool {
	return len(i.Dims) < 2 || len(i.Dims) == 2 && i.Dims[1] <= 1
}
