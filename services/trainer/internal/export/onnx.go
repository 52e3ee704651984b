package export

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/libs/onnx/graph"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
	"github.com/mlp-platform/platform/services/trainer/internal/learn"
)

// Names of the graph's outputs.
const (
	Prediction    = "prediction"    // float [N,1], regression
	Label         = "label"         // string or int64 [N], classification
	Probabilities = "probabilities" // float [N,C], classification
)

// encodeModel builds the graph. Values inside have names with an underscore, which keeps them off the columns'.
func encodeModel(meta Meta, p *Pipeline, m learn.Model, target frame.Target) ([]byte, error) {
	b := graph.New(meta.Model, producer, producerVersion)
	b.Describe(fmt.Sprintf("%s on %s: %s of %s", meta.Model, meta.Dataset, taskOf(target), target.Name))
	b.Meta("model", meta.Model)
	b.Meta("dataset", meta.Dataset)
	b.Meta("estimator", meta.Estimator)
	b.Meta("seed", strconv.FormatInt(meta.Seed, 10))
	if m, ok := m.(*learn.Isolation); ok {
		return encodeIsolation(b, p, m, target)
	}
	score, outputs, softmax, err := addModel(b, p.encode(b), p.cols, m)
	if err != nil {
		return nil, err
	}
	if !target.Class {
		if outputs != 1 {
			return nil, fmt.Errorf("a model with %d outputs cannot predict the number %q", outputs, target.Name)
		}
		switch target.Transform {
		case modelrepo.TransformLog1p:
			one := b.Floats("_one", []float32{1})
			score = b.Node("Sub", "_expm1", []string{b.Node("Exp", "_exp", []string{score}), one})
		case modelrepo.TransformNone, "":
		default:
			return nil, fmt.Errorf("target transform %q is unknown; known are none and log1p", target.Transform)
		}
		b.Node("Identity", Prediction, []string{score})
		b.Output(Prediction, graph.Float, -1, 1)
		return b.Bytes()
	}
	if outputs != len(target.Labels) {
		return nil, fmt.Errorf("a model of %d classes cannot predict %d labels", outputs, len(target.Labels))
	}
	if softmax {
		b.Node("Softmax", Probabilities, []string{score}, graph.AttrInt("axis", 1))
	} else {
		b.Node("Identity", Probabilities, []string{score})
	}
	class := b.Node("ArgMax", "_class", []string{score}, graph.AttrInt("axis", 1), graph.AttrInt("keepdims", 0))
	addLabels(b, target, class)
	b.Output(Probabilities, graph.Float, -1, int64(outputs))
	return b.Bytes()
}

// addLabels names the classes, int64 [N].
func addLabels(b *graph.Builder, target frame.Target, class string) {
	if ints, ok := wholeLabels(target.Labels); ok {
		b.Node("Gather", Label, []string{b.Int64s("_labels", ints), class})
		b.Output(Label, graph.Int64, -1)
	} else {
		b.Node("Gather", Label, []string{b.Strings("_labels", target.Labels), class})
		b.Output(Label, graph.String, -1)
	}
}

// encodeIsolation adds the score 2^(-depth/c) as the probability of the second label, which is answered from the
// threshold on.
func encodeIsolation(b *graph.Builder, p *Pipeline, m *learn.Isolation, target frame.Target) ([]byte, error) {
	if len(target.Labels) != 2 {
		return nil, fmt.Errorf("a model of anomalies cannot predict %d labels", len(target.Labels))
	}
	depth, _, _, err := addModel(b, p.encode(b), p.cols, &m.Depths)
	if err != nil {
		return nil, err
	}
	exponent := b.Node("Mul", "_exponent", []string{depth, b.Floats("_scale", []float32{float32(-math.Ln2 / m.Scale)})})
	score := b.Node("Exp", "_anomaly", []string{exponent})
	rest := b.Node("Sub", "_rest", []string{b.Floats("_one", []float32{1}), score})
	b.Node("Concat", Probabilities, []string{rest, score}, graph.AttrInt("axis", 1))
	above := b.Node("GreaterOrEqual", "_above", []string{score, b.Floats("_threshold", []float32{m.Threshold})})
	const int64Type = 7 // TensorProto.INT64
	class := b.Node("Squeeze", "_class", []string{b.Node("Cast", "_index", []string{above}, graph.AttrInt("to", int64Type)), b.Int64s("_axis", []int64{1})})
	addLabels(b, target, class)
	b.Output(Probabilities, graph.Float, -1, 2)
	return b.Bytes()
}

