package openinference

import (
	"fmt"
	"math"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/model"
)

// matrixElem is the element type that the tensor `input` is read as for a graph that takes elem. Its sender need not
// know the graph's numeric type: FP32 and FP64 are both taken, and converted. Any other tensor must be of elem.
func matrixElem(datatype, elem string) string {
	if elem == runtime.Bool || elem == runtime.String {
		return elem
	}
	switch datatype {
	case datatypes[runtime.Float]:
		return runtime.Float
	case datatypes[runtime.Double]:
		return runtime.Double
	}
	return elem
}

// convertFloats returns t, which holds floats or doubles, with the element type elem, and the fault, or "". Floats are
// rounded to the nearest; a value beyond the range of elem, or a fraction for a graph of integers, is refused.
func convertFloats(t *runtime.Tensor, elem string) (out runtime.Tensor, msg string) {
	out = model.NewTensor(elem, t.Dims)
	n := max(len(t.Floats), len(t.Doubles))
	for i := range n {
		v := floatAt(t, i)
		switch elem {
		case runtime.Float:
			out.Floats[i] = float32(v)
			if math.IsInf(float64(out.Floats[i]), 0) {
				return out, tooLarge(i, elem)
			}
		case runtime.Double:
			out.Doubles[i] = v
		case runtime.Int64, runtime.Int32:
			if v != math.Trunc(v) {
				return out, fmt.Sprintf("value %d: expected a whole number: the model takes %s", i, datatypes[elem])
			}
			// From 2^53 on, a float64 may have been rounded from another integer.
			if math.Abs(v) >= 1<<53 || elem == runtime.Int32 && float64(int32(int64(v))) != v {
				return out, tooLarge(i, elem)
			}
			if elem == runtime.Int32 {
				out.Int32s[i] = int32(v)
			} else {
				out.Int64s[i] = int64(v)
			}
		}
	}
	return out, ""
}

func floatAt(t *runtime.Tensor, i int) float64 {
	if t.Floats != nil {
		return float64(t.Floats[i])
	}
	return t.Doubles[i]
}

func tooLarge(i int, elem string) string {
	return fmt.Sprintf("value %d: the number is too large for %s", i, datatypes[elem])
}
