// Package health reports the state of this replica: /health, the checks of /readyz,
// and the runtime block.
package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/poller"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// Facts hold what does not change while the process runs.
type Facts struct {
	OrchestratorURL               string // shown, so without credentials
	Coordinator                   string // redis or postgres
	Publisher                     string // nats or log
	RelayEnabled                  bool
	StateEmbedded, BrokerEmbedded bool
	ModelRepoDir                  string
	// ModelRepoOwn means that this replica follows the model repository itself, so
	// that the folder does not matter.
	ModelRepoOwn bool
}

// Parts are what a Service reports on.
type Parts struct {
	Facts    Facts
	Server   *service.Server
	Store    *store.Store
	Registry *registry.Registry
	Auth     *auth.Authenticator
	// Secrets are warnings about secrets other than credentials.
	Secrets []string
	Target  *dispatch.Target
	// Migrated checks that the schema is the one this program expects.
	Migrated func(context.Context) error
	// Coordinate pings the coordinator.
	Coordinate func(context.Context) error
	Breaker    *coord.Breaker // of the orchestrator
	Poller     *poller.Service
	// Relay publishes this service's outbox unless it is disabled.
	Relay *outbox.Relay
}

// Service answers for one replica.
type Service struct {
	Parts

	started atomic.Bool

	counting  singleflight.Group
	mu        sync.Mutex // guards those below
	countedAt time.Time
	counted   outbox.Stats
}

// New refuses a missing part and adds the checks to /readyz.
func New(p Parts) (*Service, error) {
	if err := service.RequireParts("health", p); err != nil {
		return nil, err
	}
	s := &Service{Parts: p}
	s.register()
	return s, nil
}

// countFor is how long a count of the outbox is reused: counting reads a week of rows,
// and /health needs no credential.
const countFor = time.Second

func (s *Service) outbox(ctx context.Context) (outbox.Stats, error) {
	s.mu.Lock()
	stats, at := s.counted, s.countedAt
	s.mu.Unlock()
	if time.Since(at) < countFor {
		return stats, nil
	}
	counted := s.counting.DoChan("", func() (any, error) {
		// One caller's cancellation must not reach the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		stats, err := s.Relay.Stats(ctx)
		if err == nil {
			s.mu.Lock()
			s.counted, s.countedAt = stats, time.Now()
			s.mu.Unlock()
		}
		return stats, err
	})
	select {
	case <-ctx.Done():
		return outbox.Stats{}, ctx.Err()
	case r := <-counted:
		return r.Val.(outbox.Stats), r.Err
	}
}

// Started ends the state "starting" of /health.
func (s *Service) Started() { s.started.Store(true) }

// startupChecks are the names in startup_checks, beside which /readyz has the approval store.
var startupChecks = []string{"db", "registry", "token", "coordinator", "event_publisher", "audit"}

// register adds the checks to /readyz.
func (s *Service) register() {
	s.Server.Check("startup", func(context.Context) service.Check {
		if s.started.Load() {
			return service.Check{Status: service.OK}
		}
		return service.Check{Status: service.Fail, Detail: "still starting"}
	})
	s.Server.Check("db", func(ctx context.Context) service.Check { return failCheck(s.Migrated(ctx)) })
	s.Server.Check("approval_store", func(ctx context.Context) service.Check {
		_, err := s.pending(ctx)
		return failCheck(err)
	})
	s.Server.Check("registry", func(context.Context) service.Check { return warnCheck(s.Registry.Warning()) })
	s.Server.Check("token", func(context.Context) service.Check { return s.token() })
	s.Server.Check("coordinator", func(ctx context.Context) service.Check {
		if err := s.Coordinate(ctx); err != nil {
			return warnCheck("the coordinator does not answer: retrains are refused, other limits hold per process")
		}
		return service.Check{Status: service.OK}
	})
	s.Server.Check("event_publisher", s.publisher)
	s.Server.Check("poller", s.poller)
}

// poller fails if polling is on and has not succeeded for three intervals: the platform
// would miss changes.
func (s *Service) poller(ctx context.Context) service.Check {
	st, err := s.Poller.State(ctx)
	switch {
	case err != nil:
		return failCheck(fmt.Errorf("the state of polling cannot be read: %w", err))
	case st.Stale && st.LastError != "":
		return failCheck(errors.New("the model repository was not reached for three intervals: " + st.LastError))
	case st.Stale:
		return failCheck(errors.New("the model repository was not polled for three intervals"))
	case st.Enabled && st.LastError != "":
		return warnCheck("the newest poll failed: " + st.LastError)
	}
	return service.Check{Status: service.OK}
}

// publisher warns of events that are not being published.
func (s *Service) publisher(ctx context.Context) service.Check {
	if s.Facts.Publisher == "log" {
		return warnCheck("EVENT_PUBLISHER is log: events are only logged")
	}
	stats, err := s.outbox(ctx)
	switch {
	case err != nil:
		return warnCheck("the outbox cannot be read: " + err.Error())
	case stats.LastError != "":
		return warnCheck(stats.LastError + "; events wait in the outbox")
	}
	return service.Check{Status: service.OK}
}

func failCheck(err error) service.Check {
	if err == nil {
		return service.Check{Status: service.OK}
	}
	return service.Check{Status: service.Fail, Detail: err.Error()}
}

func warnCheck(why string) service.Check {
	if why == "" {
		return service.Check{Status: service.OK}
	}
	return service.Check{Status: service.Warn, Detail: why}
}

func (s *Service) token() service.Check {
	switch {
	case s.Auth.State() != nil:
		return service.Check{Status: service.Fail, Detail: s.Auth.State().Error()}
	case !s.Auth.Configured():
		return warnCheck("no credentials are configured; protected routes are closed")
	}
	return warnCheck(strings.Join(slices.Concat(s.Auth.Warnings(), s.Secrets), "; "))
}

func (s *Service) pending(ctx context.Context) (int, error) {
	row, err := s.Store.PendingApprovals(ctx)
	if err != nil && !store.None(err) {
		return 0, fmt.Errorf("the approval store cannot be read: %w", err)
	}
	return int(row.Pending), nil
}

// readTimeout limits what /health reads besides the checks.
const readTimeout = 2 * time.Second
