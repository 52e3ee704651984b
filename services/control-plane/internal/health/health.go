// Package health tells what this replica knows about itself: /health, the
// checks of /readyz, and the runtime block.
package health

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/singleflight"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/poller"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Facts are what does not change while the process runs.
type Facts struct {
	OrchestratorURL               string // shown, so without credentials
	Coordinator                   string // redis or postgres
	Publisher                     string // nats or log
	RelayEnabled                  bool
	StateEmbedded, BrokerEmbedded bool
	ModelRepoDir                  string
	// ModelRepoOwn says that this replica follows the model repository by itself,
	// so that the folder does not matter.
	ModelRepoOwn bool
}

// Service answers for one replica.
type Service struct {
	Facts    Facts
	Server   *service.Server
	Store    *store.Store
	Registry *registry.Registry
	Auth     *auth.Authenticator
	// Secrets warn of other secrets than credentials.
	Secrets []string
	Target  *dispatch.Target
	// Migrated says whether the schema is what this program expects.
	Migrated func(context.Context) error
	// Coordinate asks the coordinator for a sign of life.
	Coordinate func(context.Context) error
	Breaker    *coord.Breaker // of the orchestrator
	Poller     *poller.Service
	// Relay publishes this service's outbox, or would.
	Relay *outbox.Relay

	started atomic.Bool

	counting  singleflight.Group
	mu        sync.Mutex // guards those below
	countedAt time.Time
	counted   outbox.Stats
}

// countFor is how long a count of the outbox is reused: it reads a week of rows,
// and those who ask need no credential.
const countFor = time.Second

func (s *Service) outbox(ctx context.Context) (outbox.Stats, error) {
	s.mu.Lock()
	stats, at := s.counted, s.countedAt
	s.mu.Unlock()
	if time.Since(at) < countFor {
		return stats, nil
	}
	counted := s.counting.DoChan("", func() (any, error) {
		// A caller that gives up must not make the others see its cancellation.
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

// Started ends the state "starting".
func (s *Service) Started() { s.started.Store(true) }

// startupChecks are the names in startup_checks, beside which /readyz has the approval store.
var startupChecks = []string{"db", "registry", "token", "coordinator", "event_publisher", "audit"}

// Register adds the checks to /readyz.
func (s *Service) Register() {
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

// poller fails where polling is on and has not worked for three intervals: this
// platform would not learn of changes.
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

// readTimeout bounds what /health asks for beside the checks.
const readTimeout = 2 * time.Second

// Get serves GET /health; it is always 200.
func (s *Service) Get(c echo.Context) error {
	ready, checks := s.Server.Ready(c.Request().Context())
	ctx, cancel := context.WithTimeout(c.Request().Context(), readTimeout)
	defer cancel()
	out := api.Health{
		Status: api.HealthStatusOk, Ready: ready, PrefectApiUrl: s.Facts.OrchestratorURL,
		AuthConfigured: s.Auth.Configured() && s.Auth.State() == nil, Models: map[string][]string{},
		Deployment: s.Target.Name(), StartupChecks: map[string]string{}, Poller: s.polling(ctx),
	}
	for name, check := range checks {
		if check != service.OK {
			out.Status = api.HealthStatusDegraded
		}
		for _, n := range startupChecks {
			if n == name {
				out.StartupChecks[name] = check
			}
		}
	}
	if !s.started.Load() {
		out.Status = api.HealthStatusStarting
	}
	for _, m := range s.Registry.Models() {
		out.Models[m.ID()] = m.DatasetNames()
	}
	if n, err := s.pending(ctx); err == nil {
		out.PendingApprovals = &n
	}
	t := s.Target.Status()
	out.Dispatch = api.DispatchHealth{State: api.DispatchHealthState(t.State), Detail: wire.OptionalText(t.Detail)}
	if !t.CheckedAt.IsZero() {
		out.Dispatch.CheckedAt = &t.CheckedAt
	}
	if t.State != dispatch.OK && out.Status == api.HealthStatusOk {
		out.Status = api.HealthStatusDegraded
	}
	out.CircuitBreaker.State = api.BreakerHealthStateUnknown
	if b, err := s.Breaker.State(ctx); err == nil {
		out.CircuitBreaker.State = api.BreakerHealthState(b.State)
	}
	out.Runtime = s.runtime(ctx, strings.HasPrefix(checks["coordinator"], service.OK))
	return c.JSON(http.StatusOK, out)
}

// polling is the block poller; what cannot be read is not claimed.
func (s *Service) polling(ctx context.Context) api.PollerHealth {
	st, _ := s.Poller.State(ctx) // the check of that name tells of an error
	out := api.PollerHealth{Enabled: st.Enabled, Stale: st.Stale, Leader: st.Leader, LastError: wire.OptionalText(st.LastError)}
	if st.LastOK != nil {
		age := st.LastOK.Seconds()
		out.LastOkSecondsAgo = &age
	}
	return out
}

// runtime says what this process uses, and what of it keeps a second replica
// from being safe.
func (s *Service) runtime(ctx context.Context, coordinated bool) api.Runtime {
	f := s.Facts
	r := api.Runtime{
		StateBackend: api.RuntimeStateBackendPostgres, ConfiguredCoordinator: api.RuntimeConfiguredCoordinator(f.Coordinator),
		ActiveCoordination:       api.RuntimeActiveCoordination(f.Coordinator),
		ConfiguredEventPublisher: api.RuntimeConfiguredEventPublisher(f.Publisher), EventRelayEnabled: f.RelayEnabled,
		HorizontalScalingBlockers: []string{},
	}
	block := func(when bool, name string) {
		if when {
			r.HorizontalScalingBlockers = append(r.HorizontalScalingBlockers, name)
		}
	}
	if f.StateEmbedded {
		r.StateBackend = api.RuntimeStateBackendPostgresEmbedded
	}
	if f.BrokerEmbedded && f.Publisher == "nats" {
		r.ConfiguredEventPublisher = api.NatsEmbedded
	}
	if !coordinated {
		r.ActiveCoordination = api.RuntimeActiveCoordinationNone
	}
	block(f.StateEmbedded, "state_backend_embedded")
	block(!coordinated, "coordinator_unreachable")
	block(f.BrokerEmbedded || f.Publisher == "log", "event_publisher_process_local")
	block(!f.RelayEnabled, "event_relay_disabled")
	// Each replica reads a folder of its own machine; that they agree cannot be seen from here.
	block(f.ModelRepoDir != "" && !f.ModelRepoOwn, "modelrepo_dir_not_shared")
	r.HorizontalScalingSafe = len(r.HorizontalScalingBlockers) == 0
	if stats, err := s.outbox(ctx); err == nil {
		r.Outbox = api.OutboxHealth{
			Pending: &stats.Pending, Published: &stats.Published, Poison: &stats.Poison, OldestPendingSeconds: &stats.OldestPendingSeconds,
		}
		r.EventRelayError = wire.OptionalText(stats.LastError)
	}
	return r
}
