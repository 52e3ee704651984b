package health

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/dispatch"
	"github.com/mlp-platform/platform/services/control-plane/internal/poller"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Get serves GET /health; it is always 200. Its report on stores is at most about a second old: the checks read it in
// the background.
func (s *Service) Get(c echo.Context) error {
	ready, checks := s.Server.Ready(c.Request().Context())
	out := api.Health{
		Status: api.HealthStatusOk, Ready: ready, PrefectApiUrl: s.Facts.OrchestratorURL,
		AuthConfigured: s.Auth.Configured() && s.Auth.State() == nil, Models: map[string][]string{},
		Deployment: s.Target.Name(), StartupChecks: map[string]string{}, Poller: s.pollerHealth(),
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
	out.PendingApprovals = s.pending.Load()
	t := s.Target.Status()
	out.Dispatch = api.DispatchHealth{State: api.DispatchHealthState(t.State), Detail: wire.OptionalText(t.Detail)}
	if !t.CheckedAt.IsZero() {
		out.Dispatch.CheckedAt = &t.CheckedAt
	}
	if t.State != dispatch.OK && out.Status == api.HealthStatusOk {
		out.Status = api.HealthStatusDegraded
	}
	out.CircuitBreaker.State = api.BreakerHealthStateUnknown
	if state := s.breaker.Load(); state != nil {
		out.CircuitBreaker.State = api.BreakerHealthState(*state)
	}
	out.Runtime = s.runtime(strings.HasPrefix(checks["coordinator"], service.OK))
	return c.JSON(http.StatusOK, out)
}

// pollerHealth returns the block poller; what cannot be read is left out.
func (s *Service) pollerHealth() api.PollerHealth {
	var st poller.State
	if read := s.polling.Load(); read != nil {
		st = *read
	}
	out := api.PollerHealth{Enabled: st.Enabled, Stale: st.Stale, Leader: st.Leader, LastError: wire.OptionalText(st.LastError)}
	if st.LastOK != nil {
		age := st.LastOK.Seconds()
		out.LastOkSecondsAgo = &age
	}
	return out
}

// runtime returns what this process uses and what prevents running a second replica
// safely.
func (s *Service) runtime(coordinated bool) api.Runtime {
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
	// Each replica reads a folder on its own machine; whether they agree is unknown here.
	block(f.ModelRepoDir != "" && !f.ModelRepoOwn, "modelrepo_dir_not_shared")
	r.HorizontalScalingSafe = len(r.HorizontalScalingBlockers) == 0
	if stats := s.outbox.Load(); stats != nil {
		r.Outbox = api.OutboxHealth{
			Pending: &stats.Pending, Published: &stats.Published, Poison: &stats.Poison, OldestPendingSeconds: &stats.OldestPendingSeconds,
		}
		r.EventRelayError = wire.OptionalText(stats.LastError)
	}
	return r
}
