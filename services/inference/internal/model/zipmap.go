package model

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
	"github.com/mlp-platform/platform/libs/onnx/runtime"
)

// stripZipMap makes a graph's classes known and its probabilities a tensor. scikit-learn classifiers are
// exported by default with a ZipMap at the end, which makes one map a row: a form that cannot be batched.
// The node only renames what it reads, so it is cut off. The file itself, and so its digest, stays as
// it was registered.
func stripZipMap(data []byte) (out []byte, classes []string, err error) {
	if err := runtime.CheckEncoding(data); err != nil {
		return nil, nil, err
	}
	var mp onnxpb.ModelProto
	if err := proto.Unmarshal(data, &mp); err != nil {
		return nil, nil, fmt.Errorf("not an ONNX file: %w", err)
	}
	g := mp.GetGraph()
	changed := false
	for i, o := range g.GetOutput() {
		if o.GetType().GetSequenceType() == nil {
			continue
		}
		for j, n := range g.Node {
			if n.GetOpType() != "ZipMap" || len(n.Output) != 1 || n.Output[0] != o.GetName() || len(n.Input) != 1 {
				continue
			}
			classes = labelsOf(n)
			g.Output[i] = declareProbabilities(n.Input[0], len(classes))
			g.Node = append(g.Node[:j], g.Node[j+1:]...)
			changed = true
			break
		}
	}
	if changed {
		data, err = proto.Marshal(&mp)
		return data, classes, err
	}
	// Where all nodes that name classes name the same ones, those are the model's.
	for _, n := range g.GetNode() {
		labels := labelsOf(n)
		switch {
		case len(labels) == 0:
		case classes == nil:
			classes = labels
		case fmt.Sprint(classes) != fmt.Sprint(labels):
			return data, nil, nil
		}
	}
	return data, classes, nil
}

func labelsOf(n *onnxpb.NodeProto) (out []string) {
	for _, a := range n.Attribute {
		switch a.GetName() {
		case "classlabels_int64s", "classlabels_ints":
			for _, v := range a.Ints {
				out = append(out, strconv.FormatInt(v, 10))
			}
		case "classlabels_strings":
			for _, v := range a.Strings {
				out = append(out, string(v))
			}
		}
	}
	return out
}

// declareProbabilities declares the value that a ZipMap read as an output [N, classes]. Its name must stay, since
// nodes refer to it.
func declareProbabilities(name string, classes int) *onnxpb.ValueInfoProto {
	rows := &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "N"}}
	cols := &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(classes)}}
	return &onnxpb.ValueInfoProto{
		Name: proto.String(name),
		Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
			ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)),
			Shape:    &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{rows, cols}},
		}}},
	}
}
