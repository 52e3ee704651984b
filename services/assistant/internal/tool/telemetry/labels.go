package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

const (
	scraped    = 10 * time.Minute // series of this time count
	keepLabels = 5 * time.Minute  // a relabelling of the scrapes shows after it
	maxKept    = 256              // findings that are kept
	maxPods    = 20               // pods that a label is looked for with
	maxMatches = 1000             // series that are compared
)

// keptLabels holds the latest findings, since a conversation comes back to the same pods.
type keptLabels struct {
	mu  sync.Mutex
	all map[string]keptFinding // guarded by mu
}

type keptFinding struct {
	until  time.Time
	labels turn.MetricLabels
}

func (k *keptLabels) find(key string, now time.Time) (turn.MetricLabels, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.all[key]
	return found.labels, ok && now.Before(found.until)
}

func (k *keptLabels) keep(key string, labels turn.MetricLabels, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= maxKept {
		k.all = map[string]keptFinding{}
	}
	k.all[key] = keptFinding{now.Add(keepLabels), labels}
}

// Labels finds the labels of a metric's series whose values are names: those of some pods, and of their namespaces. How
// a label is spelled depends on who configured the scrapes, so only its values tell. known are all pods of the cluster.
func (p *Prometheus) Labels(ctx context.Context, metric string, pods, known []types.NamespacedName, hidden Hidden) (turn.MetricLabels, error) {
	if p == nil {
		return turn.MetricLabels{}, notConfigured("metrics store", "PROMETHEUS_URL")
	}
	pods = pods[:min(len(pods), maxPods)]
	key := fmt.Sprint(metric, pods, hidden)
	if kept, ok := p.kept.find(key, p.now()); ok {
		return kept, nil
	}
	selector, err := hidden.close("{__name__="+strconv.Quote(metric)+"}", true)
	if err != nil {
		return turn.MetricLabels{}, err
	}
	all, _, _, err := p.api.LabelNames(ctx, []string{selector}, p.now().Add(-scraped), p.now())
	if err != nil {
		return turn.MetricLabels{}, failedQuery(err)
	}
	all = slices.DeleteFunc(all, func(l model.LabelName) bool { return l == model.MetricNameLabel })
	found := turn.MetricLabels{All: make([]string, len(all))}
	for i, l := range all {
		found.All[i] = writeLabel(l)
	}
	search := labelSearch{p: p, metric: metric, labels: all, hidden: hidden, about: newNameSet(pods), others: newNameSet(spread(known)), known: newNameSet(known)}
	pod, namespace, err := search.run(ctx)
	if err != nil {
		return turn.MetricLabels{}, failedQuery(err)
	}
	found.Pod, found.Namespace = writeLabel(pod), writeLabel(namespace)
	if namespace != "" { // what is missing may be scraped a moment later
		p.kept.keep(key, found, p.now())
	}
	return found, nil
}

// nameSet holds the names of pods and of their namespaces.
type nameSet struct {
	both             map[types.NamespacedName]bool
	pods, namespaces map[string]bool
}

func newNameSet(pods []types.NamespacedName) nameSet {
	n := nameSet{map[types.NamespacedName]bool{}, map[string]bool{}, map[string]bool{}}
	for _, p := range pods {
		n.both[p], n.pods[p.Name], n.namespaces[p.Namespace] = true, true, true
	}
	return n
}

// spread takes a pod of each namespace, up to maxPods.
func spread(pods []types.NamespacedName) []types.NamespacedName {
	seen := map[string]bool{}
	var some []types.NamespacedName
	for _, p := range pods {
		if !seen[p.Namespace] && len(some) < maxPods {
			some = append(some, p)
			seen[p.Namespace] = true
		}
	}
	return some
}

// labelSearch is the search for the labels of one metric.
type labelSearch struct {
	p      *Prometheus
	metric string
	labels model.LabelNames
	hidden Hidden
	// about are the names that a label must have values of, others some to compare with, known all.
	about, others, known nameSet
}

