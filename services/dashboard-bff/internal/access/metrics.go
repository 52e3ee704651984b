package access

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// metrics counts the guard's refusals.
type metrics struct{ refused *prometheus.CounterVec }

func newMetrics(registry prometheus.Registerer) metrics {
	m := metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dashboard_requests_refused_total", Help: "Requests that the guards refused before they had any effect, by the error's code.",
	}, []string{"code"})}
	registry.MustRegister(m.refused)
	for _, kind := range []problem.Kind{ // alert rules need a zero before the first one
		fault.Unauthenticated, fault.InvalidToken, fault.ProviderUntrusted, fault.CSRFRefused, fault.RoleRequired, fault.OperatorTenantRequired,
		fault.StepUpRequired, fault.LoginLocked, fault.SessionStoreUnavailable, fault.InvalidPassword, problem.RateLimited,
	} {
		m.refused.WithLabelValues(kind.Code)
	}
	return m
}

// count accepts any error; codes come from a fixed table, so the label is bounded.
func (m metrics) count(err error) {
	var p *problem.Error
	if errors.As(err, &p) {
		m.refused.WithLabelValues(p.Kind.Code).Inc()
	}
}
