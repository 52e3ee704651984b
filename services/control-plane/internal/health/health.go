// Package health reports the state of this replica: /health, the checks of /readyz,
// and the runtime block.
package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/poller"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// Facts holds values that do not change while the process runs.
type Facts struct {
	OrchestratorURL               string // shown to callers, so without credentials
	Coordinator                   string // redis or postgres
	Publisher                     string // nats or log
	RelayEnabled                  bool
	StateEmbedded, BrokerEmbedded bool
	ModelRepoDir                  string
	// ModelRepoOwn means that this replica follows the model repository itself, so that the folder is not checked.
	ModelRepoOwn bool
}

// Parts are the components that a Service reports on.
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

	// The last values read by the checks, so that /health waits for no store; nil: it cannot be read.
	pending atomic.Pointer[int]
	polling atomic.Pointer[poller.State]
	breaker atomic.Pointer[string]
	outbox  atomic.Pointer[outbox.Stats]
}

// New returns a Service and adds the checks to /readyz, or an error for a missing part.
func New(p Parts) (*Service, error) {
	if err := service.RequireParts("health", p); err != nil {
		return nil, err
	}
	s := &Service{Parts: p}
	s.register()
	return s, nil
}

// Started ends the state "starting" of /health.
func (s *Service) Started() {
	s.started.Store(true)
	s.Server.Recheck()
}

// startupChecks lists the names in startup_checks; /readyz also has the approval store.
var startupChecks = []string{"db", "registry", "token", "coordinator", "event_publisher", "audit"}

// register adds the checks to /readyz.
func (s *Service) register() {
	s.Server.CheckLocal("startup", func() service.Check {
		if s.started.Load() {
			return service.Check{Status: service.OK}
		}
		return service.Check{Status: service.Fail, Detail: "still starting"}
	})
	s.Server.Check("db", s.checkDatabase)
	s.Server.Check("approval_store", func(ctx context.Context) service.Check {
		n, err := s.countPending(ctx)
		keepRead(&s.pending, n, err)
		return failCheck(err)
	})
	s.Server.CheckLocal("registry", func() service.Check { return warnCheck(s.Registry.Warning()) })
	s.Server.CheckLocal("token", s.token)
	s.Server.CheckOptional("coordinator", func(ctx context.Context) service.Check {
		b, err := s.Breaker.State(ctx)
		keepRead(&s.breaker, b.State, err)
		if err := s.Coordinate(ctx); err != nil {
			return warnCheck("the coordinator does not answer: retrains are refused, other limits hold per process")
		}
		return service.Check{Status: service.OK}
	})
	s.Server.CheckOptional("event_publisher", s.checkPublisher)
	s.Server.Check("poller", s.checkPoller)
}

// checkDatabase fails if the database does not answer or lacks migrations. A schema newer than this version is normal
// during an upgrade: were the old replicas unready then, none would answer until the first new one is ready.
func (s *Service) checkDatabase(ctx context.Context) service.Check {
	err := s.Migrated(ctx)
	if errors.Is(err, postgres.ErrNewer) {
		return warnCheck("a newer version has migrated the database; this replica keeps working until it is replaced")
	}
	return failCheck(err)
}

// keepRead stores the value read, or that it could not be read.
func keepRead[T any](into *atomic.Pointer[T], v T, err error) {
	if err != nil {
		into.Store(nil)
		return
	}
	into.Store(&v)
}

// checkPoller fails if polling is on and has not succeeded for three intervals: the platform
// would miss changes.
func (s *Service) checkPoller(ctx context.Context) service.Check {
	st, err := s.Poller.State(ctx)
	s.polling.Store(&st) // known without the store
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

// checkPublisher warns of events that are not being published.
func (s *Service) checkPublisher(ctx context.Context) service.Check {
	stats, err := s.Relay.Stats(ctx)
	keepRead(&s.outbox, stats, err)
	switch {
	case s.Facts.Publisher == "log":
		return warnCheck("EVENT_PUBLISHER is log: events are only logged")
	case err != nil:
		return warnCheck("the outbox cannot be read: " + err.Error())
	}
	return warnCheck(stats.Fault())
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

func (s *Service) countPending(ctx context.Context) (int, error) {
	row, err := s.Store.PendingApprovals(ctx)
	if err != nil && !store.None(err) {
		return 0, fmt.Errorf("the approval store cannot be read: %w", err)
	}
	return int(row.Pending), nil
}
