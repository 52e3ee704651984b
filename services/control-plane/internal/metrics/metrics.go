// Package metrics holds the control plane's Prometheus metrics. The acting code increments counters; values from the
// store are read at each scrape.
package metrics

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// other is the label value of unknown models.
const other = "other"

// Label limits the values of the label model_id: unknown models share the value other.
type Label func(model string) string

// Metrics holds the metrics of one process.
type Metrics struct {
	label Label

	approvalEvents  *prometheus.CounterVec
	approvalsGone   prometheus.Counter
	breakerOpens    prometheus.Counter
	retrains        *prometheus.CounterVec
	dispatchSeconds prometheus.Histogram
	runs            *prometheus.CounterVec
	promotions      *prometheus.CounterVec
	drift           *prometheus.GaugeVec
	driftLevel      *prometheus.GaugeVec
	webhooks        *prometheus.CounterVec
}

// New registers the metrics.
func New(reg prometheus.Registerer, label Label) *Metrics {
	m := &Metrics{
		label: label,
		approvalEvents: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "platform_approval_events_total", Help: "Moves of approval records, by action.",
		}, []string{"action", "model_id"}),
		approvalsGone: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "platform_approvals_expired_total", Help: "Approval records that expired, by age or because they were superseded.",
		}),
		breakerOpens: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "platform_orchestrator_breaker_opens_total", Help: "Times this process saw the orchestrator's breaker open.",
		}),
		retrains: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "platform_retrain_requests_total", Help: "Dispatches of training runs, by outcome: ok or the error's code.",
		}, []string{"model_id", "dataset", "outcome"}),
		dispatchSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "platform_retrain_dispatch_seconds", Help: "Time until the orchestrator accepted a run or the dispatch was given up.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15},
		}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "platform_runs_total", Help: "Training runs that ended, by state.",
		}, []string{"model_id", "state"}),
		promotions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "platform_promotions_total", Help: "Promotions that ended, and denials, by outcome.",
		}, []string{"outcome"}),
		webhooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "platform_webhook_total", Help: "Deliveries of push webhooks, by outcome: accepted, duplicate, skipped or the error's code.",
		}, []string{"forge", "outcome"}),
		drift: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "platform_drift_z", Help: "Standard deviations between recent predictions and their baseline, reported by the leader; +Inf where critical drift has no number.",
		}, []string{"model_id", "alias"}),
		driftLevel: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "platform_drift_overall", Help: "Level of the worst measure of drift, reported by the leader: 0 OK, 1 WARNING, 2 CRITICAL, 3 CORRUPT; absent where nothing was compared.",
		}, []string{"model_id", "alias"}),
	}
	for _, outcome := range promotionOutcomes {
		m.promotions.WithLabelValues(outcome)
	}
	for _, forge := range []string{"forge-a", "forge-b"} {
		for _, outcome := range webhookOutcomes {
			m.webhooks.WithLabelValues(forge, outcome)
		}
	}
	m.ExpectModel(other)
	m.Expect(other, other)
	reg.MustRegister(m.approvalEvents, m.approvalsGone, m.breakerOpens, m.retrains, m.dispatchSeconds, m.runs, m.promotions, m.webhooks, m.drift, m.driftLevel)
	return m
}

// Approval counts state changes of records.
func (m *Metrics) Approval(action, model string, n int) {
	m.approvalEvents.WithLabelValues(action, m.label(model)).Add(float64(n))
	if action == "expired" {
		m.approvalsGone.Add(float64(n))
	}
}

// BreakerOpened counts an opening of the breaker.
func (m *Metrics) BreakerOpened() { m.breakerOpens.Inc() }

// Dispatch counts one dispatch; the outcome is ok or the code of the error.
func (m *Metrics) Dispatch(model, dataset, outcome string, took time.Duration) {
	label := m.label(model)
	if label == other {
		dataset = label // of an unknown model, so unbounded as well
	}
	m.retrains.WithLabelValues(label, dataset, outcome).Inc()
	m.dispatchSeconds.Observe(took.Seconds())
}

// Drifted describes the drift of a model's predictions under an alias.
type Drifted struct {
	Model, Alias string
	Z            *float64 // nil where it is not a number
	Critical     bool     // by z alone
	Overall      string   // level of the worst measure
}

// driftLevels are the values of platform_drift_overall.
var driftLevels = map[string]float64{"OK": 0, "WARNING": 1, "CRITICAL": 2, "CORRUPT": 3}

