package dataset

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/swf"
)

// generateRows makes rows of the data set's schema. It needs no file and no network, and the same seed makes the same
// rows on every machine.
func generateRows(ds *modelrepo.Dataset, n int) (*Rows, error) {
	g := ds.Generator
	if g == nil {
		return nil, errors.New("it has no generator, which a dummy run needs; add one to its file")
	}
	r := newRows(ds)
	// PCG is specified, so its stream does not change with the Go release.
	rng := rand.New(rand.NewPCG(uint64(g.Seed), 0x9e3779b97f4a7c15))
	switch g.Kind {
	case "embedding_families":
		generateFamilies(g, n, ds.Columns["embedding"].Length, rng, r)
	case "jobs":
		if err := appendLog(generateJobLog(n, rng), ds, r); err != nil {
			return nil, err
		}
	case "table":
		generateTable(ds, n, rng, r)
	default:
		return nil, fmt.Errorf("unknown generator %q", g.Kind)
	}
	r.URI = fmt.Sprintf("generator:%s?seed=%d&rows=%d", g.Kind, g.Seed, n)
	r.Version = r.URI
	r.Origin = "generated"
	r.Backend = modelrepo.BackendLocal
	return r, nil
}

// generateFamilies makes jobs of a few kinds: each kind has a unit vector about which its jobs' embeddings scatter, a mean
// power and a class.
func generateFamilies(g *modelrepo.Generator, n, dim int, rng *rand.Rand, r *Rows) {
	type family struct {
		centroid []float64
		watts    float64
		class    int
	}
	kinds := make([]family, g.Families)
	for k := range kinds {
		c := make([]float64, dim)
		sum := 0.0
		for i := range c {
			c[i] = rng.NormFloat64()
			sum += c[i] * c[i]
		}
		for i := range c {
			c[i] /= math.Sqrt(sum)
		}
		lo, hi := g.PowerWatts[0], g.PowerWatts[1]
		kinds[k] = family{c, lo + (hi-lo)*rng.Float64(), k % 2}
	}
	for range n {
		f := kinds[rng.IntN(len(kinds))]
		v := make([]float32, dim)
		for i := range v {
			v[i] = float32(f.centroid[i] + rng.NormFloat64()*g.EmbeddingNoise)
		}
		class := f.class
		if rng.Float64() < g.ClassNoise {
			class = 1 - class
		}
		r.Vec["embedding"] = append(r.Vec["embedding"], v)
		r.Num["power_per_node_watts"] = append(r.Num["power_per_node_watts"], f.watts+rng.NormFloat64()*g.PowerNoise)
		r.Num["pclass"] = append(r.Num["pclass"], float64(class))
	}
	r.N += n
}

// generateJobLog makes a log of users who run the same few applications again and again, with log-normal run times.
func generateJobLog(n int, rng *rand.Rand) *swf.Log {
	log := &swf.Log{Start: time.Date(1993, 10, 1, 0, 0, 3, 0, time.UTC)}
	submit := 0.0
	for i := range n {
		user := rng.IntN(12)
		app := user*3 + rng.IntN(3)
		submit += math.Round(rng.ExpFloat64() * 420)
		var rec swf.Record
		for f := range rec {
			rec[f] = -1
		}
		rec[swf.Job], rec[swf.Submit] = float64(i+1), submit
		rec[swf.User], rec[swf.Group], rec[swf.App] = float64(user+1), float64(user%2+1), float64(app+1)
		rec[swf.Procs] = float64(int(1) << rng.IntN(8))
		rec[swf.Run] = math.Round(math.Exp(2 + float64(app%7) + 0.5*rng.NormFloat64()))
		log.Records = append(log.Records, rec)
	}
	return log
}

// generateTable fills any schema: columns known at submit are random, columns known at end follow from them with noise,
// so that a model has something to find.
func generateTable(ds *modelrepo.Dataset, n int, rng *rand.Rand, r *Rows) {
	names := slices.Sorted(maps.Keys(ds.Columns))
	signal := make([]float64, n)
	for _, name := range names {
		c := ds.Columns[name]
		if c.Available != modelrepo.AtSubmit || name == ds.Time.Submit {
			continue
		}
		weight := rng.NormFloat64()
		for i := range n {
			switch c.Type {
			case modelrepo.Number:
				v := rng.NormFloat64()
				r.Num[name] = append(r.Num[name], v)
				signal[i] += weight * v
			case modelrepo.Category:
				v := rng.IntN(5)
				r.Cat[name] = append(r.Cat[name], string(rune('a'+v)))
				signal[i] += weight * float64(v-2)
			case modelrepo.Vector:
				v := make([]float32, c.Length)
				for j := range v {
					v[j] = float32(rng.NormFloat64())
				}
				r.Vec[name] = append(r.Vec[name], v)
				signal[i] += weight * float64(v[0])
			}
		}
	}
	if s := ds.Time.Submit; s != "" {
		for i := range n {
			r.Num[s] = append(r.Num[s], float64(i*60))
		}
	}
	for _, name := range names {
		c := ds.Columns[name]
		if c.Available != modelrepo.AtEnd {
			continue
		}
		for i := range n {
			v := signal[i] + 0.1*rng.NormFloat64()
			switch {
			case name == ds.Time.End:
				r.Num[name] = append(r.Num[name], r.Num[ds.Time.Submit][i]+math.Exp(v))
			case c.Type == modelrepo.Number:
				r.Num[name] = append(r.Num[name], v)
			case c.Type == modelrepo.Category:
				r.Cat[name] = append(r.Cat[name], map[bool]string{false: "no", true: "yes"}[v > 0])
			case c.Type == modelrepo.Vector:
				vec := make([]float32, c.Length)
				for j := range vec {
					vec[j] = float32(v)
				}
				r.Vec[name] = append(r.Vec[name], vec)
			}
		}
	}
	r.N += n
}