// run looks for pods first: their names mean nothing else, while a namespace is often called like an app or a job.
func (s labelSearch) run(ctx context.Context) (pod, namespace model.LabelName, err error) {
	series, err := s.read(ctx, s.about.pods, s.others.pods)
	if err != nil {
		return "", "", err
	}
	pod = chooseLabel(series, func(_ model.LabelSet, v string) (bool, bool) { return s.about.pods[v], s.known.pods[v] })
	if pod != "" {
		namespace = chooseLabel(series, func(l model.LabelSet, v string) (bool, bool) {
			of := types.NamespacedName{Namespace: v, Name: string(l[pod])}
			return s.about.both[of], s.known.both[of]
		})
		return pod, namespace, nil
	}
	if series, err = s.read(ctx, s.about.namespaces, s.others.namespaces); err != nil {
		return "", "", err
	}
	namespace = chooseLabel(series, func(_ model.LabelSet, v string) (bool, bool) {
		return s.about.namespaces[v], s.known.namespaces[v]
	})
	return "", namespace, nil
}

// read reads the series of some names and, where there are any, those of others. It requests them separately, so that
// those of others do not use up the limit.
func (s labelSearch) read(ctx context.Context, about, others map[string]bool) ([]model.LabelSet, error) {
	series, err := s.holding(ctx, about)
	if err != nil || len(series) == 0 {
		return nil, err
	}
	more, err := s.holding(ctx, others)
	return append(series, more...), err
}

// holding reads the series of the metric that have one of some names in any label.
func (s labelSearch) holding(ctx context.Context, names map[string]bool) ([]model.LabelSet, error) {
	if len(names) == 0 || len(s.labels) == 0 {
		return nil, nil
	}
	var values []string
	for name := range names {
		values = append(values, regexp.QuoteMeta(name))
	}
	slices.Sort(values)
	var matches []string
	for _, l := range s.labels {
		match, err := s.hidden.close(fmt.Sprintf("{__name__=%q,%s=~%q}", s.metric, writeLabel(l), strings.Join(values, "|")), true)
		if err != nil {
			return nil, err
		}
		matches = append(matches, match)
	}
	now := s.p.now()
	series, _, _, err := s.p.api.Series(ctx, matches, now.Add(-scraped), now, v1.WithLimit(maxMatches))
	return slices.DeleteFunc(series, func(l model.LabelSet) bool { return isHiddenSeries(model.Metric(l), s.hidden) }), err
}

// chooseLabel returns the label with a value that is sought. Of several it is the one with the most values that are
// names and the fewest that are not: where a program reports about other pods, the label of its own pod has one value,
// and where an app has the name of a namespace, others do not. judge reports of a value whether it is sought, and
// whether it is a name.
func chooseLabel(series []model.LabelSet, judge func(l model.LabelSet, value string) (sought, name bool)) model.LabelName {
	type count struct {
		label         model.LabelName
		names, others map[string]bool
		sought        bool
	}
	counts := map[model.LabelName]*count{}
	for _, l := range series {
		for label, value := range l {
			c := counts[label]
			if c == nil {
				c = &count{label: label, names: map[string]bool{}, others: map[string]bool{}}
				counts[label] = c
			}
			sought, name := judge(l, string(value))
			c.sought = c.sought || sought
			if name {
				c.names[string(value)] = true
			} else {
				c.others[string(value)] = true
			}
		}
	}
	var fit []*count
	for _, c := range counts {
		if c.sought {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return ""
	}
	return slices.MinFunc(fit, func(a, b *count) int {
		return cmp.Or(cmp.Compare(len(b.names), len(a.names)), cmp.Compare(len(a.others), len(b.others)), cmp.Compare(a.label, b.label))
	}).label
}

// writeLabel writes a label as PromQL takes it: the names that OpenTelemetry gives have dots, and need quotes.
func writeLabel(l model.LabelName) string {
	if l == "" || model.LegacyValidation.IsValidLabelName(string(l)) {
		return string(l)
	}
	return strconv.Quote(string(l))
}
