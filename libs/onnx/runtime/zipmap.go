package runtime

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
	"google.golang.org/protobuf/proto"
)

// removeZipMaps removes each ZipMap whose result the graph returns, and returns the tensor before it instead, under its
// own name: other nodes may read it, or the graph may return it as well. Converters of scikit-learn add that node by
// default: it turns the probabilities into a list of maps, which cannot be batched, costs more than the model and adds
// no information. It returns the class names by output name.
func removeZipMaps(g *onnxpb.GraphProto) map[string][]string {
	labels := map[string][]string{}
	g.Node = slices.DeleteFunc(g.Node, func(n *onnxpb.NodeProto) bool {
		if n.GetOpType() != "ZipMap" || n.GetDomain() != mlDomain || len(n.Input) != 1 || len(n.Output) != 1 {
			return false
		}
		at := indexValue(g.Output, n.Output[0])
		if at < 0 {
			return false
		}
		names := classLabels(n)
		labels[n.Input[0]] = names
		if indexValue(g.Output, n.Input[0]) >= 0 {
			g.Output = slices.Delete(g.Output, at, at+1)
		} else {
			g.Output[at] = declareProbabilities(n.Input[0], len(names))
		}
		return true
	})
	return labels
}

func indexValue(values []*onnxpb.ValueInfoProto, name string) int {
	return slices.IndexFunc(values, func(v *onnxpb.ValueInfoProto) bool { return v.GetName() == name })
}

// declareProbabilities declares the input of a ZipMap: a float per class, since the operator accepts no other type.
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

// classLabels are the names of classes that a node has, in their order.
func classLabels(n *onnxpb.NodeProto) (out []string) {
	for _, a := range n.Attribute {
		if !strings.HasPrefix(a.GetName(), "classlabels_") {
			continue
		}
		for _, v := range a.Ints {
			out = append(out, strconv.FormatInt(v, 10))
		}
		for _, v := range a.Strings {
			out = append(out, string(v))
		}
	}
	return out
}

// findClasses are the names of the classes where all nodes that name any name the same ones.
func findClasses(g *onnxpb.GraphProto) (classes []string) {
	for _, n := range g.Node {
		labels := classLabels(n)
		switch {
		case len(labels) == 0:
		case classes == nil:
			classes = labels
		case !slices.Equal(classes, labels):
			return nil
		}
	}
	return classes
}
