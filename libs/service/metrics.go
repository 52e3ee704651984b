package service

import (
	"errors"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are rate, errors and duration of each route. The label lookups of the
// Prometheus client are done once per route and status, not per request.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge

	routes atomic.Pointer[map[routeKey]*routeMetrics] // copied on write
	mu     sync.Mutex                                 // guards writing routes
}

type routeKey struct{ method, route string }

type routeMetrics struct {
	duration prometheus.Observer
	codes    [500]atomic.Pointer[prometheus.Counter] // by status - 100
}

// buckets in seconds: a prediction takes tens of microseconds, a dispatch seconds.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func newMetrics(reg *prometheus.Registry, name, version string) *metrics {
	registerRuntime(reg)
	labels := prometheus.Labels{"service": name}
	m := &metrics{
		requests: registerOrReuse(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "http_requests_total", Help: "Requests answered, by route and status.", ConstLabels: labels,
		}, []string{"method", "route", "status"})),
		duration: registerOrReuse(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_request_duration_seconds", Help: "Time from the request's header to the end of its answer.",
			ConstLabels: labels, Buckets: buckets,
		}, []string{"method", "route"})),
		inFlight: registerOrReuse(reg, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "http_requests_in_flight", Help: "Requests being answered.", ConstLabels: labels,
		})),
	}
	registerOrReuse(reg, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "platform_build_info", Help: "1; the version is a label.",
		ConstLabels: prometheus.Labels{"service": name, "version": version},
	})).Set(1)
	m.routes.Store(&map[routeKey]*routeMetrics{})
	return m
}

// registerOrReuse returns the collector that the registry already has under this
// description, or c.
func registerOrReuse[C prometheus.Collector](reg *prometheus.Registry, c C) C {
	if err := reg.Register(c); err != nil {
		var already prometheus.AlreadyRegisteredError
		if errors.As(err, &already) {
			if have, ok := already.ExistingCollector.(C); ok {
				return have
			}
		}
		panic(err) // two metrics of one name and different shape: a fault of the program
	}
	return c
}

// route resolves the labels of a route once. Patterns are few and methods are
// bounded, so the map cannot be grown from outside.
func (m *metrics) route(key routeKey) *routeMetrics {
	if r := (*m.routes.Load())[key]; r != nil {
		return r
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	have := *m.routes.Load()
	if r := have[key]; r != nil {
		return r
	}
	r := &routeMetrics{duration: m.duration.WithLabelValues(key.method, key.route)}
	next := maps.Clone(have)
	next[key] = r
	m.routes.Store(&next)
	return r
}

func (m *metrics) observe(method, route string, status int, took time.Duration) {
	key := routeKey{boundedMethod(method), route}
	if route == "" {
		key.route = "unmatched"
	}
	r := m.route(key)
	r.duration.Observe(took.Seconds())
	if status < 100 || status >= 600 {
		status = http.StatusInternalServerError
	}
	slot := &r.codes[status-100]
	c := slot.Load()
	if c == nil {
		counter := m.requests.WithLabelValues(key.method, key.route, strconv.Itoa(status))
		c = &counter
		slot.Store(c)
	}
	(*c).Inc()
}

func boundedMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}
