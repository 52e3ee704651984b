package learn

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// forest is Breiman's random forest (2001): trees on bootstrap samples, each split chosen among a random
// part of the features; the estimate is the mean of the trees, class probabilities the mean of the
// leaves' class shares.
type forest struct {
	trees       int
	depth       int // 0: no limit
	minLeaf     int
	minSplit    int
	maxFeatures func(int) int
	bootstrap   bool
	balanced    bool // weigh classes by the inverse of their frequency
}

func forestSettings(h modelrepo.HyperValues, classes int) forest {
	return forest{
		trees: h.Int("n_estimators"), depth: h.Int("max_depth"), minLeaf: h.Int("min_samples_leaf"), minSplit: h.Int("min_samples_split"),
		maxFeatures: h.Share("max_features"), bootstrap: h.Bool("bootstrap"), balanced: classes > 0 && h.Word("class_weight") == "balanced",
	}
}

func (f forest) fit(ctx context.Context, s Spec, x Matrix, y []float64, progress func(float64)) (Model, error) {
	b := binColumns(x)
	e := &Ensemble{Features: x.Cols, Trees: make([]Tree, f.trees), Base: make([]float32, max(s.Classes, 1)), Classes: s.Classes}
	target := targets{classes: s.Classes, weight: make([]float64, x.Rows)}
	for i := range target.weight {
		target.weight[i] = 1
	}
	if s.Classes == 0 {
		target.y = y
	} else {
		target.class = make([]int32, x.Rows)
		for i, v := range y {
			target.class[i] = int32(v)
		}
		if f.balanced {
			balanceWeights(target.class, target.weight, s.Classes)
		}
	}
	var mu sync.Mutex // guards done, and progress
	done := 0
	runParallel(f.trees, func(i int) {
		if ctx.Err() != nil {
			return
		}
		g := newGrower(f, b, &target, rand.New(rand.NewPCG(uint64(s.Seed), uint64(i)+1)))
		e.Trees[i] = g.grow(1 / float64(f.trees))
		mu.Lock()
		defer mu.Unlock()
		done++
		progress(float64(done) / float64(f.trees))
	})
	return e, ctx.Err()
}

// balanceWeights weighs each row by rows / (classes · rows of its class), as scikit-learn's "balanced".
func balanceWeights(class []int32, weight []float64, classes int) {
	count := make([]float64, classes)
	for _, c := range class {
		count[c]++
	}
	for i, c := range class {
		weight[i] *= float64(len(class)) / (float64(classes) * count[c])
	}
}

// targets are the values a forest learns: y for numbers, else class.
type targets struct {
	classes int
	y       []float64
	class   []int32
	weight  []float64
}

// grower grows one tree, depth first. rows, and the slices parallel to it, are kept in node order, so that a node is a
// range of them and its sums read memory in sequence.
type grower struct {
	forest
	data   *binned
	target *targets
	rng    *rand.Rand
	tree   Tree

	rows   []int32
	count  []float64 // times each row was drawn
	weight []float64 // count · class weight
	value  []float64 // y
	class  []int32

	features []int32 // shuffled as far as each split needs
	tries    int
	spare    scratch
	hist     []float64 // per interval: weight, weight·deviation, count; or weight of each class, count
	codes    [maxBins]uint8
	slot     []int32   // where in hist each row of the node counts
	left     []float64 // weight of each class left of the cut
	total    []float64 // of each class in the node
	scale    float64   // of the leaf scores
}

// scratch holds the right half while a range is partitioned in place.
type scratch struct {
	rows, class          []int32
	count, weight, value []float64
}

func newGrower(f forest, b *binned, t *targets, rng *rand.Rand) *grower {
	g := &grower{forest: f, data: b, target: t, rng: rng, tries: f.maxFeatures(len(b.codes))}
	drawn := make([]float64, b.rows)
	if f.bootstrap {
		for range b.rows {
			drawn[rng.IntN(b.rows)]++
		}
	} else {
		for i := range drawn {
			drawn[i] = 1
		}
	}
	for i, n := range drawn {
		if n == 0 {
			continue
		}
		g.rows = append(g.rows, int32(i))
		g.count = append(g.count, n)
		g.weight = append(g.weight, n*t.weight[i])
		if t.classes == 0 {
			g.value = append(g.value, t.y[i])
		} else {
			g.class = append(g.class, t.class[i])
		}
	}
	n := len(g.rows)
	g.spare = scratch{rows: make([]int32, n), count: make([]float64, n), weight: make([]float64, n)}
	g.slot = make([]int32, n)
	width := 3
	if t.classes == 0 {
		g.spare.value = make([]float64, n)
		g.tree.Target = 0
	} else {
		g.spare.class = make([]int32, n)
		g.left, g.total = make([]float64, t.classes), make([]float64, t.classes)
		g.tree.Target = -1
		width = t.classes + 1
	}
	g.hist = make([]float64, maxBins*width)
	g.features = make([]int32, len(b.codes))
	for i := range g.features {
		g.features[i] = int32(i)
	}
	return g
}

