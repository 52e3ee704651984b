package turn

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

const (
	stateActive  = "active"
	kindQuestion = "question"
	kindDecision = "decision"
)

// Deps holds what the service depends on.
type Deps struct {
	Store   *store.Store
	Actions *action.Service
	Engine  Investigator
	Tools   Tools
	Planner Planner
	Now     func() time.Time `part:"optional"` // nil means time.Now
	Log     *slog.Logger
	// Finished is called for every turn that this process ended, for counters; it may be nil.
	Finished func(outcome string, took time.Duration) `part:"optional"`
}

// Service owns the turns that this process answers.
type Service struct {
	Config
	Deps
	me uuid.UUID

	mu       sync.Mutex
	running  map[string]*running // guarded by mu, by session
	draining bool                // guarded by mu
	work     sync.WaitGroup      // Add is called with mu held, and not after draining
}

// New returns a service, or an error that names the missing parts.
func New(c Config, d Deps) (*Service, error) {
	if err := service.RequireParts("turn", d); err != nil {
		return nil, err
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Finished == nil {
		d.Finished = func(string, time.Duration) {}
	}
	return &Service{Config: c.withDefaults(), Deps: d, me: uuid.New(), running: map[string]*running{}}, nil
}

// Active returns the number of turns that this process is answering.
func (s *Service) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

// Drain refuses new turns, cancels the engines, and waits until every turn is closed or ctx
// ends. It waits for a write that has begun.
func (s *Service) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	for _, r := range s.running {
		r.cancel(errDraining)
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.work.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// own returns the running turn if this process is answering it.
func (s *Service) own(session string, number int32) *running {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.running[session]; r != nil && r.turn.Number == number {
		return r
	}
	return nil
}

// left tells the other replicas that the last reader here is gone.
func (s *Service) left(session string, l *live) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.Store.LeaveTurn(ctx, store.LeaveTurnParams{SessionID: session, Number: l.id.Turn, Fence: l.fence, Now: s.Now()}); err != nil {
		// The other replicas count the turn as read for a while longer.
		s.Log.WarnContext(ctx, "a reader's leave could not be told", slog.Any("err", err))
	}
}
