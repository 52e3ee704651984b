package learn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// isolation is the isolation forest of Liu, Ting and Zhou (2008): trees of random cuts on small samples, in which rows
// that are unlike the others end up alone after few cuts. Labels are not learned from; they only judge the result.
type isolation struct {
	trees         int
	samples       int
	contamination float64
}

func isolationSettings(h modelrepo.HyperValues) isolation {
	return isolation{trees: h.Int("n_estimators"), samples: h.Int("max_samples"), contamination: h.Float("contamination")}
}

// Isolation scores rows by 2^(−E[h]/c(n)): near 1 for rows that are unlike the others, below 0.5 for common ones.
type Isolation struct {
	// Depths is the mean length of the paths, a sum of trees with one output.
	Depths Ensemble
	// Scale is c(n), the mean length of a path among n rows.
	Scale float64
	// Threshold is the lowest score of an anomaly.
	Threshold float32
}

// Score is how much unlike the others a row is.
func (m *Isolation) Score(x []float32) float64 { return math.Exp2(-m.Depths.Predict(x) / m.Scale) }

// Predict implements Model: 1 for an anomaly, else 0.
func (m *Isolation) Predict(x []float32) float64 {
	if float32(m.Score(x)) >= m.Threshold {
		return 1
	}
	return 0
}

// Proba implements Model. The score is not a probability, but takes the place of the anomaly's.
func (m *Isolation) Proba(x []float32, out []float64) {
	s := m.Score(x)
	out[0], out[1] = 1-s, s
}

// meanPath is the mean length of an unsuccessful search in a binary tree of n rows.
func meanPath(n int) float64 {
	switch {
	case n < 2:
		return 0
	case n == 2:
		return 1
	}
	const euler = 0.57721566490153286
	return 2*(math.Log(float64(n-1))+euler) - 2*float64(n-1)/float64(n)
}

func (f isolation) fit(ctx context.Context, s Spec, x Matrix, progress func(float64)) (Model, error) {
	samples := min(f.samples, x.Rows)
	if samples < 2 {
		return nil, fmt.Errorf("%d rows are too few to isolate any", x.Rows)
	}
	m := &Isolation{Depths: Ensemble{Features: x.Cols, Base: make([]float32, 1), Trees: make([]Tree, f.trees)}, Scale: meanPath(samples)}
	limit := int(math.Ceil(math.Log2(float64(samples))))
	var mu sync.Mutex // guards done, and progress
	done := 0
	runParallel(f.trees, func(i int) {
		if ctx.Err() != nil {
			return
		}
		g := isolator{x: x, rng: rand.New(rand.NewPCG(uint64(s.Seed), uint64(i)+1)), limit: limit, scale: 1 / float64(f.trees)}
		m.Depths.Trees[i] = g.grow(samples)
		mu.Lock()
		defer mu.Unlock()
		done++
		progress(0.9 * float64(done) / float64(f.trees))
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	scores := make([]float64, x.Rows)
	runParallel(x.Rows, func(i int) { scores[i] = m.Score(x.Row(i)) })
	slices.Sort(scores)
	// The share of the rows that reach the threshold is the contamination; between two rows it is in the middle.
	at := (1 - f.contamination) * float64(len(scores)-1)
	low := int(at)
	high := min(low+1, len(scores)-1)
	m.Threshold = float32(scores[low] + (at-float64(low))*(scores[high]-scores[low]))
	return m, nil
}

// isolator grows one tree.
type isolator struct {
	x     Matrix
	rng   *rand.Rand
	tree  Tree
	limit int
	scale float64
}

func (g *isolator) grow(samples int) Tree {
	rows := make([]int32, g.x.Rows)
	for i := range rows {
		rows[i] = int32(i)
	}
	for i := range samples { // the first of a shuffle
		j := i + g.rng.IntN(len(rows)-i)
		rows[i], rows[j] = rows[j], rows[i]
	}
	g.split(slices.Clone(rows[:samples]), 0)
	return g.tree
}

// split adds the node of the rows and those below it, and returns its index.
func (g *isolator) split(rows []int32, depth int) int32 {
	id := int32(len(g.tree.Nodes))
	g.tree.Nodes = append(g.tree.Nodes, Node{Feature: -1})
	feature, threshold, ok := g.cut(rows, depth)
	if !ok {
		g.tree.Nodes[id].Leaf = int32(len(g.tree.Scores))
		g.tree.Scores = append(g.tree.Scores, float32((float64(depth)+meanPath(len(rows)))*g.scale))
		return id
	}
	mid := 0
	for i, r := range rows {
		if g.x.Data[int(r)*g.x.Cols+feature] <= threshold {
			rows[i], rows[mid] = rows[mid], rows[i]
			mid++
		}
	}
	left := g.split(rows[:mid], depth+1)
	right := g.split(rows[mid:], depth+1)
	g.tree.Nodes[id] = Node{Feature: int32(feature), Threshold: threshold, Left: left, Right: right}
	return id
}

// cut picks a feature at random among those that differ, and a threshold at random between its ends.
func (g *isolator) cut(rows []int32, depth int) (feature int, threshold float32, ok bool) {
	if depth >= g.limit || len(rows) < 2 {
		return 0, 0, false
	}
	for _, f := range g.rng.Perm(g.x.Cols) {
		low, high := float32(math.Inf(1)), float32(math.Inf(-1))
		for _, r := range rows {
			v := g.x.Data[int(r)*g.x.Cols+f]
			low, high = min(low, v), max(high, v)
		}
		if low == high {
			continue
		}
		t := float32(float64(low) + g.rng.Float64()*(float64(high)-float64(low)))
		if t >= high { // rounded up: nothing would go right
			t = low
		}
		return f, t, true
	}
	return 0, 0, false
}
