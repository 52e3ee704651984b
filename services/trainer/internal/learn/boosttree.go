package learn

import "math"

// cell sums the rows of one interval of a feature.
type cell struct{ grad, hess, rows float64 }

// minHessian is the least curvature on each side of a split; below it a Newton step is noise.
const minHessian = 1e-3

// parallelWork is the number of row and feature pairs below which goroutines cost more than they save.
const parallelWork = 1 << 15

// histogram sums the rows of a node by the intervals of one column. Its length is fixed, so that a code needs no check
// of bounds.
type histogram [maxBins]cell

// leafNode is a range of rows that may be split further.
type leafNode struct {
	lo, hi, depth int
	id            int32
	sum           cell
	hist          []histogram // by column
	best          boostSplit
}

type boostSplit struct {
	col  int // index into cols
	cut  uint8
	gain float64
	left cell
}

// workspace is memory that one tree after the other uses.
type workspace struct {
	rows     []int32   // of the tree, those of a node one after the other
	nodeGrad []float64 // of rows, in their order
	nodeHess []float64 // nil: 1 for every row
	spare    []int32
	free     [][]histogram
}

func (w *workspace) reset(rows []int32, hess bool) {
	if len(w.spare) != len(rows) { // the same for all trees of a fit
		*w = workspace{rows: make([]int32, len(rows)), nodeGrad: make([]float64, len(rows)), spare: make([]int32, len(rows))}
		if hess {
			w.nodeHess = make([]float64, len(rows))
		}
	}
	copy(w.rows, rows)
}

// boostTree grows one tree on one output's gradients.
type boostTree struct {
	*run
	*workspace
	k       int
	cols    []int32
	found   [2][]boostSplit // best per column of the two nodes at work
	minGain float64
	tree    Tree
	cuts    []uint8 // of each node
}

// tree grows a tree for output k and adds its scores to raw.
func (r *run) tree(k int, rows, cols []int32) Tree {
	r.work.reset(rows, r.hess != nil)
	t := &boostTree{run: r, workspace: &r.work, k: k, cols: cols}
	t.found = [2][]boostSplit{make([]boostSplit, len(cols)), make([]boostSplit, len(cols))}
	t.grow()
	if len(rows) == len(r.y) {
		return t.tree
	}
	inside := make([]bool, len(r.y))
	for _, row := range rows {
		inside[row] = true
	}
	raw := r.raw[k]
	for row := range raw { // rows of the sample got their scores leaf by leaf
		if !inside[row] {
			raw[row] += float64(t.tree.Scores[t.leafOf(row)])
		}
	}
	return t.tree
}

func (t *boostTree) leafOf(row int) int32 {
	id := int32(0)
	for {
		n := &t.tree.Nodes[id]
		if n.Feature < 0 {
			return n.Leaf
		}
		if t.data.codes[n.Feature][row] <= t.cuts[id] {
			id = n.Left
		} else {
			id = n.Right
		}
	}
}

func (t *boostTree) grow() {
	t.add()
	root := &leafNode{hi: len(t.rows), hist: t.histograms()}
	t.gather(root)
	squares := 0.0
	for i, g := range t.nodeGrad {
		h := 1.0
		if t.nodeHess != nil {
			h = t.nodeHess[i]
		}
		root.sum.grad += g
		root.sum.hess += h
		squares += g * g
	}
	root.sum.rows = float64(len(t.rows))
	t.minGain = 1e-10 * squares / math.Max(root.sum.hess, 1e-300) // below it is rounding
	t.each(len(t.rows), func(c int) {
		t.fill(root, c)
		t.scan(root, c, t.found[0])
	})
	t.choose(root, t.found[0])
	open := []*leafNode{root}
	leaves := 1
	for len(open) > 0 {
		at := len(open) - 1
		if t.leaves > 0 { // the best leaf first, since there may be no room for all
			for i, n := range open {
				if n.best.gain > open[at].best.gain {
					at = i
				}
			}
		}
		n := open[at]
		open = append(open[:at], open[at+1:]...)
		if n.best.gain <= t.minGain || t.leaves > 0 && leaves >= t.leaves {
			t.finish(n)
			continue
		}
		left, right := t.split(n)
		leaves++
		open = append(open, right, left)
	}
}

func (t *boostTree) add() int32 {
	t.tree.Nodes = append(t.tree.Nodes, Node{})
	t.cuts = append(t.cuts, 0)
	return int32(len(t.tree.Nodes) - 1)
}

// split makes the node's two children and finds their best splits. Only the smaller child's histogram is
// summed from rows; the other's is the difference to the parent's.
func (t *boostTree) split(n *leafNode) (left, right *leafNode) {
	f := t.cols[n.best.col]
	mid := t.partition(n, t.data.codes[f], n.best.cut)
	left = &leafNode{lo: n.lo, hi: mid, depth: n.depth + 1, id: t.add(), sum: n.best.left}
	right = &leafNode{lo: mid, hi: n.hi, depth: n.depth + 1, id: t.add(), sum: cell{
		n.sum.grad - n.best.left.grad, n.sum.hess - n.best.left.hess, n.sum.rows - n.best.left.rows,
	}}
	t.tree.Nodes[n.id] = Node{Feature: f, Threshold: t.data.cuts[f][n.best.cut], Left: left.id, Right: right.id}
	t.cuts[n.id] = n.best.cut
	if !t.splittable(left) && !t.splittable(right) {
		t.release(n)
		return left, right
	}
	small, large := left, right
	if right.hi-right.lo < left.hi-left.lo {
		small, large = right, left
	}
	small.hist, large.hist = t.histograms(), n.hist
	n.hist = nil
	t.gather(small)
	t.each(small.hi-small.lo, func(c int) {
		t.fill(small, c)
		s, l := &small.hist[c], &large.hist[c]
		for i := range t.intervals(c) {
			l[i].grad -= s[i].grad
			l[i].hess -= s[i].hess
			l[i].rows -= s[i].rows
		}
		t.scan(small, c, t.found[0])
		t.scan(large, c, t.found[1])
	})
	t.choose(small, t.found[0])
	t.choose(large, t.found[1])
	return left, right
}

