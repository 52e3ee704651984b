// Package split divides rows into train, validation and test.
package split

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
)

// Parts are indices of rows, each part in rising order.
type Parts struct {
	Train, Validation, Test []int
	// Purged counts rows of a split by time that are in no part: their job had not ended when the next part begins, so
	// that their label was not known then.
	Purged int
}

// Fit is train and validation together, in rising order.
func (p Parts) Fit() []int {
	out := slices.Concat(p.Train, p.Validation)
	slices.Sort(out)
	return out
}

// Of divides the rows as the model asks. span names the time columns of the data set; its submit is the default of a
// split by time, which is purged where span has an end.
func Of(spec modelrepo.Split, span modelrepo.Span, r *dataset.Rows) (Parts, error) {
	var p Parts
	var err error
	switch spec.Kind {
	case "time":
		column := spec.Column
		if column == "" {
			column = span.Submit
		}
		key, ok := r.Num[column]
		if !ok {
			return p, fmt.Errorf("split by time: no number column %q", column)
		}
		order := rowIndices(r.N)
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case key[a] < key[b]:
				return -1
			case key[a] > key[b]:
				return 1
			}
			return 0
		})
		p = cutByFractions(order, spec.Fractions)
		if end, ok := r.Num[span.End]; ok && column == span.Submit {
			p.purge(key, end)
		}
	case "random":
		order := rowIndices(r.N)
		shuffleRows(order, spec.Seed)
		p = cutByFractions(order, spec.Fractions)
	case "group":
		groups, gerr := r.Groups([]string{spec.Column})
		if gerr != nil {
			return p, fmt.Errorf("split by group: %w", gerr)
		}
		p = splitWholeGroups(groups, spec, true)
	case "files":
		if r.File == nil {
			return p, fmt.Errorf("split by files: the rows are generated, not read from files; use another split or another data set")
		}
		p = splitWholeGroups(r.File, spec, false)
	default:
		err = fmt.Errorf("split kind %q is unknown", spec.Kind)
	}
	if err == nil && (len(p.Train) == 0 || len(p.Validation) == 0 || len(p.Test) == 0) {
		err = fmt.Errorf("split by %s leaves a part empty: %d train, %d validation, %d test of %d rows; give more rows, files or groups, or other fractions",
			spec.Kind, len(p.Train), len(p.Validation), len(p.Test), r.N)
	}
	for _, part := range [][]int{p.Train, p.Validation, p.Test} {
		slices.Sort(part)
	}
	return p, err
}

// purge leaves out of train and validation the rows whose label was not known when the next part begins.
func (p *Parts) purge(submit, end []float64) {
	begins := func(part []int) float64 {
		first := math.Inf(1)
		for _, i := range part {
			first = min(first, submit[i])
		}
		return first
	}
	validation, test := begins(p.Validation), begins(p.Test)
	count := len(p.Train) + len(p.Validation)
	p.Train = slices.DeleteFunc(p.Train, func(i int) bool { return end[i] > validation })
	p.Validation = slices.DeleteFunc(p.Validation, func(i int) bool { return end[i] > test })
	p.Purged = count - len(p.Train) - len(p.Validation)
}

func rowIndices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func shuffleRows(s []int, seed int64) {
	rng := rand.New(rand.NewPCG(uint64(seed), 0x73706c6974))
	rng.Shuffle(len(s), func(a, b int) { s[a], s[b] = s[b], s[a] })
}

func cutByFractions(order []int, fractions []float64) Parts {
	n := float64(len(order))
	// 1e-9 keeps a product such as 0.6*5 = 3.0000000000000004-ε on the side it belongs to.
	a := int(n*fractions[0] + 1e-9)
	b := int(n*(fractions[0]+fractions[1]) + 1e-9)
	return Parts{Train: order[:a:a], Validation: order[a:b:b], Test: order[b:]}
}

// splitWholeGroups keeps the rows of one group together. Groups are assigned, in random order or as they appear, to
// each part until it has its share.
func splitWholeGroups(group []int, spec modelrepo.Split, random bool) Parts {
	rows := map[int][]int{}
	var order []int
	for i, g := range group {
		if rows[g] == nil {
			order = append(order, g)
		}
		rows[g] = append(rows[g], i)
	}
	slices.Sort(order)
	if random {
		shuffleRows(order, spec.Seed)
	}
	var p Parts
	parts := []*[]int{&p.Train, &p.Validation, &p.Test}
	part, given, due := 0, 0, spec.Fractions[0]*float64(len(group))
	for k, g := range order {
		// Leave at least one group for each part that is still to come.
		for part < 2 && (float64(given) >= due-1e-9 || len(order)-k <= 2-part) && len(*parts[part]) > 0 {
			part++
			due += spec.Fractions[part] * float64(len(group))
		}
		*parts[part] = append(*parts[part], rows[g]...)
		given += len(rows[g])
	}
	return p
}

// MaxDuplicates is the share of test rows that may be identical to a row the model was fitted on.
const MaxDuplicates = 0.01

// Duplicates returns the share of test rows whose features and target are all equal to those of a row of train or
// validation. A model can answer such rows from memory, so they do not measure its answers to new ones.
func Duplicates(s *dataset.Sample, p Parts) float64 {
	seen := map[[32]byte]bool{}
	for _, i := range p.Fit() {
		seen[rowDigest(s, i)] = true
	}
	same := 0
	for _, i := range p.Test {
		if seen[rowDigest(s, i)] {
			same++
		}
	}
	return float64(same) / float64(len(p.Test))
}

func rowDigest(s *dataset.Sample, i int) [32]byte {
	var b []byte
	for _, c := range s.Table.Columns {
		switch c.Kind {
		case modelrepo.Number:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(c.Num[i]))
		case modelrepo.Category:
			b = binary.AppendUvarint(b, uint64(len(c.Cat[i])))
			b = append(b, c.Cat[i]...)
		case modelrepo.Vector:
			for _, v := range c.Vec[i] {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
		}
	}
	if s.Target.Class {
		b = binary.LittleEndian.AppendUint64(b, uint64(s.Target.Y[i]))
	} else {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.Target.Values[i]))
	}
	return sha256.Sum256(b)
}
