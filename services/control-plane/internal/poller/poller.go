// Package poller watches the configured branch of the model repository, and keeps the registries of all replicas at the
// commit in force.
//
// One replica polls, under a lease. It records a new head as a push, unless a webhook has already reported it, and
// reads it; the result is one row of the database, which all replicas check twice a second:
//
//   - head_commit is the newest head seen, force_commit the newest that could be
//     read. Replicas that have a checkout of their own follow force_commit; a
//     faulty head leaves it as it is.
//   - readings is raised when those that read a folder should read it again.
//   - nudges is raised when the leader should not wait for the end of the interval.
//   - last_ok_at shows every replica whether polling works, whichever one polls.
package poller

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge"
	"github.com/mlp-platform/platform/services/control-plane/internal/lock"
	"github.com/mlp-platform/platform/services/control-plane/internal/push"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/repoconfig"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

const (
	// Timeout limits the repository queries of one poll.
	Timeout = 10 * time.Second
	// CloneTimeout limits the first poll, which may fetch everything.
	CloneTimeout = time.Minute
	// lease names the right to poll; cycle is held during each poll, by any caller.
	lease = "modelrepo-poller"
	cycle = "modelrepo-cycle"
	// cycleTTL releases the cycle of a dead process.
	cycleTTL = 15 * time.Second
	// After staleAfter intervals without a success polling counts as broken.
	staleAfter = 3
	// After missedAfter intervals without a poll the leader counts as dead, and other replicas poll in its place.
	missedAfter = 2
	// standInAfter is how long a nudge waits for the leader, and the minimum pause between two polls of a replica that
	// polls in its place.
	standInAfter = 15 * time.Second
	// followEvery is how soon a replica sees another's change.
	followEvery = 500 * time.Millisecond
	// followRetry is the pause after a failed checkout of a commit.
	followRetry = 5 * time.Second
	// startTimeout limits how long a starting replica waits for its first checkout.
	startTimeout = 20 * time.Second
	// busyRetry is the pause where another replica's sync holds the cycle.
	busyRetry = time.Second
	// actor is the actor of polls.
	actor = "system:modelrepo"
)

// Parts are the dependencies of a Service.
type Parts struct {
	// Source is the repository; nil: there is none to poll.
	Source forge.Source
	// SourceID identifies the repository, without credentials.
	SourceID string
	Store    *store.Store
	Registry *registry.Registry
	Config   *repoconfig.Service
	Push     *push.Service
	Coord    coord.Coordinator
	Locks    *lock.Locker
	Log      *slog.Logger
}

// Service polls and follows.
type Service struct {
	Parts

	leading atomic.Bool
	own     atomic.Bool               // the next head is one that this poller reports, and has read
	begun   atomic.Pointer[time.Time] // when the current interval came into force; staleness counts from here

	poke    chan struct{} // wakes the leader of this process
	heads   chan struct{} // a head was recorded by this process
	turn    chan struct{} // holds a token while this process does not change the registry
	started chan struct{} // closed by Start
}

// New returns a Service that does nothing before Start and Run.
func New(p Parts) *Service {
	s := &Service{Parts: p}
	s.poke, s.heads, s.turn, s.started = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
	s.turn <- struct{}{}
	s.begin()
	return s
}

func (s *Service) begin() {
	now := time.Now()
	s.begun.Store(&now)
}

func signalOnce(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // one is already waiting
	}
}

// OnHead makes the leader poll soon, whichever replica that is: a webhook has reported a head that the registry lacks.
// It does not block.
func (s *Service) OnHead() {
	if !s.own.CompareAndSwap(true, false) {
		signalOnce(s.heads)
	}
}

// exporter returns the source if replicas check out its commits themselves.
func (s *Service) exporter() (forge.Exporter, bool) {
	e, ok := s.Source.(forge.Exporter)
	return e, ok
}

func (s *Service) interval() time.Duration {
	return time.Duration(s.Config.Current().PollIntervalSeconds) * time.Second
}

// Start brings the registry of a replica with its own checkout to the commit in force, so that it does not answer
// before it knows the models. Run retries what fails. It is called once, when the settings are known.
func (s *Service) Start(ctx context.Context) {
	defer close(s.started)
	if _, ok := s.exporter(); !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.follow(ctx, &followState{}); err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "model repository not checked out yet", slog.Any("err", err))
	}
}

// Run polls while this replica leads, and follows, from Start until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.started:
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { s.watch(ctx); return nil })
	g.Go(func() error { s.nudge(ctx); return nil })
	if s.Source != nil {
		g.Go(func() error { return s.elect(ctx) })
	}
	return g.Wait()
}

// nudge notifies all replicas of heads that this one recorded.
func (s *Service) nudge(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.heads:
		}
		one, cancel := context.WithTimeout(ctx, readTimeout)
		err := s.Store.NudgePoller(one)
		cancel()
		if err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "poller not nudged; it polls at the end of its interval", slog.Any("err", err))
		}
	}
}

// elect takes part in the leader election while polling is on; a new interval starts a new term.
func (s *Service) elect(ctx context.Context) error {
	for ctx.Err() == nil {
		changed, every := s.Config.Changed(), s.interval()
		s.begin()
		if every == 0 {
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		term, end := context.WithCancel(ctx)
		g, term := errgroup.WithContext(term)
		g.Go(func() error {
			return coord.Lead(term, s.Coord, lease, coord.LeadTime, s.Log, func(ctx context.Context) error {
				return s.lead(ctx, every)
			})
		})
		g.Go(func() error {
			defer end()
			for {
				select {
				case <-term.Done():
					return nil
				case <-changed:
				}
				if changed = s.Config.Changed(); s.interval() != every {
					return nil
				}
				signalOnce(s.poke) // another branch, say
			}
		})
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// lead polls immediately, at each interval, and when it is poked.
func (s *Service) lead(ctx context.Context, every time.Duration) error {
	s.leading.Store(true)
	defer s.leading.Store(false)
	for {
		wait := every
		if _, err := s.poll(ctx, ""); errors.Is(err, errBusy) {
			wait = busyRetry
		} else if err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "poll of the model repository failed", slog.Any("err", err))
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		case <-s.poke:
			t.Stop()
		}
	}
}

// State is the poller's part of /health.
type State struct {
	Enabled bool
	// LastOK is the age of the newest success of any replica; nil if there was none.
	LastOK *time.Duration
	// Stale reports that no poll succeeded for three intervals.
	Stale bool
	// Leader reports that this replica polls.
	Leader bool
	// LastError is the reason why the newest poll failed; empty after a success.
	LastError string
	// Fault is the reason why the newest head is not in force; empty if it is.
	Fault string
}

// State reads the shared row.
func (s *Service) State(ctx context.Context) (State, error) {
	every := s.interval()
	out := State{Enabled: s.Source != nil && every > 0, Leader: s.leading.Load()}
	row, err := s.Store.GetPoller(ctx)
	if err != nil {
		return out, err
	}
	if row.LastError != nil {
		out.LastError = *row.LastError
	}
	if row.Fault != nil {
		out.Fault = *row.Fault
	}
	quiet := time.Since(*s.begun.Load())
	if row.OkAgeSeconds >= 0 || row.LastOkAt != nil {
		age := time.Duration(max(0, row.OkAgeSeconds) * float64(time.Second))
		out.LastOK = &age
		quiet = min(quiet, age)
	}
	out.Stale = out.Enabled && quiet > staleAfter*every
	return out, nil
}
