package score

import (
	"slices"

	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
	"github.com/mlp-platform/platform/services/trainer/internal/frame"
	"github.com/mlp-platform/platform/services/trainer/internal/history"
)

// A Guess is a baseline's prediction for each test row.
type Guess struct {
	// Values of a regression: medians.
	Values []float64
	// Classes are the majority, Proba the shares of the classes, each seen once more than it was so that none is 0.
	Classes []int
	Proba   [][]float64
}

// Metrics of the guess on the test rows.
func (g Guess) Metrics(target frame.Target) map[string]float64 {
	if target.Anomaly {
		return Anomaly(target.Y, g.Classes, g.Proba)
	}
	if target.Class {
		return Classification(target.Y, g.Classes, g.Proba, len(target.Labels))
	}
	return Regression(target.Values, g.Values)
}

// Baseline guesses from the most specific grouping in which it has seen a row, at last from all rows.
type Baseline struct {
	target frame.Target
	// levels holds the group of each row, one slice a grouping; the last one is a single group.
	levels [][]int
	seen   []map[int]*tally
}

type tally struct {
	history.Median
	classes []int
}

// NewBaseline prepares the groupings over all rows of the sample.
func NewBaseline(s *dataset.Sample, by [][]string) (*Baseline, error) {
	b := &Baseline{target: s.Target}
	for _, columns := range by {
		g, err := s.Rows.Groups(columns)
		if err != nil {
			return nil, err
		}
		b.levels = append(b.levels, g)
	}
	b.levels = append(b.levels, make([]int, s.Rows.N))
	b.forget()
	return b, nil
}

func (b *Baseline) forget() {
	b.seen = make([]map[int]*tally, len(b.levels))
	for i := range b.seen {
		b.seen[i] = map[int]*tally{}
	}
}

func (b *Baseline) learn(row int) {
	for l, groups := range b.levels {
		t := b.seen[l][groups[row]]
		if t == nil {
			t = &tally{}
			if b.target.Class {
				t.classes = make([]int, len(b.target.Labels))
			}
			b.seen[l][groups[row]] = t
		}
		if b.target.Class {
			t.classes[b.target.Y[row]]++
		} else {
			t.Add(b.target.Values[row])
		}
	}
}

func (b *Baseline) guess(row int, into *Guess) {
	t := &tally{}
	if b.target.Class {
		t.classes = make([]int, len(b.target.Labels))
	}
	for l, groups := range b.levels {
		if known := b.seen[l][groups[row]]; known != nil {
			t = known
			break
		}
	}
	if !b.target.Class {
		into.Values = append(into.Values, t.Value())
		return
	}
	total := len(t.classes)
	for _, n := range t.classes {
		total += n
	}
	p := make([]float64, len(t.classes))
	for k, n := range t.classes {
		p[k] = float64(n+1) / float64(total)
	}
	into.Proba = append(into.Proba, p)
	into.Classes = append(into.Classes, slices.Index(t.classes, slices.Max(t.classes)))
}

// Fixed learns the fitting rows once and guesses the test rows.
func (b *Baseline) Fixed(fit, test []int) Guess {
	b.forget()
	for _, i := range fit {
		b.learn(i)
	}
	var g Guess
	for _, i := range test {
		b.guess(i, &g)
	}
	return g
}

// Running guesses each test row from all rows that had ended when it was submitted, test rows among them. Rows must
// be in the order of their submit.
func (b *Baseline) Running(submit, end []float64, test []int) Guess {
	b.forget()
	var g Guess
	next := 0
	history.New(submit, end, nil).Walk(b.learn, func(i int) {
		if next < len(test) && test[next] == i {
			b.guess(i, &g)
			next++
		}
	})
	return g
}

// Unseen counts the test rows whose group of the most specific grouping is in no fitting row; 0 without grouping.
func (b *Baseline) Unseen(fit, test []int) int {
	if len(b.levels) < 2 {
		return 0
	}
	known := map[int]bool{}
	for _, i := range fit {
		known[b.levels[0][i]] = true
	}
	n := 0
	for _, i := range test {
		if !known[b.levels[0][i]] {
			n++
		}
	}
	return n
}
