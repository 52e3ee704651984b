package investigate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// TestMeasuredByTheirLabels: a query selects by the labels that hold the names, whatever they are called.
func TestMeasuredByTheirLabels(t *testing.T) {
	t.Parallel()
	pods := turn.MetricLabels{Namespace: "kubernetes_namespace", Pod: `"k8s.pod.name"`, All: []string{"kubernetes_namespace", `"k8s.pod.name"`}}
	namespaces := turn.MetricLabels{Namespace: "tenant", All: []string{"tenant"}}
	elsewhere := turn.MetricLabels{All: []string{"instance", "job"}}
	for _, c := range []struct {
		query     string
		labels    turn.MetricLabels
		asks, say string
	}{
		{"what is the error rate of till?", pods, `sum by (kubernetes_namespace) (rate(http_requests_total{kubernetes_namespace=~"bakery","k8s.pod.name"=~"till-1-abcde"}[5m]))`, "ended with 5xx"},
		{"what is the error rate?", namespaces, `sum by (tenant) (rate(http_requests_total{tenant=~"bakery"}[5m]))`, "ended with 5xx"},
		{"what is the latency?", turn.MetricLabels{Pod: "behaelter", All: []string{"behaelter"}}, `sum by (behaelter, le) (rate(http_request_duration_seconds_bucket{behaelter=~"oven-1-fghij|till-1-abcde"}[5m]))`, "99th percentile"},
		{"what is the error rate of till?", namespaces, "", "Not measured: the metrics store's series of `http_requests_total` carry no label with the name of a pod of deployment `till`"},
		{"what is the error rate of pod till-1-abcde?", elsewhere, "", "carry no label with the name of pod `till-1-abcde`"},
		{"what is the error rate?", elsewhere, "", "carry no label with the name of namespace `bakery` or of a pod in it; their labels are `instance`, `job`."},
		{"what is the latency?", turn.MetricLabels{}, "", "Not measured: the metrics store has no series of `http_request_duration_seconds_bucket`."},
	} {
		b := withoutMetrics(readFixture(t, "", "variable"), nil)
		b.labels = func(string, []types.NamespacedName) (turn.MetricLabels, error) { return c.labels, nil }
		read, asked := b.run, ""
		b.run = func(ctx context.Context, op operation.Operation) (turn.Output, error) {
			if op.Verb == operation.QueryPrometheus {
				asked = op.PromQL
				return turn.Output{Text: "{} 0.5"}, nil
			}
			return read(ctx, op)
		}
		a := askOnce(t, b, "bakery", c.query)
		checkAnswer(t, c.query, a, []string{c.say}, nil)
		if c.asks == "" && asked != "" || !strings.Contains(asked, c.asks) {
			t.Errorf("%q asks %s; want %q in it", c.query, asked, c.asks)
		}
	}
}

// TestPodsThatLabelsAreFoundBy: where all namespaces are asked about, each has a pod among those that are looked for.
func TestPodsThatLabelsAreFoundBy(t *testing.T) {
	t.Parallel()
	b := withoutMetrics(readFixture(t, "", "variable"), nil)
	var looked []types.NamespacedName
	b.labels = func(_ string, pods []types.NamespacedName) (turn.MetricLabels, error) {
		looked = pods
		return turn.MetricLabels{}, nil
	}
	for query, want := range map[string][]types.NamespacedName{
		"what is the error rate in all namespaces?": {{Namespace: "bakery", Name: "oven-1-fghij"}},
		"what is the error rate of till?":           {{Namespace: "bakery", Name: "till-1-abcde"}},
	} {
		askOnce(t, b, "", query)
		if !slices.Equal(looked, want) {
			t.Errorf("%q looks for %v; want %v", query, looked, want)
		}
	}
}
