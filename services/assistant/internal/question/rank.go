package question

import (
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// Ranking is the order that a question about usage wants.
type Ranking struct {
	// Ranked reports that the question wants the first of the order: "which pod uses the most memory?"
	Ranked bool
	CPU    bool // else memory
	Least  bool
	By     string // the unit of the sums: pod, container, node, namespace or workload
}

var (
	leastExpr = Pattern(`\b` + wordlist.AnyOf("least", "lowest", "smallest", "fewest", "less") + `\b`)
	mostExpr  = Pattern(`\b` + wordlist.AnyOf("most", "top", "highest", "biggest", "largest", "greatest", "hogs?", "heaviest") + `\b`)
	cpuExpr   = Pattern(`\b(cpus?|cores?|processors?|compute)\b`)
)

// AskedRanking reads the order that a question wants.
func AskedRanking(a Ask) Ranking {
	r := Ranking{CPU: cpuExpr.MatchString(a.Words), Least: leastExpr.MatchString(a.Words), By: "pod"}
	r.Ranked = r.Least || mostExpr.MatchString(a.Words)
	words := strings.Fields(a.Words)
	for _, by := range []struct {
		name  string
		words []string
	}{
		{"node", []string{"node", "nodes"}}, {"namespace", []string{"namespace", "namespaces", "team", "teams"}}, {"container", []string{"container", "containers"}},
		{"workload", []string{"deployment", "deployments", "workload", "workloads", "app", "apps", "application", "service", "statefulset"}},
	} {
		if slices.ContainsFunc(by.words, func(w string) bool { return slices.Contains(words, w) }) && !slices.ContainsFunc(a.Mentions, func(m Mention) bool { return m.Kind == by.name }) {
			if by.name == "namespace" && a.Namespace != "" {
				continue // "in namespace shop"
			}
			r.By = by.name
			break
		}
	}
	return r
}