// node is a range of rows waiting to be split.
type node struct {
	lo, hi, depth int
	id            int32
}

// split is the best cut found: rows with a code up to cut go left.
type split struct {
	feature int32
	cut     uint8
	gain    float64
}

func (g *grower) grow(scale float64) Tree {
	g.scale = scale
	g.tree.Nodes = append(g.tree.Nodes, Node{})
	stack := []node{{hi: len(g.rows)}}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		best, ok := g.bestSplit(n)
		if !ok {
			g.leaf(n)
			continue
		}
		mid := g.partition(n, best)
		left, right := int32(len(g.tree.Nodes)), int32(len(g.tree.Nodes)+1)
		g.tree.Nodes[n.id] = Node{Feature: best.feature, Threshold: g.data.cuts[best.feature][best.cut], Left: left, Right: right}
		g.tree.Nodes = append(g.tree.Nodes, Node{}, Node{})
		stack = append(stack, node{mid, n.hi, n.depth + 1, right}, node{n.lo, mid, n.depth + 1, left})
	}
	return g.tree
}

func (g *grower) leaf(n node) {
	width := 1
	if g.target.classes > 0 {
		width = g.target.classes
	}
	g.tree.Nodes[n.id] = Node{Feature: -1, Leaf: int32(len(g.tree.Scores) / width)}
	if g.target.classes == 0 {
		var sum, weight float64
		for i := n.lo; i < n.hi; i++ {
			sum += g.weight[i] * g.value[i]
			weight += g.weight[i]
		}
		g.tree.Scores = append(g.tree.Scores, float32(sum/weight*g.scale))
		return
	}
	weight := g.classWeights(n)
	for _, w := range g.total {
		g.tree.Scores = append(g.tree.Scores, float32(w/weight*g.scale))
	}
}

// classWeights fills total and returns its sum.
func (g *grower) classWeights(n node) float64 {
	clear(g.total)
	sum := 0.0
	for i := n.lo; i < n.hi; i++ {
		g.total[g.class[i]] += g.weight[i]
		sum += g.weight[i]
	}
	return sum
}

// bestSplit looks at random features until it has seen as many as it may that are not constant here.
func (g *grower) bestSplit(n node) (best split, ok bool) {
	rows := 0.0
	for _, c := range g.count[n.lo:n.hi] {
		rows += c
	}
	if g.depth > 0 && n.depth >= g.depth || rows < float64(max(g.minSplit, 2*g.minLeaf)) || n.hi-n.lo < 2 {
		return best, false
	}
	var mean, weight float64
	if g.target.classes == 0 {
		first, pure := g.value[n.lo], true
		for i := n.lo; i < n.hi; i++ {
			mean += g.weight[i] * g.value[i]
			weight += g.weight[i]
			pure = pure && g.value[i] == first
		}
		if pure {
			return best, false
		}
		mean /= weight
	} else {
		weight = g.classWeights(n)
		for _, w := range g.total {
			if w == weight {
				return best, false
			}
		}
	}
	left := g.tries
	for i := 0; i < len(g.features) && left > 0; i++ {
		j := i + g.rng.IntN(len(g.features)-i)
		g.features[i], g.features[j] = g.features[j], g.features[i]
		f := g.features[i]
		codes := g.data.codes[f]
		lo, hi := uint8(255), uint8(0)
		for _, r := range g.rows[n.lo:n.hi] {
			c := codes[r]
			lo, hi = min(lo, c), max(hi, c)
		}
		if lo == hi {
			continue
		}
		left--
		if g.target.classes == 0 {
			g.tryNumber(n, f, codes, int(lo), int(hi), mean, weight, rows, &best)
		} else {
			g.tryClasses(n, f, codes, int(lo), int(hi), weight, rows, &best)
		}
	}
	noise := 1e-12 * weight // of sums of class weights
	if g.target.classes == 0 {
		noise = 1e-26 * mean * mean * weight // of deviations, whose last bits are those of the mean
	}
	return best, best.gain > noise
}

// smallNode is the number of rows up to which sorting them is cheaper than going through all intervals.
const smallNode = 24