// Drift sets the metrics of one model and alias.
func (m *Metrics) Drift(d Drifted) {
	switch {
	case d.Z != nil:
		m.drift.WithLabelValues(m.label(d.Model), d.Alias).Set(*d.Z)
	case d.Critical:
		m.drift.WithLabelValues(m.label(d.Model), d.Alias).Set(math.Inf(1))
	}
	if level, ok := driftLevels[d.Overall]; ok {
		m.driftLevel.WithLabelValues(m.label(d.Model), d.Alias).Set(level)
	}
}

// ForgetDrift removes all metrics set by Drift: before a new read, or when another replica reads drift.
func (m *Metrics) ForgetDrift() {
	m.drift.Reset()
	m.driftLevel.Reset()
}

// Label values of counters created at the start, at 0: a rate over a counter that begins at its first event misses that
// event.
var (
	approvalActions   = []string{"created", "approved", "rejected", "expired", "dispatch_failed"}
	promotionOutcomes = []string{"promoted", "failed", "rejected", "expired", "superseded", "denied", "rolled_back"}
	runStates         = []string{"COMPLETED", "FAILED", "CANCELLED", "CRASHED"}
	webhookOutcomes   = []string{"accepted", "duplicate", "skipped", fault.InvalidWebhookProof.Code, fault.WebhookSecretMissing.Code, fault.WebhooksBusy.Code}
)

// ExpectModel creates the counters of a known model, at 0.
func (m *Metrics) ExpectModel(model string) {
	label := m.label(model)
	for _, action := range approvalActions {
		m.approvalEvents.WithLabelValues(action, label)
	}
	for _, state := range runStates {
		m.runs.WithLabelValues(label, state)
	}
}

// Expect creates the dispatch counters of a known model, at 0: the rate of a counter that begins at its first error
// misses that error.
func (m *Metrics) Expect(model, dataset string) {
	for _, outcome := range []string{"ok", fault.OrchestratorUnreachable.Code, fault.OrchestratorRejected.Code, fault.DispatchTargetMissing.Code} {
		m.retrains.WithLabelValues(m.label(model), dataset, outcome)
	}
}

// Run counts an ended run.
func (m *Metrics) Run(model, state string) { m.runs.WithLabelValues(m.label(model), state).Inc() }

// Promotion counts an ended promotion or a denial.
func (m *Metrics) Promotion(outcome string) { m.promotions.WithLabelValues(outcome).Inc() }

// Webhook counts one delivery.
func (m *Metrics) Webhook(forge, outcome string) { m.webhooks.WithLabelValues(forge, outcome).Inc() }

// Stored reads gauges from the store at each scrape. If the store cannot be read, it reports the last values and counts
// an error: a scrape never fails.
type Stored struct {
	store *store.Store
	now   func() time.Time
	log   *slog.Logger

	pending, oldest, errors *prometheus.Desc

	mu     sync.Mutex // guards those below
	last   gauges
	faults float64
}

type gauges struct {
	pending int64
	oldest  time.Duration
}

// NewStored registers the gauges.
func NewStored(reg prometheus.Registerer, s *store.Store, now func() time.Time, log *slog.Logger) {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	reg.MustRegister(&Stored{
		store: s, now: now, log: log,
		pending: desc("platform_approvals_pending", "Approval records that wait for a decision."),
		oldest:  desc("platform_approval_age_oldest_seconds", "Age of the oldest pending approval record; 0 without one."),
		errors:  desc("platform_scrape_errors_total", "Scrapes that returned the last values because the store could not be read."),
	})
}

// Describe is part of prometheus.Collector.
func (s *Stored) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.pending, s.oldest, s.errors} {
		ch <- d
	}
}

// scrapeTimeout limits one read of the store.
const scrapeTimeout = 3 * time.Second

// Collect is part of prometheus.Collector.
func (s *Stored) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	g, err := s.read(ctx)
	s.mu.Lock()
	if err != nil {
		s.faults++
		g = s.last
		s.log.Warn("metrics: store not readable", slog.Any("err", err))
	}
	s.last = g
	faults := s.faults
	s.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(s.pending, prometheus.GaugeValue, float64(g.pending))
	ch <- prometheus.MustNewConstMetric(s.oldest, prometheus.GaugeValue, g.oldest.Seconds())
	ch <- prometheus.MustNewConstMetric(s.errors, prometheus.CounterValue, faults)
}

func (s *Stored) read(ctx context.Context) (g gauges, err error) {
	row, err := s.store.PendingApprovals(ctx)
	switch {
	case err == nil:
		g.pending, g.oldest = row.Pending, max(0, s.now().Sub(row.Oldest))
	case !store.None(err):
		return g, err
	}
	return g, nil
}
