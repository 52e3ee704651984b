package investigate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// withoutMetrics is a Toolbox without a metrics store, whose pods have logs.
func withoutMetrics(s *engine.Snapshot, logs map[string]string) *tools {
	b := toolsOn(s)
	b.labels = func(string, []types.NamespacedName) (turn.MetricLabels, error) {
		return turn.MetricLabels{}, errors.New("No metrics store is configured; set PROMETHEUS_URL.")
	}
	b.run = func(_ context.Context, op operation.Operation) (turn.Output, error) {
		switch op.Verb {
		case operation.Logs:
			text := logs[op.Names[0]]
			return turn.Output{Text: text, Empty: text == ""}, nil
		}
		return turn.Output{Text: "NAME\n" + strings.Join(op.Names, "\n")}, nil
	}
	return b
}

// TestLatencyWithoutMetrics: latency that nothing measures is reported as not examined, and the objects are still
// judged.
func TestLatencyWithoutMetrics(t *testing.T) {
	t.Parallel()
	const notMeasured = "Not looked at, since nothing measures it here: how long requests take"
	s := readFixture(t, "", "variable")
	for query, must := range map[string][]string{
		"request latency of the services went up significantly": {notMeasured, "No object shows a fault"},
		"latency of till": {notMeasured},
	} {
		a := askOnce(t, withoutMetrics(s, nil), "bakery", query)
		checkAnswer(t, query, a, must, []string{"nothing was found wrong"})
		if n := strings.Count(a.text, "PROMETHEUS_URL"); n != 1 {
			t.Errorf("%q tells %d times that there is no metrics store, want once:\n%s", query, n, a.text)
		}
	}
	broken := readFixture(t, "", "a4_absent_tag")
	const query = "show the latency of requests"
	checkAnswer(t, query, askOnce(t, withoutMetrics(broken, nil), namespaceOf(broken), query), []string{notMeasured, "does not exist in its registry"}, nil)
}

// TestWayToAService: if a Service is well but its callers do not reach it, the answer names the way between them as not
// examined.
func TestWayToAService(t *testing.T) {
	t.Parallel()
	s := readFixture(t, "", "variable")
	line := "ERROR dial tcp 10.96.0.31:7000: i/o timeout\n"
	a := askOnce(t, withoutMetrics(s, map[string]string{"till-1-abcde": strings.Repeat(line, 3), "oven-1-fghij": "INFO ready\n"}), "bakery", "what is wrong?")
	checkAnswer(t, "what is wrong?", a, []string{"`10.96.0.31` is service `oven`", "The path from `node-1` was not examined: its kube-proxy"}, nil)
}

// TestHeadingOfAnAlert: the wording of an alert's heading gives no names, but names in it count.
func TestHeadingOfAnAlert(t *testing.T) {
	t.Parallel()
	s := readFixture(t, "", "variable")
	for _, query := range []string{"Partial service unreachability.", "Service quality degradation", "Severe connectivity disruption of services"} {
		checkAnswer(t, query, askOnce(t, withoutMetrics(s, nil), "bakery", query), nil, []string{"There is no", "Not understood"})
	}
	const query = "Why is the service pantry-7 down?"
	checkAnswer(t, query, askOnce(t, withoutMetrics(s, nil), "bakery", query), []string{"There is no service `pantry-7`"}, nil)
}

// TestConcludedFromLogs: logs of running pods lead to conclusions, not only to quotes.
func TestConcludedFromLogs(t *testing.T) {
	t.Parallel()
	s := readFixture(t, "", "variable")
	for line, say := range map[string]string{
		"ERROR SQLState 28000: Access denied for user 'till'@'10.0.0.11' (using password: YES)\n": "**1. Deployment `till` in namespace `bakery`: database**",
		"ERROR cannot connect to oven:7100: connection refused\n":                                 "calls port 7100 of the service `oven`, which does not have that port",
		"ERROR dial tcp: lookup ovens on 10.96.0.10:53: no such host\n":                           "there is no service `ovens` in namespace `bakery`",
	} {
		a := askOnce(t, withoutMetrics(s, map[string]string{"till-1-abcde": strings.Repeat(line, 3)}), "bakery", "what is wrong?")
		checkAnswer(t, line, a, []string{say, "One thing is wrong.", "The logs show problems:"}, []string{"No finding is about"})
	}
}

// TestInnocentServices: healthy Services named in variables take one line, since possibly none of them failed.
func TestInnocentServices(t *testing.T) {
	t.Parallel()
	s := readFixture(t, "", "variable")
	a := askOnce(t, withoutMetrics(s, map[string]string{"till-1-abcde": strings.Repeat("ERROR upstream request timeout\n", 3), "oven-1-fghij": "INFO ready\n"}), "bakery", "what is wrong?")
	checkAnswer(t, "what is wrong?", a, []string{"Variables name the services `oven`, which have ready endpoints", "kube-proxy"}, []string{"the variable `"})
}