func (t *boostTree) splittable(n *leafNode) bool {
	return (t.depth == 0 || n.depth < t.depth) && n.sum.rows >= float64(2*t.minLeaf)
}

// each does the columns, at once when there is enough to do. Every column is summed by one goroutine, so
// the result does not depend on how many there are.
func (t *boostTree) each(rows int, do func(c int)) {
	if (rows+2*maxBins)*len(t.cols) >= parallelWork {
		runParallel(len(t.cols), do)
		return
	}
	for c := range t.cols {
		do(c)
	}
}

// gather puts the gradients of the node's rows in their order.
func (t *boostTree) gather(n *leafNode) {
	g := t.run.grad[t.k]
	for i, row := range t.rows[n.lo:n.hi] {
		t.nodeGrad[n.lo+i] = g[row]
	}
	if t.nodeHess == nil {
		return
	}
	h := t.run.hess[t.k]
	for i, row := range t.rows[n.lo:n.hi] {
		t.nodeHess[n.lo+i] = h[row]
	}
}

// fill sums the node's rows into the histogram of a column.
func (t *boostTree) fill(n *leafNode, c int) {
	hist := &n.hist[c]
	*hist = histogram{}
	codes, rows := t.data.codes[t.cols[c]], t.rows[n.lo:n.hi]
	grad := t.nodeGrad[n.lo:n.hi][:len(rows)]
	if t.nodeHess == nil {
		if len(rows) == len(codes) { // the root of a tree on all rows: they are in order
			for i, code := range codes {
				h := &hist[code]
				h.grad += grad[i]
				h.rows++
			}
		} else {
			for i, row := range rows {
				h := &hist[codes[row]]
				h.grad += grad[i]
				h.rows++
			}
		}
		for i := range hist {
			hist[i].hess = hist[i].rows
		}
		return
	}
	hess := t.nodeHess[n.lo:n.hi][:len(rows)]
	for i, row := range rows {
		h := &hist[codes[row]]
		h.grad += grad[i]
		h.hess += hess[i]
		h.rows++
	}
}

// scan finds the best cut of a column.
func (t *boostTree) scan(n *leafNode, c int, found []boostSplit) {
	best := boostSplit{col: c}
	if t.splittable(n) {
		hist := n.hist[c][:t.intervals(c)]
		minLeaf := float64(t.minLeaf)
		before := n.sum.grad * n.sum.grad / (n.sum.hess + t.l2)
		var l cell
		for b := range len(hist) - 1 {
			h := hist[b]
			if h.rows == 0 {
				continue
			}
			l.grad += h.grad
			l.hess += h.hess
			l.rows += h.rows
			if l.rows < minLeaf || l.hess < minHessian {
				continue
			}
			rg, rh := n.sum.grad-l.grad, n.sum.hess-l.hess
			if n.sum.rows-l.rows < minLeaf || rh < minHessian {
				break
			}
			if gain := l.grad*l.grad/(l.hess+t.l2) + rg*rg/(rh+t.l2) - before; gain > best.gain {
				best.cut, best.gain, best.left = uint8(b), gain, l
			}
		}
	}
	found[c] = best
}

// choose takes the best column, the first of equal ones.
func (t *boostTree) choose(n *leafNode, found []boostSplit) {
	for _, s := range found {
		if s.gain > n.best.gain {
			n.best = s
		}
	}
}

// finish makes the node a leaf and adds its score to its rows.
func (t *boostTree) finish(n *leafNode) {
	var step float64
	raw := t.raw[t.k]
	if t.loss == "absolute_error" {
		residuals := make([]float64, 0, n.hi-n.lo)
		for _, row := range t.rows[n.lo:n.hi] {
			residuals = append(residuals, t.y[row]-raw[row])
		}
		step = medianOf(residuals)
	} else {
		step = -n.sum.grad / math.Max(n.sum.hess+t.l2, 1e-12)
	}
	score := float32(step * t.rate)
	t.tree.Nodes[n.id] = Node{Feature: -1, Leaf: int32(len(t.tree.Scores))}
	t.tree.Scores = append(t.tree.Scores, score)
	for _, row := range t.rows[n.lo:n.hi] {
		raw[row] += float64(score)
	}
	t.release(n)
}

// partition puts the rows that go left first, each side in its order. Every row is written to both sides and counted on
// one: which one it is cannot be guessed, and a wrong guess costs the processor more than a write.
func (t *boostTree) partition(n *leafNode, codes []uint8, cut uint8) int {
	rows := t.rows[n.lo:n.hi]
	spare := t.spare[:len(rows)]
	l, r := 0, 0
	for _, row := range rows {
		right := int((uint32(cut) - uint32(codes[row])) >> 31)
		rows[l] = row // l is at most the place that was just read
		spare[r] = row
		l += 1 - right
		r += right
	}
	copy(rows[l:], spare[:r])
	return n.lo + l
}

// intervals of the column.
func (t *boostTree) intervals(c int) int { return len(t.data.cuts[t.cols[c]]) + 1 }

func (t *boostTree) histograms() []histogram {
	if n := len(t.free); n > 0 {
		h := t.free[n-1]
		t.free = t.free[:n-1]
		return h
	}
	return make([]histogram, len(t.cols))
}

func (t *boostTree) release(n *leafNode) {
	if n.hist != nil {
		t.free = append(t.free, n.hist)
		n.hist = nil
	}
}