// wholeLabels is the labels as numbers if each is written as one.
func wholeLabels(labels []string) ([]int64, bool) {
	out := make([]int64, len(labels))
	for i, l := range labels {
		n, err := strconv.ParseInt(l, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != l {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// encode adds the inputs and the transforms and returns the name of the matrix, float [N,cols].
func (p *Pipeline) encode(b *graph.Builder) string {
	for _, f := range p.features {
		switch f.Kind {
		case modelrepo.Category:
			b.Input(f.Column, graph.String, -1, 1)
		default:
			b.Input(f.Column, graph.Float, -1, int64(f.width()))
		}
	}
	var parts, logs []string
	var offset, scale []float32
	standardized := false
	logAt := -1
	for n, i := range p.order {
		f := &p.features[i]
		part := f.Column
		switch f.Transform {
		case modelrepo.TransformLog1p:
			logs = append(logs, part)
			if logAt < 0 {
				logAt = len(parts)
				parts = append(parts, "") // filled when all of them are known
			}
		case modelrepo.TransformOrdinal:
			codes := make([]float32, len(f.categories))
			for i := range codes {
				codes[i] = float32(i)
			}
			part = b.MLNode("LabelEncoder", fmt.Sprintf("_ordinal_%d", n), []string{part},
				graph.AttrStrings("keys_strings", f.categories), graph.AttrFloats("values_floats", codes),
				graph.AttrFloat("default_float", unknownOrdinal))
			parts = append(parts, part)
		case modelrepo.TransformOneHot:
			part = b.MLNode("OneHotEncoder", fmt.Sprintf("_onehot_%d", n), []string{part},
				graph.AttrStrings("cats_strings", f.categories), graph.AttrInt("zeros", 1))
			parts = append(parts, b.Node("Flatten", fmt.Sprintf("_flat_%d", n), []string{part}, graph.AttrInt("axis", 1)))
		default:
			parts = append(parts, part)
		}
		if f.Transform == modelrepo.TransformStandardize {
			standardized = true
			offset, scale = append(offset, f.offset...), append(scale, f.scale...)
			continue
		}
		offset = append(offset, make([]float32, f.width())...)
		scale = append(scale, slices.Repeat([]float32{1}, f.width())...)
	}
	if logAt >= 0 {
		sum := b.Node("Add", "_log_add", []string{concatNodes(b, "_log_in", logs), b.Floats("_log_one", []float32{1})})
		parts[logAt] = b.Node("Log", "_log", []string{sum})
	}
	matrix := concatNodes(b, "_features", parts)
	if standardized {
		matrix = b.MLNode("Scaler", "_scaled", []string{matrix}, graph.AttrFloats("offset", offset), graph.AttrFloats("scale", scale))
	}
	return matrix
}

func concatNodes(b *graph.Builder, name string, parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	return b.Node("Concat", name, parts, graph.AttrInt("axis", 1))
}

// addModel adds the fitted model and returns its scores, float [N,outputs].
func addModel(b *graph.Builder, matrix string, cols int, m learn.Model) (score string, outputs int, softmax bool, err error) {
	switch m := m.(type) {
	case *learn.Ensemble:
		if m.Features != cols {
			return "", 0, false, fmt.Errorf("the model was fitted on %d features, the transforms make %d", m.Features, cols)
		}
		return b.TreeEnsemble("_score", matrix, graphTrees(m), m.Base), len(m.Base), m.Softmax, nil
	case *learn.Linear:
		if m.Features != cols {
			return "", 0, false, fmt.Errorf("the model was fitted on %d features, the transforms make %d", m.Features, cols)
		}
		score = b.MLNode("LinearRegressor", "_score", []string{matrix}, graph.AttrFloats("coefficients", m.Coef),
			graph.AttrFloats("intercepts", m.Intercept), graph.AttrInt("targets", int64(len(m.Intercept))))
		return score, len(m.Intercept), m.Classes > 0, nil
	}
	return "", 0, false, fmt.Errorf("a %T cannot be exported", m)
}

func graphTrees(e *learn.Ensemble) *graph.Trees {
	var out graph.Trees
	for i := range e.Trees {
		t := &e.Trees[i]
		for j, n := range t.Nodes {
			if n.Feature >= 0 {
				out.Branch(i, j, int(n.Feature), n.Threshold, int(n.Left), int(n.Right))
				continue
			}
			out.Leaf(i, j)
			if t.Target >= 0 {
				out.Score(i, j, t.Target, t.Scores[n.Leaf])
				continue
			}
			width := len(e.Base)
			for k, s := range t.Scores[int(n.Leaf)*width:][:width] {
				if s != 0 { // forests have mostly pure leaves
					out.Score(i, j, k, s)
				}
			}
		}
	}
	return &out
}

// toRawUnits converts the learner's prediction to raw units.
func toRawUnits(target frame.Target, v float64) float64 {
	if target.Transform == modelrepo.TransformLog1p {
		return math.Expm1(v)
	}
	return v
}
