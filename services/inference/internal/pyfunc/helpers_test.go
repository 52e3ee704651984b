package pyfunc

import (
	"fmt"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

func answerOf(s string) schema.Answer { return schema.Answer(s) }

// describe is the values of a tensor.
func describe(t runtime.Tensor) string {
	switch {
	case t.Strings != nil:
		return fmt.Sprint(t.Strings)
	case t.Int64s != nil:
		return fmt.Sprint(t.Int64s)
	}
	return fmt.Sprint(t.Doubles)
}
