// Package metrics holds the assistant's Prometheus metrics. The acting code updates counters; gauges are read from the
// store at each scrape. Every label has a closed set of values: names of verbs, states, codes and classes, never of
// sessions, callers or objects.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
)

// Metrics are the counters of one process.
type Metrics struct {
	engine string

	turns       *prometheus.CounterVec
	turnSeconds *prometheus.HistogramVec
	firstEvent  prometheus.Histogram
	streams     prometheus.Gauge
	toolCalls   *prometheus.CounterVec
	toolSeconds *prometheus.HistogramVec
	decisions   *prometheus.CounterVec
	executions  *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	redactions  *prometheus.CounterVec
	tokens      *prometheus.CounterVec
	matches     *prometheus.CounterVec
	alerts      *prometheus.CounterVec
}

// New registers the counters; engine names what answers questions in this process.
func New(reg prometheus.Registerer, engine string) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "assistant_" + name, Help: help}, labels)
	}
	m := &Metrics{
		engine: engine,
		turns:  counter("turns_total", "Answers that ended, by engine and outcome.", "engine", "outcome"),
		turnSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "assistant_turn_seconds", Help: "Time from a question to the end of its answer.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}, []string{"engine"}),
		firstEvent: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "assistant_first_event_seconds", Help: "Time from a request's header to the handshake of its stream.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}),
		streams:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "assistant_open_streams", Help: "Streams currently being sent."}),
		toolCalls: counter("tool_calls_total", "Reads of the cluster, by tool and outcome: ok, refused or failed.", "tool", "outcome"),
		toolSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "assistant_tool_seconds", Help: "Duration of a read from the cluster.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 30},
		}, []string{"tool"}),
		decisions:  counter("decisions_total", "Actions that left the state pending, by decision and its basis.", "decision", "basis"),
		executions: counter("executions_total", "Approved actions that were carried out, by result.", "result"),
		refusals:   counter("refusals_total", "Refusals by the rules, by reason.", "reason"),
		redactions: counter("redactions_total", "Redacted values, by kind.", "kind"),
		tokens:     counter("tokens_total", "Tokens of the language model, by kind: prompt or completion.", "kind"),
		matches:    counter("playbook_matches_total", "Findings of the playbooks, by class.", "class"),
		alerts:     counter("alerts_total", "Notifications of alert managers, by outcome: new, changed, resolved or repeated.", "outcome"),
	}
	reg.MustRegister(m.turns, m.turnSeconds, m.firstEvent, m.streams, m.toolCalls, m.toolSeconds, m.decisions, m.executions,
		m.refusals, m.redactions, m.tokens, m.matches, m.alerts)
	return m
}

// Turn counts an answer that ended.
func (m *Metrics) Turn(outcome string, took time.Duration) {
	m.turns.WithLabelValues(m.engine, outcome).Inc()
	m.turnSeconds.WithLabelValues(m.engine).Observe(took.Seconds())
}

// FirstEvent records the time until a stream's handshake was sent.
func (m *Metrics) FirstEvent(took time.Duration) { m.firstEvent.Observe(took.Seconds()) }

// StreamOpened counts a stream until closed is called.
func (m *Metrics) StreamOpened() (closed func()) {
	m.streams.Inc()
	return m.streams.Dec
}

// Tool counts one read of the cluster.
func (m *Metrics) Tool(tool, outcome string, took time.Duration) {
	m.toolCalls.WithLabelValues(tool, outcome).Inc()
	m.toolSeconds.WithLabelValues(tool).Observe(took.Seconds())
}

// Refused counts refusals; reason is the code of a rule or fault.
func (m *Metrics) Refused(reason string) { m.refusals.WithLabelValues(reason).Inc() }

// Redacted counts redacted values.
func (m *Metrics) Redacted(kind string, n int) { m.redactions.WithLabelValues(kind).Add(float64(n)) }

// Tokens counts the tokens that a language model used.
func (m *Metrics) Tokens(u chat.Usage) {
	m.tokens.WithLabelValues("prompt").Add(float64(u.PromptTokens))
	m.tokens.WithLabelValues("completion").Add(float64(u.CompletionTokens))
}

// Matched counts a finding of the playbooks.
func (m *Metrics) Matched(class string) { m.matches.WithLabelValues(class).Inc() }

// Alerted counts a notification that was taken in.
func (m *Metrics) Alerted(outcome string) { m.alerts.WithLabelValues(outcome).Inc() }

// Moved counts the decisions on actions and the ends of their executions.
func (m *Metrics) Moved(a action.Action) {
	switch a.State {
	case action.Approved, action.Denied, action.Expired, action.Stale:
		basis := string(a.Basis)
		if basis == "" {
			basis = "none" // nobody decided it
		}
		m.decisions.WithLabelValues(string(a.State), basis).Inc()
	case action.Succeeded, action.Failed, action.Unknown:
		m.executions.WithLabelValues(string(a.State)).Inc()
	}
}
