package investigate

import (
	"cmp"
	"context"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
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

// measure queries the metrics store for the metrics that most exporters have. measured is false if there is no store, the
// query fails, or no series carries the name of the subject.
func (w *work) measure(ctx context.Context, a question.Ask, t *topic) (measured bool, err error) {
	metric := "http_requests_total"
	if a.Intent == question.Latency {
		metric = "http_request_duration_seconds_bucket"
	}
	where, by, ok, err := w.selectSeries(ctx, metric, t)
	if !ok {
		return false, err
	}
	join := func(more string) string { return strings.Trim(where+","+more, ",") }
	rate := func(more string) string { return "rate(http_requests_total{" + join(more) + "}[5m])" }
	// Exporters call the label code or status. The last part yields 0 for series without errors, which would be
	// missing.
	query, head := "sum by ("+by+") ("+rate(`code=~"5.."`)+" or "+rate(`status=~"5.."`)+" or 0 * "+rate("")+") / sum by ("+by+") ("+rate("")+")",
		"The share of requests that ended with 5xx in the last 5 minutes:"
	if a.Intent == question.Latency {
		query, head = `histogram_quantile(0.99, sum by (`+by+`, le) (rate(http_request_duration_seconds_bucket{`+where+`}[5m])))`, "The 99th percentile of request times in the last 5 minutes, in seconds:"
	}
	if _, ok = w.call(ctx, operation.Operation{Verb: operation.QueryPrometheus, PromQL: query}, head); ctx.Err() != nil {
		return false, ctx.Err()
	}
	if ok {
		w.say("This reads `http_requests_total` and `http_request_duration_seconds`; a program that exports other names is not in it.")
	}
	return ok, nil
}

// selectSeries writes the matchers of what was asked about, and the label to group by. It asks the store which labels hold
// the names, since those differ with who configured the scrapes. If ok is false, it has said what is missing.
func (w *work) selectSeries(ctx context.Context, metric string, t *topic) (where, by string, ok bool, err error) {
	pods := t.podNames()
	labels, err := w.tools.MetricLabels(ctx, metric, t.samplePods(pods), podNames(t.snap))
	if ctx.Err() != nil {
		return "", "", false, ctx.Err()
	}
	if err != nil {
		w.say(err.Error())
		return "", "", false, nil
	}
	if missing := describeMissing(metric, labels, t, pods); missing != "" {
		w.say(missing)
		return "", "", false, nil
	}
	var matchers []string
	if labels.Namespace != "" && (t.namespace != "" || len(t.objects) > 0) {
		matchers = append(matchers, labels.Namespace+"=~"+strconv.Quote(matchNamespaces(t, pods)))
	}
	if len(t.objects) > 0 || labels.Namespace == "" && t.namespace != "" {
		matchers = append(matchers, labels.Pod+"=~"+strconv.Quote(matchPods(pods)))
	}
	return strings.Join(matchers, ","), cmp.Or(labels.Namespace, labels.Pod), true, nil
}

// describeMissing returns why the store cannot identify the series in question; empty if it can.
func describeMissing(metric string, labels turn.MetricLabels, t *topic, pods []types.NamespacedName) string {
	carry := "Not measured: the metrics store's series of `" + metric + "` carry no label with the name of "
	others := "; their labels are " + engine.QuoteCodes(labels.All) + "."
	switch {
	case len(labels.All) == 0:
		return "Not measured: the metrics store has no series of `" + metric + "`."
	case len(pods) == 0:
		return "Not measured: there is no pod that ran."
	case len(t.objects) == 1 && t.objects[0].Kind == "Pod" && labels.Pod == "":
		return carry + t.subject() + others
	case len(t.objects) > 0 && labels.Pod == "":
		return carry + "a pod of " + t.subject() + others
	case labels.Pod == "" && labels.Namespace == "" && t.namespace != "":
		return carry + t.subject() + " or of a pod in it" + others
	case labels.Pod == "" && labels.Namespace == "":
		return carry + "a pod or a namespace" + others
	}
	return ""
}

// podNames are the pods that ran of what was asked about.
func (t *topic) podNames() []types.NamespacedName {
	var names []types.NamespacedName
	for _, log := range t.view().LogPods(math.MaxInt) {
		names = append(names, types.NamespacedName{Namespace: log.Namespace, Name: log.Pod})
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(names)
}

// samplePods returns one pod of each namespace where all are asked about, so that a few represent as many as possible.
func (t *topic) samplePods(pods []types.NamespacedName) []types.NamespacedName {
	if t.namespace != "" || len(t.objects) > 0 {
		return pods
	}
	return slices.CompactFunc(slices.Clone(pods), func(a, b types.NamespacedName) bool { return a.Namespace == b.Namespace })
}

// podNames are all pods of a cluster that have a name; those of hidden namespaces have none.
func podNames(s *engine.Snapshot) []types.NamespacedName {
	var names []types.NamespacedName
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Name != "" {
			names = append(names, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
		}
	}
	return names
}

// matchNamespaces is a regular expression of the namespaces of what was asked about.
func matchNamespaces(t *topic, pods []types.NamespacedName) string {
	if len(t.objects) == 0 {
		return t.namespace
	}
	var names []string
	for _, p := range pods { // in order
		names = append(names, p.Namespace)
	}
	return strings.Join(slices.Compact(names), "|")
}

// maxListedPods limits the pods that a query lists, since it repeats them and has a limit itself.
const maxListedPods = 20

// matchPods is a regular expression of the names of some pods: of many, of what their names begin with.
func matchPods(pods []types.NamespacedName) string {
	var names []string
	for _, p := range pods {
		names = append(names, regexp.QuoteMeta(p.Name))
	}
	if len(names) <= maxListedPods {
		return strings.Join(names, "|")
	}
	common := pods[0].Name
	for _, p := range pods {
		for !strings.HasPrefix(p.Name, common) {
			common = common[:len(common)-1]
		}
	}
	return regexp.QuoteMeta(common) + ".*"
}
