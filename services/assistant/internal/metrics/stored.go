package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// scrapeTimeout limits the time to read the store.
const scrapeTimeout = 3 * time.Second

// Stored reads gauges from the store at each scrape. When the store cannot be read, the last values are given and an error
// is counted: a scrape never fails.
type Stored struct {
	store *store.Store
	now   func() time.Time
	log   *slog.Logger

	pending, alerts, errors *prometheus.Desc

	mu     sync.Mutex // guards those below
	last   stored
	faults float64
}

// stored holds the counts that a scrape reads from the store.
type stored struct{ pending, alerts int64 }

// NewStored registers the gauges.
func NewStored(reg prometheus.Registerer, s *store.Store, now func() time.Time, log *slog.Logger) {
	reg.MustRegister(&Stored{
		store: s, now: now, log: log,
		pending: prometheus.NewDesc("assistant_pending_actions", "Actions waiting for a decision, across all replicas.", nil, nil),
		alerts:  prometheus.NewDesc("assistant_waiting_alerts", "Notifications of alert managers that wait or are being investigated, across all replicas.", nil, nil),
		errors:  prometheus.NewDesc("assistant_scrape_errors_total", "Scrapes that returned the previous values because the store could not be read.", nil, nil),
	})
}

// Describe is part of prometheus.Collector.
func (s *Stored) Describe(ch chan<- *prometheus.Desc) {
	ch <- s.pending
	ch <- s.alerts
	ch <- s.errors
}

// Collect is part of prometheus.Collector.
func (s *Stored) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	n, err := s.read(ctx)
	s.mu.Lock()
	if err != nil {
		s.faults++
		n = s.last
		s.log.Warn("metrics: store not readable", slog.Any("err", err))
	}
	s.last = n
	faults := s.faults
	s.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(s.pending, prometheus.GaugeValue, float64(n.pending))
	ch <- prometheus.MustNewConstMetric(s.alerts, prometheus.GaugeValue, float64(n.alerts))
	ch <- prometheus.MustNewConstMetric(s.errors, prometheus.CounterValue, faults)
}

func (s *Stored) read(ctx context.Context) (n stored, err error) {
	if n.pending, err = s.store.CountPending(ctx, s.now()); err != nil {
		return n, err
	}
	n.alerts, err = s.store.CountAlertNotifications(ctx)
	return n, err
}
