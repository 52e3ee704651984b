package stream

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	clients    prometheus.Gauge
	up         prometheus.Gauge
	events     prometheus.Counter
	unreadable prometheus.Counter
	deliveries prometheus.Counter
	drops      prometheus.Counter
	refused    prometheus.Counter
	ended      *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		clients: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "dashboard_stream_clients", Help: "Event streams that are open."}),
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "dashboard_stream_up", Help: "1 while the broker's events are read, else 0; clients then poll."}),
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "dashboard_stream_events_total", Help: "Events read from the broker for clients."}),
		unreadable: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "dashboard_stream_unreadable_total", Help: "Messages of the broker that are no event of this platform, or contradict their subject."}),
		deliveries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "dashboard_stream_deliveries_total", Help: "Events written to clients."}),
		drops: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "dashboard_stream_drops_total", Help: "Events that slow clients lost."}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "dashboard_stream_refused_total", Help: "Event streams refused because the broker was away or a limit was reached."}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dashboard_stream_ended_total", Help: "Event streams that ended: the reason of their bye, left (closed by the client) or stuck (a write timed out)."}, []string{"reason"}),
	}
	for _, c := range []prometheus.Collector{m.clients, m.up, m.events, m.unreadable, m.deliveries, m.drops, m.refused, m.ended} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
