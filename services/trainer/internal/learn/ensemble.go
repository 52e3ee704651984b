package learn

import "math"

// Node of a Tree. A row goes to Left when its feature is at most the threshold.
type Node struct {
	Feature     int32 // −1: a leaf
	Threshold   float32
	Left, Right int32
	Leaf        int32 // index of the leaf's scores
}

// Tree holds its nodes, the root first.
type Tree struct {
	Nodes  []Node
	Target int       // the output its scores go to; −1: each leaf has a score for every output
	Scores []float32 // one, or one per output, for each leaf
}

// Ensemble is a sum of trees. Its outputs are one number, or one score per class.
type Ensemble struct {
	Features int
	Base     []float32 // start value of each output
	Trees    []Tree
	Classes  int  // 0: regression
	Softmax  bool // class scores are logits, not probabilities
}

func (t *Tree) leaf(x []float32) int32 {
	n := &t.Nodes[0]
	for n.Feature >= 0 {
		if x[n.Feature] <= n.Threshold {
			n = &t.Nodes[n.Left]
		} else {
			n = &t.Nodes[n.Right]
		}
	}
	return n.Leaf
}

// raw fills out with the summed scores.
func (e *Ensemble) raw(x []float32, out []float64) {
	for k, b := range e.Base {
		out[k] = float64(b)
	}
	width := len(e.Base)
	for i := range e.Trees {
		t := &e.Trees[i]
		leaf := int(t.leaf(x))
		if t.Target >= 0 {
			out[t.Target] += float64(t.Scores[leaf])
			continue
		}
		for k, s := range t.Scores[leaf*width : (leaf+1)*width] {
			out[k] += float64(s)
		}
	}
}

// Predict implements Model.
func (e *Ensemble) Predict(x []float32) float64 {
	var buf [16]float64
	out := buf[:]
	if len(e.Base) > len(buf) {
		out = make([]float64, len(e.Base))
	}
	out = out[:len(e.Base)]
	e.raw(x, out)
	if e.Classes == 0 {
		return out[0]
	}
	return float64(argMax(out))
}

// Proba implements Model.
func (e *Ensemble) Proba(x []float32, out []float64) {
	e.raw(x, out)
	if e.Softmax {
		softmaxInPlace(out)
	}
}

func argMax(v []float64) int {
	best := 0
	for k := range v {
		if v[k] > v[best] {
			best = k
		}
	}
	return best
}

// softmaxInPlace turns logits into probabilities in place.
func softmaxInPlace(v []float64) {
	top := v[argMax(v)]
	sum := 0.0
	for k := range v {
		v[k] = math.Exp(v[k] - top)
		sum += v[k]
	}
	for k := range v {
		v[k] /= sum
	}
}
