package question

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// compoundExpr matches hyphenated English words, which are no names.
var compoundExpr = regexp.MustCompile(`^` + wordlist.AnyOf(
	`port-?forward\w*`, `non-\w+`, `crash-?loop\w*`, `cluster-wide`, `load-balancers?`, `node-ports?`, `dry-run`, `back-off`, `health-?checks?`, "plain-text", "hard-coded",
	"internet-facing", "out-of-memory", `roll-(out|back)s?`, `time-?outs?`, `stack-traces?`, "start-up", "not-ready", "read-only", `api-keys?`, "head-room", "how-to", `error-rates?`,
	`\w+-based`, `\w+-related`, "follow-up", "up-to-date", "multi-attach",
) + `$`)

// maskNames hides names from patterns: a word with a hyphen that is no English compound can only be a name, and "ready"
// in "cnt-ready" says nothing about readiness. The words themselves stay unchanged.
func (s sentence) maskNames() sentence {
	s.masked = map[string]string{}
	low := make([]string, len(s.words))
	for i, w := range s.words {
		low[i] = w.low
		if strings.Contains(w.low, "-") && isName(w) && !compoundExpr.MatchString(w.low) {
			low[i] = strings.ReplaceAll(w.low, "-", "_")
			s.masked[low[i]] = w.low
		}
	}
	s.low = strings.Join(low, " ")
	return s
}

// unmask returns a word of the masked sentence as it was written.
func (s sentence) unmask(word string) string {
	if name, ok := s.masked[word]; ok {
		return name
	}
	return word
}

// unmaskAll applies unmask to several words.
func (s sentence) unmaskAll(words []string) []string {
	words = slices.Clone(words)
	for i := range words {
		words[i] = s.unmask(words[i])
	}
	return words
}
