package runtime

import (
	"errors"
	"fmt"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
)

// Limits of a graph.
const (
	maxGraphDepth = 8       // graphs within graphs
	maxNodes      = 100_000 // of all graphs
	maxRank       = 8
	// maxRowValues limits the values that one row of an input or output has by its declaration. A request's body, of
	// at most 1 MiB, has room for half as many.
	maxRowValues = 1 << 20
)

// checker checks every node and constant of a model before the library sees any.
type checker struct {
	nodes int
}

func (c *checker) checkModel(mp *onnxpb.ModelProto, widths map[string]int64) error {
	if len(mp.Functions) > 0 {
		return errors.New("the model defines functions, which are not served; inline them before the export")
	}
	return c.checkGraph(mp.Graph, widths, 1)
}

func (c *checker) checkGraph(g *onnxpb.GraphProto, widths map[string]int64, depth int) error {
	if depth > maxGraphDepth {
		return fmt.Errorf("graphs are nested more than %d deep", maxGraphDepth)
	}
	if len(g.SparseInitializer) > 0 {
		return errors.New("sparse constants are not served; export them as dense ones")
	}
	for _, t := range g.Initializer {
		if err := checkTensor(t); err != nil {
			return err
		}
	}
	if c.nodes += len(g.Node); c.nodes > maxNodes {
		return fmt.Errorf("the model has more than %d nodes", maxNodes)
	}
	for _, n := range g.Node {
		if err := c.checkNode(n, widths, depth); err != nil {
			return fmt.Errorf("node %q (%s): %w", shorten(n.GetName()), shorten(n.GetOpType()), err)
		}
	}
	return nil
}

func (c *checker) checkNode(n *onnxpb.NodeProto, widths map[string]int64, depth int) error {
	if err := checkOperator(n.GetDomain(), n.GetOpType()); err != nil {
		return err
	}
	for _, a := range n.Attribute {
		if a.SparseTensor != nil || len(a.SparseTensors) > 0 {
			return errors.New("sparse constants are not served; export them as dense ones")
		}
		for _, t := range append(a.Tensors, a.T) {
			if t == nil {
				continue
			}
			if err := checkTensor(t); err != nil {
				return err
			}
		}
	}
	for _, sub := range graphsOf(n) {
		if err := c.checkGraph(sub, nil, depth+1); err != nil {
			return err
		}
	}
	return checkAttributes(n, widths)
}

// checkTensor refuses a constant that is kept elsewhere, or whose dimensions need more data than it has.
func checkTensor(t *onnxpb.TensorProto) error {
	if t.GetDataLocation() == onnxpb.TensorProto_EXTERNAL || len(t.GetExternalData()) > 0 { // external.takeIn leaves none
		return fmt.Errorf("constant %q is kept in another file", shorten(t.GetName()))
	}
	n, ok := countElements(t.Dims)
	if !ok || len(t.Dims) > maxRank {
		return fmt.Errorf("constant %q has impossible dimensions", shorten(t.GetName()))
	}
	have, err := countValues(t)
	if err != nil {
		return err
	}
	if have != n {
		return fmt.Errorf("constant %q has %d values, its dimensions require %d", shorten(t.GetName()), have, n)
	}
	return nil
}

// rawWidths are the bytes of one value in a constant's raw data.
var rawWidths = map[onnxpb.TensorProto_DataType]int{
	onnxpb.TensorProto_FLOAT: 4, onnxpb.TensorProto_DOUBLE: 8, onnxpb.TensorProto_FLOAT16: 2, onnxpb.TensorProto_BFLOAT16: 2,
	onnxpb.TensorProto_INT8: 1, onnxpb.TensorProto_INT16: 2, onnxpb.TensorProto_INT32: 4, onnxpb.TensorProto_INT64: 8,
	onnxpb.TensorProto_UINT8: 1, onnxpb.TensorProto_UINT16: 2, onnxpb.TensorProto_UINT32: 4, onnxpb.TensorProto_UINT64: 8,
	onnxpb.TensorProto_BOOL: 1,
}

// countValues returns the number of values in a constant.
func countValues(t *onnxpb.TensorProto) (int, error) {
	elem := onnxpb.TensorProto_DataType(t.GetDataType())
	if elem == onnxpb.TensorProto_STRING {
		return len(t.StringData), nil
	}
	width, ok := rawWidths[elem]
	if !ok {
		return 0, fmt.Errorf("constant %q has element type %s, which is not served", shorten(t.GetName()), elem)
	}
	if len(t.RawData) > 0 {
		if len(t.RawData)%width != 0 {
			return 0, fmt.Errorf("constant %q has %d bytes, which are no whole number of values", shorten(t.GetName()), len(t.RawData))
		}
		return len(t.RawData) / width, nil
	}
	switch elem {
	case onnxpb.TensorProto_FLOAT:
		return len(t.FloatData), nil
	case onnxpb.TensorProto_DOUBLE:
		return len(t.DoubleData), nil
	case onnxpb.TensorProto_INT64:
		return len(t.Int64Data), nil
	case onnxpb.TensorProto_UINT32, onnxpb.TensorProto_UINT64:
		return len(t.Uint64Data), nil
	}
	return len(t.Int32Data), nil
}

// checkDims refuses an input or output of which one row has more values than any request or answer, or a size below
// zero. Sizes of 0 are open, as some exporters write them.
func checkDims(what, name string, dims []int64) error {
	row := int64(1)
	for i, d := range dims {
		switch {
		case d > maxRowValues:
			return fmt.Errorf("%s %q has a dimension of %d; at most %d are served", what, shorten(name), d, maxRowValues)
		case i > 0 && d > 0:
			row *= d
		}
		if row > maxRowValues {
			return fmt.Errorf("%s %q has more than %d values a row", what, shorten(name), maxRowValues)
		}
	}
	if len(dims) > maxRank {
		return fmt.Errorf("%s %q has %d dimensions; at most %d are served", what, shorten(name), len(dims), maxRank)
	}
	return nil
}
