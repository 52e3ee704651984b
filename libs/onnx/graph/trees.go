package graph

import "github.com/mlp-platform/platform/libs/onnx/onnxpb"

// Trees collects the parallel arrays of a TreeEnsembleRegressor. A node sends a row to its true branch
// when the feature is at most the threshold, compared as float32 (BRANCH_LEQ). Scores of the reached
// leaves are summed per target, then the target's base value is added.
type Trees struct {
	treeIDs, nodeIDs, features, trueIDs, falseIDs []int64
	modes                                         [][]byte
	thresholds                                    []float32
	leafTrees, leafNodes, targets                 []int64
	weights                                       []float32
}

var (
	modeBranch = []byte("BRANCH_LEQ")
	modeLeaf   = []byte("LEAF")
)

// Branch adds an inner node. Nodes of a tree are numbered from 0, the root; trees come in order.
func (t *Trees) Branch(tree, node, feature int, threshold float32, ifTrue, ifFalse int) {
	t.node(tree, node, feature, threshold, ifTrue, ifFalse, modeBranch)
}

// Leaf adds a leaf; its scores follow by Score.
func (t *Trees) Leaf(tree, node int) { t.node(tree, node, 0, 0, 0, 0, modeLeaf) }

// Score gives the leaf a score for a target.
func (t *Trees) Score(tree, leaf, target int, weight float32) {
	t.leafTrees = append(t.leafTrees, int64(tree))
	t.leafNodes = append(t.leafNodes, int64(leaf))
	t.targets = append(t.targets, int64(target))
	t.weights = append(t.weights, weight)
}

func (t *Trees) node(tree, node, feature int, threshold float32, ifTrue, ifFalse int, mode []byte) {
	t.treeIDs = append(t.treeIDs, int64(tree))
	t.nodeIDs = append(t.nodeIDs, int64(node))
	t.features = append(t.features, int64(feature))
	t.thresholds = append(t.thresholds, threshold)
	t.trueIDs = append(t.trueIDs, int64(ifTrue))
	t.falseIDs = append(t.falseIDs, int64(ifFalse))
	t.modes = append(t.modes, mode)
}

// TreeEnsemble adds the trees as a TreeEnsembleRegressor with as many targets as base has values: from
// float [N,F] to float [N,len(base)].
func (b *Builder) TreeEnsemble(out, in string, t *Trees, base []float32) string {
	modes := newAttr("nodes_modes", onnxpb.AttributeProto_STRINGS)
	modes.proto.Strings = t.modes
	return b.MLNode("TreeEnsembleRegressor", out, []string{in},
		AttrString("aggregate_function", "SUM"),
		AttrFloats("base_values", base),
		AttrInt("n_targets", int64(len(base))),
		AttrInts("nodes_falsenodeids", t.falseIDs),
		AttrInts("nodes_featureids", t.features),
		modes,
		AttrInts("nodes_nodeids", t.nodeIDs),
		AttrInts("nodes_treeids", t.treeIDs),
		AttrInts("nodes_truenodeids", t.trueIDs),
		AttrFloats("nodes_values", t.thresholds),
		AttrString("post_transform", "NONE"),
		AttrInts("target_ids", t.targets),
		AttrInts("target_nodeids", t.leafNodes),
		AttrInts("target_treeids", t.leafTrees),
		AttrFloats("target_weights", t.weights),
	)
}
