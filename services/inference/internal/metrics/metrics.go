// Package metrics defines the inference service's metrics, under the names its alert rules use.
package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcomes of a prediction request: the label status of predict_requests_total. Invalid, Mismatch and
// NotFound are the caller's; Shed is the queue's bound.
const (
	Success = iota
	Invalid
	Mismatch
	NotFound
	Failed
	Timeout
	Shed
	outcomes
)

var names = [outcomes]string{"success", "invalid", "mismatch", "not_found", "error", "timeout", "shed"}

// Predictions are the counters of one model and alias, looked up once.
type Predictions struct {
	outcome [outcomes]prometheus.Counter
	Seconds prometheus.Observer // of successful predictions, body read to answer written
	// Probes counts requests of tools that test whether the model answers: they are no use of it, and not counted
	// elsewhere.
	Probes *Predictions
}

// Count adds one request with that outcome.
func (p *Predictions) Count(outcome int) { p.outcome[outcome].Inc() }

// Set is all of the service's metrics but those of HTTP itself.
type Set struct {
	requests *prometheus.CounterVec
	probes   *prometheus.CounterVec
	seconds  *prometheus.HistogramVec

	BatchRows        prometheus.Histogram
	Reloads          *prometheus.CounterVec // status loaded, unloaded, failed, unreachable; via poll, event, request, start, version
	SnapshotRows     prometheus.Counter
	SnapshotDropped  prometheus.Counter
	EventsDropped    prometheus.Counter
	DriftEvaluations *prometheus.CounterVec // status ok, failed
	TrafficFallback  *prometheus.CounterVec // model, alias that the rules chose
	Shadows          *prometheus.CounterVec // model, alias, status success, mismatch, error, timeout, dropped, not_loaded
	TakenOut         *prometheus.CounterVec // model
	trials           *prometheus.CounterVec // status passed, refused

	mu    sync.Mutex // guards cache
	cache map[[2]string]*Predictions
}

// Other replaces the names of models that are not loaded: callers must not create label values.
const Other = "other"

// New registers the metrics.
func New(reg prometheus.Registerer) *Set {
	s := &Set{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "predict_requests_total", Help: "Prediction requests by outcome."}, []string{"model", "alias", "status"}),
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "predict_probes_total", Help: "Probes by outcome: prediction requests that leave no snapshot and are in no other prediction metric."}, []string{"model", "alias", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "predict_seconds", Help: "Time of successful predictions, from the request's header to its answer.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 3, 10, 30}}, []string{"model", "alias"}),
		BatchRows: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "batch_rows", Help: "Rows that one run of a model answered.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128}}),
		Reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "reload_total", Help: "Aliases loaded, unloaded or failed to load, and scans that found the tracker unreachable."}, []string{"status", "via"}),
		SnapshotRows: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "snapshot_rows_total", Help: "Prediction snapshots written."}),
		SnapshotDropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "snapshot_dropped_total", Help: "Prediction snapshots dropped: the queue was full, or the database refused them."}),
		EventsDropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "inference_events_dropped_total", Help: "Load events dropped because the database stayed away too long."}),
		DriftEvaluations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "drift_evaluations_total", Help: "Drift evaluations by the leader."}, []string{"status"}),
		TrafficFallback: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "traffic_fallback_total", Help: "Requests that got Production because the alias that the traffic rules chose was not loaded."}, []string{"model", "alias"}),
		Shadows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shadow_total", Help: "Requests that the shadow rules chose to be scored once more, by outcome."}, []string{"model", "alias", "status"}),
		TakenOut: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "model_taken_out_total", Help: "Copies taken out of service because a run took too long."}, []string{"model"}),
		trials: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "model_trials_total", Help: "Trials of models in a process of their own, before they are loaded."}, []string{"status"}),
		cache: map[[2]string]*Predictions{},
	}
	reg.MustRegister(s.requests, s.probes, s.seconds, s.BatchRows, s.Reloads, s.SnapshotRows, s.SnapshotDropped, s.EventsDropped, s.DriftEvaluations, s.TrafficFallback, s.Shadows, s.TakenOut, s.trials)
	return s
}

// How the trial of a model ends; that of a known one has passed before.
const (
	TrialPassed  = "passed"
	TrialRefused = "refused"
	TrialKnown   = "known"
)

// CountTrial counts one trial of a model.
func (s *Set) CountTrial(status string) { s.trials.WithLabelValues(status).Inc() }

// For returns the counters of a loaded model and alias ("" for raw versions).
func (s *Set) For(model, alias string) *Predictions {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{model, alias}
	if p := s.cache[key]; p != nil {
		return p
	}
	p := &Predictions{
		Seconds: s.seconds.WithLabelValues(model, alias),
		Probes:  &Predictions{Seconds: prometheus.ObserverFunc(func(float64) {})},
	}
	for i, name := range names {
		p.outcome[i] = s.requests.WithLabelValues(model, alias, name)
		p.Probes.outcome[i] = s.probes.WithLabelValues(model, alias, name)
	}
	s.cache[key] = p
	return p
}