// cells makes a histogram of the feature in the node: width numbers for each interval, laid out in g.hist,
// its code in g.codes, and for each row of the node, the place of its interval in g.slot. In a small node
// only intervals with rows are there.
func (g *grower) cells(n node, codes []uint8, lo, hi, width int) (cells int) {
	rows := g.rows[n.lo:n.hi]
	if len(rows) > smallNode {
		for i, r := range rows {
			g.slot[i] = int32(int(codes[r])-lo) * int32(width)
		}
		cells = hi - lo + 1
		for b := range cells {
			g.codes[b] = uint8(lo + b)
		}
	} else {
		var order [smallNode]uint16 // code, then position
		for i, r := range rows {
			v := uint16(codes[r])<<8 | uint16(i)
			j := i
			for ; j > 0 && order[j-1] > v; j-- {
				order[j] = order[j-1]
			}
			order[j] = v
		}
		for i, v := range order[:len(rows)] {
			if c := uint8(v >> 8); i == 0 || c != g.codes[cells-1] {
				g.codes[cells] = c
				cells++
			}
			g.slot[v&255] = int32((cells - 1) * width)
		}
	}
	clear(g.hist[:cells*width])
	return cells
}

// tryNumber finds the cut of a feature that lowers the squared error most. Sums are of deviations from
// the node's mean: nothing cancels when y is far from zero.
func (g *grower) tryNumber(n node, f int32, codes []uint8, lo, hi int, mean, weight, rows float64, best *split) {
	cells := g.cells(n, codes, lo, hi, 3)
	h := g.hist[:cells*3]
	weights, values, counts := g.weight[n.lo:n.hi], g.value[n.lo:n.hi], g.count[n.lo:n.hi]
	for i, at := range g.slot[:n.hi-n.lo] {
		w := weights[i]
		cell := h[at : at+3 : at+3]
		cell[0] += w
		cell[1] += w * (values[i] - mean)
		cell[2] += counts[i]
	}
	// The gain of a cut is s²·W / (w·(W−w)), s and w summed over its left side; fractions are compared
	// without dividing.
	var wl, sl, cl float64
	minLeaf := float64(g.minLeaf)
	top, under, cut := best.gain, weight, -1
	for b := range cells - 1 {
		cell := h[b*3 : b*3+3 : b*3+3]
		if cell[2] == 0 {
			continue
		}
		wl, sl, cl = wl+cell[0], sl+cell[1], cl+cell[2]
		if cl < minLeaf {
			continue
		}
		if rows-cl < minLeaf {
			break
		}
		if d := wl * (weight - wl); sl*sl*under > top*d {
			top, under, cut = sl*sl, d, b
		}
	}
	if cut >= 0 {
		*best = split{f, g.codes[cut], top * weight / under}
	}
}

// tryClasses finds the cut of a feature that lowers the Gini impurity most.
func (g *grower) tryClasses(n node, f int32, codes []uint8, lo, hi int, weight, rows float64, best *split) {
	classes := g.target.classes
	width := classes + 1
	cells := g.cells(n, codes, lo, hi, width)
	h := g.hist[:cells*width]
	for i, at := range g.slot[:n.hi-n.lo] {
		h[int(at)+int(g.class[n.lo+i])] += g.weight[n.lo+i]
		h[int(at)+classes] += g.count[n.lo+i]
	}
	before := 0.0
	for k, w := range g.total {
		g.left[k] = 0
		before += w * w
	}
	before /= weight
	var wl, cl float64
	minLeaf := float64(g.minLeaf)
	for b := range cells - 1 {
		cell := h[b*width : (b+1)*width]
		if cell[classes] == 0 {
			continue
		}
		cl += cell[classes]
		var squaresLeft, squaresRight float64
		for k, w := range cell[:classes] {
			g.left[k] += w
			wl += w
			l, r := g.left[k], g.total[k]-g.left[k]
			squaresLeft += l * l
			squaresRight += r * r
		}
		if cl < minLeaf {
			continue
		}
		if rows-cl < minLeaf {
			break
		}
		if gain := squaresLeft/wl + squaresRight/(weight-wl) - before; gain > best.gain {
			*best = split{f, g.codes[b], gain}
		}
	}
}

// partition puts the rows that go left before the others, each side in its former order.
func (g *grower) partition(n node, s split) int {
	codes := g.data.codes[s.feature]
	l, r := n.lo, 0
	for i := n.lo; i < n.hi; i++ {
		row := g.rows[i]
		if codes[row] <= s.cut {
			g.rows[l], g.count[l], g.weight[l] = row, g.count[i], g.weight[i]
			if g.value != nil {
				g.value[l] = g.value[i]
			} else {
				g.class[l] = g.class[i]
			}
			l++
			continue
		}
		g.spare.rows[r], g.spare.count[r], g.spare.weight[r] = row, g.count[i], g.weight[i]
		if g.value != nil {
			g.spare.value[r] = g.value[i]
		} else {
			g.spare.class[r] = g.class[i]
		}
		r++
	}
	copy(g.rows[l:n.hi], g.spare.rows[:r])
	copy(g.count[l:n.hi], g.spare.count[:r])
	copy(g.weight[l:n.hi], g.spare.weight[:r])
	if g.value != nil {
		copy(g.value[l:n.hi], g.spare.value[:r])
	} else {
		copy(g.class[l:n.hi], g.spare.class[:r])
	}
	return l
}
