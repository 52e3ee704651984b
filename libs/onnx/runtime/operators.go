package runtime

import (
	"fmt"
	"strings"
	"sync"
)

// operators is the closed list of the operators of a graph, by domain. It has those that exports of scikit-learn
// (skl2onnx), XGBoost and LightGBM (onnxmltools), and PyTorch (perceptrons, convolutions, recurrent nets, transformers)
// use.
//
// Left out on purpose: Loop, which need not end; random numbers, with which the trial run would not predict later ones;
// Unique, whose result's size depends on a request's values; operators that make texts grow; sequences, maps, images
// and signals; and every domain that is not ONNX's own.
//
// It is made at its first use: mlp links this package too, and mostly ends within milliseconds without a graph.
var operators = sync.OnceValue(func() map[string]map[string]bool {
	return map[string]map[string]bool{"": wordSet(coreOperators), mlDomain: wordSet(mlOperators)}
})

const (
	mlDomain = "ai.onnx.ml"

	coreOperators = `
		Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization BitShift BitwiseAnd
		BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Compress Concat Constant ConstantOfShape Conv
		ConvTranspose Cos Cosh CumSum DepthToSpace DequantizeLinear Div Dropout DynamicQuantizeLinear Einsum Elu Equal
		Erf Exp Expand EyeLike Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool
		GlobalMaxPool Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish Hardmax Identity If
		InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax
		LpNormalization MatMul MatMulInteger Max MaxPool Mean MeanVarianceNormalization Min Mish Mod Mul Neg NonZero Not OneHot
		Or PRelu Pad Pow QLinearConv QLinearMatMul QuantizeLinear RMSNormalization RNN Range Reciprocal ReduceL1
		ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu
		Reshape Round Scan ScatterElements ScatterND Selu Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax Softplus
		Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Swish Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu
		Unsqueeze Where Xor`
	mlOperators = `
		ArrayFeatureExtractor Binarizer CategoryMapper FeatureVectorizer Imputer LabelEncoder LinearClassifier
		LinearRegressor Normalizer OneHotEncoder SVMClassifier SVMRegressor Scaler TreeEnsemble
		TreeEnsembleClassifier TreeEnsembleRegressor ZipMap`
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// canonicalDomain is the domain under its short name: ONNX's own has two.
func canonicalDomain(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

// checkOperator refuses operators that are not on the list.
func checkOperator(domain, op string) error {
	list, ok := operators()[canonicalDomain(domain)]
	switch {
	case !ok:
		return fmt.Errorf("operators of the domain %q are not served; export with ONNX's own operators", shorten(domain))
	case !list[op]:
		return fmt.Errorf("the operator %s is not served; docs/inference.md lists those that are", shorten(op))
	}
	return nil
}

// sizeOperands are the inputs of an operator that decide how large its results are, how long it takes, or whether it
// computes at all.
var sizeOperands = map[string][]int{
	"Compress": {1}, "ConstantOfShape": {0}, "NonZero": {0}, "Expand": {1}, "If": {0}, "OneHot": {1}, "Pad": {1, 3}, "Range": {0, 1, 2}, "Reshape": {1},
	"Slice": {1, 2, 3, 4}, "Split": {1}, "Squeeze": {1}, "Tile": {1}, "TopK": {1}, "Unsqueeze": {1},
	"GRU": {4}, "LSTM": {4}, "RNN": {4},
	"ReduceL1": {1}, "ReduceL2": {1}, "ReduceLogSum": {1}, "ReduceLogSumExp": {1}, "ReduceMax": {1}, "ReduceMean": {1},
	"ReduceMin": {1}, "ReduceProd": {1}, "ReduceSum": {1}, "ReduceSumSquare": {1},
}

// maxQuoted limits a quote of a model's own text in an error.
const maxQuoted = 80

// shorten is text that a model's author chose, fit for an error.
func shorten(s string) string {
	if len(s) > maxQuoted {
		s = s[:maxQuoted] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
