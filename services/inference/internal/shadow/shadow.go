// Package shadow scores requests again with another alias, after they were answered and without effect on the answer:
// no request waits for a score, a full queue drops it, and the workers pause between scores to leave the processors to
// the answers.
package shadow

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/snapshot"
	"github.com/mlp-platform/platform/services/inference/internal/traffic"
)

const (
	// workers score at the same time, waiting scores wait for one of them.
	workers = 16
	waiting = 64
	// scoreTimeout limits one score, from the moment its request was answered.
	scoreTimeout = 10 * time.Second
	// rest is how long a worker pauses after a score, in multiples of the score's time: without it, a shadow of every
	// request would take half of the processors. The time of a score grows with the load, and so does the pause.
	rest = 19
	// maxRest keeps a version that was slow once from being left out for minutes.
	maxRest = 30 * time.Second
)

// ErrMismatch means that the other version does not take the request: its columns or tensors differ.
var ErrMismatch = errors.New("the version takes other inputs")

// Score scores the request again with the slot's copy, before ctx ends. Scorer completes its records.
type Score func(ctx context.Context, slot *catalog.Slot) ([]snapshot.Record, error)

// Config of a Scorer; all parts are required.
type Config struct {
	Traffic   *traffic.Traffic
	Catalog   *catalog.Catalog
	Snapshots *snapshot.Writer
	Metrics   *metrics.Set
}

// Scorer is safe for concurrent use.
type Scorer struct {
	cfg   Config
	queue chan task
}

type task struct {
	model, alias string
	answered     time.Time
	score        Score
}

// New returns a scorer, whose work is done by Run.
func New(cfg Config) (*Scorer, error) {
	if err := service.RequireParts("shadow", cfg); err != nil {
		return nil, err
	}
	return &Scorer{cfg: cfg, queue: make(chan task, waiting)}, nil
}

// Offer is called once a slot has answered a request. prepare is called only if the request is to be scored; a nil Score
// is a request that cannot be kept for it. Offer never blocks.
func (s *Scorer) Offer(slot *catalog.Slot, prepare func() Score) {
	rule := s.cfg.Traffic.Shadow(slot.Name)
	if rule == nil || rule.Alias == slot.Alias || rand.IntN(100) >= rule.Percent {
		return
	}
	if len(s.queue) == cap(s.queue) { // before anything is copied for it
		s.count(slot.Name, rule.Alias, "dropped")
		return
	}
	t := task{model: slot.Name, alias: rule.Alias, answered: time.Now(), score: prepare()}
	if t.score == nil {
		s.count(slot.Name, rule.Alias, "dropped")
		return
	}
	select {
	case s.queue <- t:
	default:
		s.count(slot.Name, rule.Alias, "dropped")
	}
}

func (s *Scorer) count(model, alias, status string) {
	s.cfg.Metrics.Shadows.WithLabelValues(model, alias, status).Inc()
}

// Run scores until ctx ends, then drops the rest of the queue.
func (s *Scorer) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { s.work(ctx) })
	}
	wg.Wait()
	return nil
}

func (s *Scorer) work(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case t := <-s.queue:
			start := time.Now()
			s.count(t.model, t.alias, s.score(ctx, t))
			timer.Reset(min(rest*time.Since(start), maxRest))
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// score scores one request again and returns the outcome.
func (s *Scorer) score(ctx context.Context, t task) (status string) {
	slot := s.cfg.Catalog.Acquire(t.model, t.alias)
	if slot == nil {
		return "not_loaded"
	}
	defer slot.Release()
	ctx, cancel := context.WithDeadline(ctx, t.answered.Add(scoreTimeout))
	defer cancel()
	start := time.Now()
	records, err := t.score(ctx, slot)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, ErrMismatch):
		return "mismatch"
	case err != nil:
		return "error"
	}
	now := time.Now()
	for _, r := range records {
		r.Source, r.TS, r.Took = snapshot.Shadow, now, now.Sub(start)
		s.cfg.Snapshots.Put(r)
	}
	return "success"
}
