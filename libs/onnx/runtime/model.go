package runtime

import (
	"errors"
	"fmt"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
	"google.golang.org/protobuf/proto"
)

// model holds the declarations of a file, and the bytes to pass to the library.
type model struct {
	data            []byte
	inputs, outputs []Info
	readsSize       bool // the cost of a run may depend on the number of rows in any way
	texts           map[string][]string
	classes         []string
}

// Check refuses a model file that Open would refuse before it shows it to the library. It runs none of the library. read is
// Options.ReadFile.
func Check(data []byte, read func(name string) ([]byte, error)) error {
	_, err := parseModel(data, read)
	return err
}

// parseModel reads the declarations of a model file and refuses models that the library must not see.
func parseModel(data []byte, read func(name string) ([]byte, error)) (model, error) {
	var mp onnxpb.ModelProto
	if len(data) == 0 {
		return model{}, errors.New("the model file is empty")
	}
	if err := CheckEncoding(data); err != nil {
		return model{}, err
	}
	if err := proto.Unmarshal(data, &mp); err != nil {
		return model{}, fmt.Errorf("not an ONNX file: %w", err)
	}
	g := mp.GetGraph()
	if g == nil || len(g.Output) == 0 {
		return model{}, errors.New("not an ONNX model: it has no graph with outputs")
	}
	m := model{data: data, classes: findClasses(g)}
	parts := external{read: read}
	changed, err := parts.takeIn(g)
	if err != nil {
		return model{}, err
	}
	labels := removeZipMaps(g)
	narrow := castNarrows(g)
	if changed || len(labels) > 0 || len(narrow) > 0 {
		if size := proto.Size(&mp); size > maxModelBytes {
			return model{}, fmt.Errorf("the model has %d bytes with the files of its constants; at most %d are served", size, maxModelBytes)
		}
		if m.data, err = proto.Marshal(&mp); err != nil {
			return model{}, fmt.Errorf("rewriting the model: %w", err)
		}
	}
	constants := make(map[string]bool, len(g.Initializer))
	for _, t := range g.Initializer {
		constants[t.GetName()] = true
	}
	for _, v := range g.Input {
		if constants[v.GetName()] {
			continue // a default value, not an input to be given
		}
		in, e := describeValue("input", v)
		in.Narrow = narrow[in.Name]
		err = errors.Join(err, e)
		m.inputs = append(m.inputs, in)
	}
	for _, v := range g.Output {
		out, e := describeValue("output", v)
		out.Labels, out.Narrow = labels[out.Name], narrow[out.Name]
		err = errors.Join(err, e)
		m.outputs = append(m.outputs, out)
	}
	if err != nil {
		return model{}, err
	}
	widths := make(map[string]int64, len(m.inputs))
	for _, in := range m.inputs {
		if len(in.Dims) == 2 && in.Dims[1] > 0 {
			widths[in.Name] = in.Dims[1]
		}
	}
	var c checker
	if err := c.checkModel(&mp, widths); err != nil {
		return model{}, err
	}
	if m.readsSize, err = checkSizes(g, m.inputs); err != nil {
		return model{}, err
	}
	m.texts = knownTexts(g, m.inputs)
	missing := findMissing(g, m.inputs)
	for i := range m.inputs {
		m.inputs[i].Missing = missing[m.inputs[i].Name]
	}
	return m, nil
}

var elemNames = map[onnxpb.TensorProto_DataType]string{
	onnxpb.TensorProto_FLOAT:  Float,
	onnxpb.TensorProto_DOUBLE: Double,
	onnxpb.TensorProto_INT64:  Int64,
	onnxpb.TensorProto_INT32:  Int32,
	onnxpb.TensorProto_BOOL:   Bool,
	onnxpb.TensorProto_STRING: String,
}

func describeValue(what string, v *onnxpb.ValueInfoProto) (Info, error) {
	in := Info{Name: v.GetName()}
	tt := v.GetType().GetTensorType()
	if tt == nil {
		return in, fmt.Errorf("%s %q is not a tensor, which is all that is served", what, shorten(in.Name))
	}
	var ok bool
	if in.Type, ok = elemNames[onnxpb.TensorProto_DataType(tt.GetElemType())]; !ok {
		return in, fmt.Errorf("%s %q has element type %s, which is not served", what, shorten(in.Name), onnxpb.TensorProto_DataType(tt.GetElemType()))
	}
	for _, d := range tt.GetShape().GetDim() {
		size := int64(-1)
		if x, fixed := d.GetValue().(*onnxpb.TensorShapeProto_Dimension_DimValue); fixed {
			if x.DimValue < -1 { // some exporters write −1 for an open size
				return in, fmt.Errorf("%s %q has a dimension of %d", what, shorten(in.Name), x.DimValue)
			}
			if x.DimValue > 0 {
				size = x.DimValue
			}
		}
		in.Dims = append(in.Dims, size)
	}
	return in, checkDims(what, in.Name, in.Dims)
}
