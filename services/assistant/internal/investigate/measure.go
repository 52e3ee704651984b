package investigate

import (
	"context"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// metrics answers a question about errors or latency, and what is wrong besides.
func (w *work) metrics(ctx context.Context, a question.Ask, t *topic) error {
	w.synthesize()
	measured, err := w.measure(ctx, a, t)
	if err != nil {
		return err
	}
	if !measured {
		w.say("Not looked at, since nothing measures it here: how long requests take, how busy a CPU was, and delay or loss on the network between nodes. What the objects and the logs show:")
		t.unmeasured = true
		if a.Intent == question.Latency {
			a.Symptoms = append(slices.Clone(a.Symptoms), question.Slow)
		}
		return w.diagnose(ctx, a, t)
	}
	about, _ := t.found([]question.Symptom{question.Traffic, question.Crash})
	if len(about) > 0 {
		w.say(engine.Answer(t.snap, about))
	}
	return nil
}

// measure queries the metrics store with the names that most exporters use. measured is false if there is no store, or
// the query fails.
func (w *work) measure(ctx context.Context, a question.Ask, t *topic) (measured bool, err error) {
	where := ""
	if t.namespace != "" {
		where = `namespace="` + t.namespace + `"`
	}
	for _, r := range t.objects {
		where = strings.Join([]string{`namespace="` + r.Namespace + `"`, `pod=~"` + r.Name + `.*"`}, ",")
		break
	}
	join := func(more string) string { return strings.Trim(where+","+more, ",") }
	rate := func(more string) string { return "rate(http_requests_total{" + join(more) + "}[5m])" }
	// Exporters call the label code or status. The last part yields 0 for series without errors, which would be
	// missing.
	query, head := "sum by (namespace) ("+rate(`code=~"5.."`)+" or "+rate(`status=~"5.."`)+" or 0 * "+rate("")+") / sum by (namespace) ("+rate("")+")",
		"The share of requests that ended with 5xx in the last 5 minutes:"
	if a.Intent == question.Latency {
		query, head = `histogram_quantile(0.99, sum by (namespace, le) (rate(http_request_duration_seconds_bucket{`+where+`}[5m])))`, "The 99th percentile of request times in the last 5 minutes, in seconds:"
	}
	_, ok := w.call(ctx, operation.Operation{Verb: operation.QueryPrometheus, PromQL: query}, head)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if ok {
		w.say("This reads `http_requests_total` and `http_request_duration_seconds`; a program that exports other names is not in it.")
	}
	return ok, nil
}
