package runtime

import (
	"slices"
	"strconv"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
	"google.golang.org/protobuf/proto"
)

// removeZipMaps removes each ZipMap whose result the graph answers, and answers the tensor before it instead.
// Converters of scikit-learn add that node by default: it turns the probabilities into a list of maps,
// which costs more than the model and says no more. It returns the class names by output name.
func removeZipMaps(g *onnxpb.GraphProto) map[string][]string {
	labels := map[string][]string{}
	for i, n := range g.Node {
		if n.GetOpType() != "ZipMap" || n.GetDomain() != "ai.onnx.ml" || len(n.Input) != 1 || len(n.Output) != 1 {
			continue
		}
		at := slices.IndexFunc(g.Output, func(o *onnxpb.ValueInfoProto) bool { return o.GetName() == n.Output[0] })
		if at < 0 || slices.ContainsFunc(g.Output, func(o *onnxpb.ValueInfoProto) bool { return o.GetName() == n.Input[0] }) {
			continue
		}
		var names []string
		for _, a := range n.Attribute {
			for _, v := range a.Ints {
				names = append(names, strconv.FormatInt(v, 10))
			}
			for _, v := range a.Strings {
				names = append(names, string(v))
			}
		}
		g.Output[at] = &onnxpb.ValueInfoProto{
			Name: proto.String(n.Input[0]),
			Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
				ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)),
				Shape: &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{
					{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "N"}},
					{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(len(names))}},
				}},
			}}},
		}
		labels[n.Input[0]] = names
		g.Node[i] = nil
	}
	g.Node = slices.DeleteFunc(g.Node, func(n *onnxpb.NodeProto) bool { return n == nil })
	return labels
}
