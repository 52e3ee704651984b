package model

import (
	"errors"
	"testing"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// Which outputs are the answer does not depend on their order, and on their names only where nothing else decides.
func TestFindsTheAnswerAmongTheOutputs(t *testing.T) {
	t.Parallel()
	whole := runtime.Info{Name: "a", Type: runtime.Int64, Dims: []int64{-1}}
	text := runtime.Info{Name: "b", Type: runtime.String, Dims: []int64{-1, 1}}
	number := runtime.Info{Name: "c", Type: runtime.Float, Dims: []int64{-1, 1}}
	mapped := runtime.Info{Name: "d", Type: runtime.Float, Dims: []int64{-1, 2}, Labels: []string{"0", "1"}}
	other := runtime.Info{Name: "e", Type: runtime.Float, Dims: []int64{-1, 2}, Labels: []string{"2", "3"}}
	named := runtime.Info{Name: "Probabilities", Type: runtime.Double, Dims: []int64{-1, 2}}
	label := runtime.Info{Name: "the_label", Type: runtime.Int64, Dims: []int64{-1}}
	for name, c := range map[string]struct {
		outputs    []runtime.Info
		want       output
		unanswered bool
	}{
		"label first":            {[]runtime.Info{whole, mapped}, output{schema.Label, 0, 1}, false},
		"label second":           {[]runtime.Info{mapped, text}, output{schema.Label, 1, 0}, false},
		"names":                  {[]runtime.Info{named, label}, output{schema.Label, 1, 0}, false},
		"a text alone":           {[]runtime.Info{text}, output{schema.Label, 0, -1}, false},
		"a whole number alone":   {[]runtime.Info{whole}, output{schema.Value, 0, -1}, false},
		"a number":               {[]runtime.Info{number}, output{schema.Value, 0, -1}, false},
		"two labels, one named":  {[]runtime.Info{whole, label, mapped}, output{schema.Label, 1, 2}, true},
		"two classifiers":        {[]runtime.Info{label, mapped, text, other}, output{schema.Label, 0, 1}, true},
		"probabilities alone":    {[]runtime.Info{mapped}, output{schema.Value, -1, -1}, true},
		"a number and its error": {[]runtime.Info{number, mapped}, output{schema.Value, 0, -1}, true},
	} {
		got, err := findOutputs(&schema.Schema{}, c.outputs)
		var unanswered *unansweredError
		if got != c.want || errors.As(err, &unanswered) != c.unanswered {
			t.Errorf("%s: %+v, %v; want %+v, unanswered %v", name, got, err, c.want, c.unanswered)
		}
	}
}
