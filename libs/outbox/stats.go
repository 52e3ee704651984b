package outbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Stats is the state of an outbox.
type Stats struct {
	Pending              int64   // not yet acknowledged, without poison
	Published            int64   // acknowledged and still kept
	Poison               int64   // given up
	OldestPendingSeconds float64 // 0 when nothing is pending
	LastError            string  // the error that the relay waits out now; empty while it works
}

// lateAfter is the age from which a waiting event is reported: a relay that works needs less than
// a second, one that has to leave a hung broker less than this.
const lateAfter = 15 * time.Second

// Fault describes why events wait, and since when; it is empty while none waits for long.
func (s Stats) Fault() string {
	waits := ""
	if s.Pending > 0 {
		age := time.Duration(s.OldestPendingSeconds * float64(time.Second)).Round(time.Second)
		waits = fmt.Sprintf("%d events wait in the outbox, the oldest for %s", s.Pending, age)
	}
	switch {
	case s.LastError != "" && waits != "":
		return s.LastError + "; " + waits
	case s.LastError != "":
		return s.LastError + "; events wait in the outbox"
	case s.OldestPendingSeconds > lateAfter.Seconds():
		return waits
	}
	return ""
}

// Stats counts the rows. Published may be a little old, see publishedRows.
func (r *Relay) Stats(ctx context.Context) (Stats, error) {
	counts, err := r.queries().CountUnpublished(ctx)
	if err != nil {
		return Stats{}, fmt.Errorf("outbox: count rows: %w", err)
	}
	s := Stats{Pending: counts.Pending, Poison: counts.Poison, OldestPendingSeconds: counts.OldestSeconds}
	if s.Published, err = r.publishedRows(ctx); err != nil {
		return Stats{}, fmt.Errorf("outbox: count published rows: %w", err)
	}
	if e := r.lastError.Load(); e != nil {
		s.LastError = *e
	}
	return s, nil
}

// count is a number of rows that is good enough until a time.
type count struct {
	rows  int64
	until time.Time
}

// countShare limits how long a count is used: this many times as long as it took. So counting
// takes a twentieth of the time at most, however many callers there are; a small table is counted
// again for almost every one.
const countShare = 20

func (r *Relay) publishedRows(ctx context.Context) (int64, error) {
	begin := time.Now()
	if c := r.counted.Load(); c != nil && begin.Before(c.until) {
		return c.rows, nil
	}
	rows, err := r.queries().CountPublished(ctx)
	if err != nil {
		return 0, err
	}
	end := time.Now()
	r.counted.Store(&count{rows: rows, until: end.Add(countShare * end.Sub(begin))})
	return rows, nil
}

// scrapeTimeout limits the count of rows for a scrape.
const scrapeTimeout = 2 * time.Second

type metrics struct {
	relay                           *Relay
	published, refused, republished prometheus.Counter
	rows, oldest                    *prometheus.Desc
	last                            atomic.Pointer[Stats]
}

func newMetrics(r *Relay, reg prometheus.Registerer) *metrics {
	m := &metrics{
		relay:       r,
		published:   prometheus.NewCounter(prometheus.CounterOpts{Name: "platform_outbox_published_total", Help: "Events that the broker acknowledged."}),
		refused:     prometheus.NewCounter(prometheus.CounterOpts{Name: "platform_outbox_refused_total", Help: "Tries that failed by the fault of the event itself."}),
		republished: prometheus.NewCounter(prometheus.CounterOpts{Name: "platform_outbox_republished_total", Help: "Acknowledged events that the stream had lost."}),
		rows:        prometheus.NewDesc("platform_outbox_rows", "Rows of the outbox.", []string{"state"}, nil),
		oldest:      prometheus.NewDesc("platform_outbox_oldest_pending_seconds", "Age of the oldest event that is not published.", nil, nil),
	}
	m.last.Store(&Stats{})
	if reg != nil {
		reg.MustRegister(m.published, m.refused, m.republished, m)
	}
	return m
}

// Describe is part of prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.rows; ch <- m.oldest }

// Collect counts the rows; when the database does not answer it repeats the last
// count, so that a scrape never fails.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	if s, err := m.relay.Stats(ctx); err == nil {
		m.last.Store(&s)
	}
	s := m.last.Load()
	for state, n := range map[string]int64{"pending": s.Pending, "published": s.Published, "poison": s.Poison} {
		ch <- prometheus.MustNewConstMetric(m.rows, prometheus.GaugeValue, float64(n), state)
	}
	ch <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, s.OldestPendingSeconds)
}
