package telemetry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
)

// maxExplained limits the selectors of a query that are looked into.
const maxExplained = 2

// explainNothing tells a metric that is not there, and one whose series carry other labels, from a condition that nothing
// meets: only the last of them is an answer, and none of them is zero. A store that fails meanwhile explains nothing.
func (p *Prometheus) explainNothing(ctx context.Context, promql string, hidden Hidden) string {
	var b strings.Builder
	for _, selector := range selectors(promql) {
		if matched, err := p.sample(ctx, selector, hidden); err != nil || matched != nil {
			continue
		}
		metric, _, _ := strings.Cut(selector, "{")
		switch other, err := p.sample(ctx, metric, hidden); {
		case err != nil:
		case other == nil:
			fmt.Fprintf(&b, "Not measured: the store has no series of %s now.\n", metric)
		default:
			fmt.Fprintf(&b, "Not measured: no series of %s has these labels now; one that is there is %s.\n", metric, formatMetric(other))
		}
	}
	return b.String()
}

// sample reads one series that a selector matches; nil if none does.
func (p *Prometheus) sample(ctx context.Context, selector string, hidden Hidden) (model.Metric, error) {
	closed, err := hidden.close("topk(1, "+selector+")", true)
	if err != nil {
		return nil, err
	}
	value, _, _, err := p.api.Query(ctx, closed, p.now())
	if err != nil {
		return nil, err
	}
	vector, _ := value.(model.Vector)
	at := slices.IndexFunc(vector, func(s *model.Sample) bool { return s != nil && !isHiddenSeries(s.Metric, hidden) })
	if at < 0 {
		return nil, nil
	}
	return vector[at].Metric, nil
}

// selectors are the first of a query that name a metric and have matchers.
func selectors(promql string) []string {
	var found []string
	for rest := promql; rest != "" && len(found) < maxExplained; {
		token := rest[:tokenLength(rest)]
		rest = rest[len(token):]
		if !isWord(token[0]) || !strings.HasPrefix(rest, "{") {
			continue
		}
		end := indexOutside(rest[1:], '}')
		if end < 0 {
			return found // the store refuses such a query
		}
		if selector := token + rest[:end+2]; !slices.Contains(found, selector) {
			found = append(found, selector)
		}
		rest = rest[end+2:]
	}
	return found
}
