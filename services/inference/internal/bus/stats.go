package bus

import (
	"slices"
	"sync"
	"time"

	api "github.com/mlp-platform/platform/clients/go/busbridge"
	"github.com/mlp-platform/platform/libs/service"
)

// keptTimes is how many of a model's latest answer times its quantiles are taken from.
const keptTimes = 1024

// stats counts the bridge's answers since its start.
type stats struct {
	mu         sync.Mutex // guards the fields below
	inferences int64
	vectors    int64
	retrains   int64
	models     map[string]*modelStats
}

type modelStats struct {
	inferences, errors int64
	times              []time.Duration // a ring
	next               int
}

// countInference counts one answered request of rows rows; vector reports whether it was sent as one vector.
func (s *stats) countInference(model string, vector bool, rows int, took time.Duration, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if vector {
		s.vectors += int64(rows)
	} else {
		s.inferences += int64(rows)
	}
	if model == "" {
		return // not known: a name from outside must not become a row
	}
	m := s.models[model]
	if m == nil {
		m = &modelStats{}
		s.models[model] = m
	}
	m.inferences += int64(rows)
	if failed {
		m.errors++
		return
	}
	if len(m.times) < keptTimes {
		m.times = append(m.times, took)
		return
	}
	m.times[m.next] = took
	m.next = (m.next + 1) % keptTimes
}

func (s *stats) countRetrain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retrains++
}

func (s *stats) snapshot() api.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := api.Stats{InferencesTotal: s.inferences, RetrainsTotal: s.retrains, VectorsTotal: s.vectors, PerModel: map[string]api.ModelStats{}}
	for name, m := range s.models {
		times := slices.Sorted(slices.Values(m.times))
		out.PerModel[name] = api.ModelStats{
			Inferences: m.inferences, Errors: m.errors, P50Ms: service.Quantile(times, 0.5), P99Ms: service.Quantile(times, 0.99),
		}
	}
	return out
}
