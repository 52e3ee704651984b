package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// defaultGraphFile is mlflow.onnx's name for the model file.
const defaultGraphFile = "model.onnx"

// ErrFlavor means that the artifact has no ONNX model. Python objects are never unpickled.
var ErrFlavor = errors.New("flavor not served")

// ColumnlessError means that the files name no columns of a table. The schema then has only GraphFile, and the model
// can be served only by its graph's own tensors.
type ColumnlessError struct{ reason string }

func (e *ColumnlessError) Error() string { return e.reason }

// platform is platform.json, which the platform's own trainer writes beside MLmodel.
type platform struct {
	Format int `json:"format"`
	Inputs list[struct {
		Name   string `json:"name"`
		Kind   Kind   `json:"kind"`
		Length int    `json:"length"`
	}] `json:"inputs"`
	Output struct {
		Kind   OutputKind `json:"kind"`
		Unit   string     `json:"unit"`
		Labels list[any]  `json:"labels"`
	} `json:"output"`
	TrainingStats table[struct {
		Mean float64 `json:"mean"`
		Std  float64 `json:"std"`
	}] `json:"training_stats"`
}

// platformFormat is the newest format of platform.json that Read knows.
const platformFormat = 1

// Read reads the schema from an artifact folder. The caller seals it, after adding from the graph whatever the files
// leave open.
func Read(dir fs.FS) (*Schema, error) {
	m, err := readMLmodel(dir)
	if err != nil {
		return nil, err
	}
	flavor, ok := m.Flavors["onnx"]
	if !ok {
		return nil, fmt.Errorf("%w: the artifact has %s; log the model with mlflow.onnx", ErrFlavor, listFlavors(m.Flavors))
	}
	s := &Schema{GraphFile: defaultGraphFile}
	if data, ok := flavor["data"].(string); ok && data != "" {
		s.GraphFile = path.Clean(data)
	}
	if !fs.ValidPath(s.GraphFile) {
		return nil, fmt.Errorf("MLmodel names the model file %q, which is outside the artifact", s.GraphFile)
	}
	return s, s.readColumns(dir, m)
}

// readColumns takes the columns from platform.json, else from the signature.
func (s *Schema) readColumns(dir fs.FS, m mlmodel) error {
	raw, err := readFile(dir, "platform.json")
	switch {
	case err == nil:
		return s.fromPlatform(raw)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("platform.json: %w", err)
	case m.Signature == nil || m.Signature.Inputs == "":
		return &ColumnlessError{"MLmodel has no signature, so the columns are unknown; log the model with one"}
	}
	return s.fromSignature([]byte(m.Signature.Inputs))
}

func listFlavors(m map[string]map[string]any) string {
	var names []string
	for name := range m {
		if name != "python_function" { // every flavor has it too
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none but python_function"
	}
	return strings.Join(names, ", ")
}

func (s *Schema) fromPlatform(raw []byte) error {
	var p platform
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("platform.json: %w", err)
	}
	if p.Format != platformFormat {
		return fmt.Errorf("platform.json has format %d, this service knows %d", p.Format, platformFormat)
	}
	if p.Output.Kind != Value && p.Output.Kind != Label {
		return fmt.Errorf("platform.json: output.kind is %q; it must be number or label", p.Output.Kind)
	}
	for _, in := range p.Inputs {
		c := Column{Name: in.Name, Kind: in.Kind, Length: in.Length}
		if stats, ok := p.TrainingStats[in.Name]; ok {
			c.Mean, c.Std, c.Known = stats.Mean, stats.Std, true
		}
		s.Columns = append(s.Columns, c)
	}
	s.Output = Output{Kind: p.Output.Kind, Unit: p.Output.Unit, Labels: p.Output.Labels}
	return nil
}

// spec is one input of an MLflow signature: a column (ColSpec), or a tensor (TensorSpec).
// https://mlflow.org/docs/latest/ml/model/signatures
type spec struct {
	Type string `json:"type"`
	Name string `json:"name"`
	// Required is false for a column in which values may be missing, nil in signatures without the field.
	Required *bool `json:"required"`
	Items    *struct {
		Type string `json:"type"`
	} `json:"items"`
	Tensor *struct {
		Dtype string    `json:"dtype"`
		Shape list[int] `json:"shape"`
	} `json:"tensor-spec"`
}

func (s *Schema) fromSignature(raw []byte) error {
	var specs list[spec]
	if err := json.Unmarshal(raw, &specs); err != nil {
		return fmt.Errorf("MLmodel: signature.inputs: %w", err)
	}
	if len(specs) == 0 {
		return errors.New("MLmodel: the signature has no inputs")
	}
	s.Tensors = specs[0].Type == "tensor"
	for i, in := range specs {
		if (in.Type == "tensor") != s.Tensors {
			return errors.New("MLmodel: the signature mixes columns and tensors")
		}
		var c Column
		var err error
		if s.Tensors {
			c, err = tensorColumn(in, len(specs))
		} else {
			c, err = tableColumn(in)
		}
		if err != nil {
			return fmt.Errorf("MLmodel: input %d of the signature (%q): %w", i+1, in.Name, err)
		}
		s.Columns = append(s.Columns, c)
	}
	return nil
}

func tableColumn(in spec) (Column, error) {
	c := Column{Name: in.Name}
	switch in.Type {
	case "double", "float":
		c.Kind = Number
	case "long", "integer":
		c.Kind = Integer
	case "boolean":
		c.Kind = Boolean
	case "string":
		c.Kind = Category
	case "array":
		if in.Items == nil || !isNumeric(in.Items.Type) {
			return c, errors.New("only arrays of numbers are served")
		}
		c.Kind = Vector // its length comes from the graph
	default:
		return c, fmt.Errorf("type %q is not served", in.Type)
	}
	c.Unstated = in.Required == nil
	c.Optional = in.Required != nil && !*in.Required && c.Kind == Number // a float has a missing value, NaN; others do not
	if in.Name == "" {
		return c, errors.New("the column has no name")
	}
	return c, nil
}

func isNumeric(t string) bool {
	return t == "double" || t == "float" || t == "long" || t == "integer"
}

func tensorColumn(in spec, count int) (Column, error) {
	c := Column{Name: in.Name, Unstated: true}
	switch {
	case in.Tensor == nil:
		return c, errors.New("tensor-spec is missing")
	case in.Name == "" && count > 1:
		return c, errors.New("one of several tensors has no name")
	case len(in.Tensor.Shape) > 2:
		return c, &ColumnlessError{fmt.Sprintf("shape %v is not served as columns", in.Tensor.Shape)}
	case len(in.Tensor.Shape) == 0:
		return c, fmt.Errorf("shape %v is not served; it must be [-1] or [-1, width]", in.Tensor.Shape)
	}
	switch t := in.Tensor.Dtype; {
	case strings.HasPrefix(t, "float"), t == "bfloat16":
		c.Kind = Number
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		c.Kind = Integer
	case t == "bool":
		c.Kind = Boolean
	case t == "str", t == "object", t == "string", strings.HasPrefix(t, "<U"):
		c.Kind = Category
	default:
		return c, fmt.Errorf("dtype %q is not served", t)
	}
	if len(in.Tensor.Shape) == 2 && in.Tensor.Shape[1] != 1 {
		if c.Kind != Number && c.Kind != Integer {
			return c, fmt.Errorf("dtype %q is served only one value a row", in.Tensor.Dtype)
		}
		c.Kind = Vector
		c.Length = max(in.Tensor.Shape[1], 0)
	}
	return c, nil
}
