package runtime

import (
	"math"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
)

// carriers leave a missing value missing, in its own place or another.
var carriers = wordSet(`
	Identity Cast Concat Reshape Flatten Squeeze Unsqueeze Transpose Slice Split Gather Add Sub Mul Div
	ArrayFeatureExtractor FeatureVectorizer Scaler`)

// findMissing returns the inputs in which NaN is a missing value to the graph: they lead to an operator that has a rule for
// it. A model that others made need not say so elsewhere.
func findMissing(g *onnxpb.GraphProto, inputs []Info) map[string]bool {
	consumers := map[string][]*onnxpb.NodeProto{}
	for _, n := range g.Node {
		for _, in := range n.Input {
			consumers[in] = append(consumers[in], n)
		}
	}
	out := map[string]bool{}
	for _, in := range inputs {
		if in.Type != Float && in.Type != Double {
			continue
		}
		seen, pending := map[string]bool{in.Name: true}, []string{in.Name}
		for len(pending) > 0 && !out[in.Name] {
			name := pending[len(pending)-1]
			pending = pending[:len(pending)-1]
			for _, n := range consumers[name] {
				if hasMissingRule(n) {
					out[in.Name] = true
				}
				if !carriers[n.GetOpType()] {
					continue
				}
				for _, o := range n.Output {
					if !seen[o] {
						seen[o] = true
						pending = append(pending, o)
					}
				}
			}
		}
	}
	return out
}

func hasMissingRule(n *onnxpb.NodeProto) bool {
	switch n.GetOpType() {
	case "IsNaN":
		return true
	case "Imputer":
		for _, a := range n.Attribute {
			if a.GetName() == "replaced_value_float" {
				return math.IsNaN(float64(a.GetF()))
			}
		}
	case "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor":
		for _, a := range n.Attribute { // trees without a branch for them were trained without any
			if a.GetName() != "nodes_missing_value_tracks_true" {
				continue
			}
			for _, v := range a.Ints {
				if v != 0 {
					return true
				}
			}
		}
	}
	return false
}
