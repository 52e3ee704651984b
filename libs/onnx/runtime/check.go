package runtime

import (
	"errors"
	"fmt"

	"github.com/mlp-platform/platform/libs/onnx/onnxpb"
)

// attrs reads a node's attributes by name.
type attrs map[string]*onnxpb.AttributeProto

func (a attrs) count(name string) int64 {
	x := a[name]
	return int64(max(len(x.GetFloats()), len(x.GetInts()), len(x.GetStrings())))
}

// within refuses a number of the list outside [0, limit).
func (a attrs) within(name string, limit int64) error {
	for _, v := range a[name].GetInts() {
		if v < 0 || v >= limit {
			return fmt.Errorf("%s has %d, allowed are 0 to %d", name, v, limit-1)
		}
	}
	return nil
}

// maxWidth limits feature and target numbers; ONNX Runtime keeps features in 31 bits.
const maxWidth = 1 << 31

// checkAttributes refuses attributes that the library does not check: a tree that reads feature −1, or a linear model
// with fewer coefficients than it announces, makes it read outside its memory and crashes the process.
func checkAttributes(n *onnxpb.NodeProto, widths map[string]int64) error {
	if n.GetDomain() != mlDomain {
		return nil
	}
	a := make(attrs, len(n.Attribute))
	for _, x := range n.Attribute {
		a[x.GetName()] = x
	}
	classes := max(a.count("classlabels_int64s"), a.count("classlabels_strings"), a.count("classlabels_ints"))
	switch n.GetOpType() {
	case "TreeEnsembleRegressor":
		return errors.Join(a.within("nodes_featureids", maxWidth), a.within("target_ids", orDefaultOne(a["n_targets"].GetI())), checkTrees(a))
	case "TreeEnsembleClassifier":
		return errors.Join(a.within("nodes_featureids", maxWidth), a.within("class_ids", orDefaultOne(classes)), checkTrees(a))
	case "TreeEnsemble": // its leaf weights are a tensor; target numbers are all that is indexed
		return errors.Join(a.within("nodes_featureids", maxWidth), a.within("leaf_targetids", orDefaultOne(a["n_targets"].GetI())), checkTreeEnsemble(a))
	case "LinearRegressor":
		return a.linear(orDefaultOne(a["targets"].GetI()), inputWidth(n, widths))
	case "LinearClassifier":
		return a.linear(max(a.count("intercepts"), 1), inputWidth(n, widths))
	case "SVMRegressor":
		supports := a["n_supports"].GetI()
		if supports < 0 || supports > a.count("coefficients") || supports > 0 && a.count("support_vectors")%supports != 0 {
			return fmt.Errorf("n_supports is %d, with %d coefficients and %d numbers in the vectors", supports, a.count("coefficients"), a.count("support_vectors"))
		}
	case "SVMClassifier":
		var supports int64
		for _, v := range a["vectors_per_class"].GetInts() {
			if v < 0 || v > maxWidth {
				return fmt.Errorf("vectors_per_class has %d", v)
			}
			supports += v
		}
		if supports > 0 && (a.count("support_vectors")%supports != 0 || a.count("coefficients") < supports*max(classes-1, 1)) {
			return fmt.Errorf("vectors_per_class announces %d vectors; coefficients or support_vectors do not fit", supports)
		}
	}
	return nil
}

// orDefaultOne is v, or the attribute's default of 1 when it is absent.
func orDefaultOne(v int64) int64 {
	if v == 0 {
		return 1
	}
	return v
}

// inputWidth is the number of columns of the node's input when the graph declares it, else 0.
func inputWidth(n *onnxpb.NodeProto, widths map[string]int64) int64 {
	if len(n.Input) == 0 {
		return 0
	}
	return widths[n.Input[0]]
}

func (a attrs) linear(targets, features int64) error {
	coefs := a.count("coefficients")
	if targets < 1 || targets > maxWidth || coefs%targets != 0 || features > 0 && coefs != targets*features {
		return fmt.Errorf("%d coefficients do not make %d targets of %d features", coefs, targets, features)
	}
	if n := a.count("intercepts"); n != 0 && n != targets {
		return fmt.Errorf("%d intercepts for %d targets", n, targets)
	}
	return nil
}
