package question

import (
	"regexp"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// Many verbs of change are nouns as well: "restart count of cart" is about restarts, "restart the pods of cart" is a
// request. The words after the verb decide.

// measures are nouns that make a noun of the verb before them.
var measures = Words(`count counts number numbers total totals sum rate rates ratio ratios frequency frequencies history histories status state states reason reasons
	cause causes time times timing duration durations trend trends statistics statistic stats policy policies limit limits threshold thresholds target
	targets event events progress plan plans impact effect effects log logs behaviour behavior order strategy interval intervals window windows average
	maximum minimum percentage percent permission permissions rights protection level selector signal flag type size range list cases case`)

// owned are the nouns that may come between a verb and "of", by verb: "set replicas of cart to 3", "pause rollout of
// web".
var owned = map[operation.Verb]map[string]bool{
	anything:               Words("replicas image images memory mem ram cpu limit limits request requests tag version variable env environment"),
	operation.SetResources: Words("replicas memory mem ram cpu limit limits request requests resources"),
	operation.Scale:        Words("replicas instances copies"),
	operation.Restart:      Words("replicas instances rollout deploy"),
	operation.Undo:         Words("rollout release update deploy revision version"),
	operation.Pause:        Words("rollout rollouts release update schedule"),
	operation.Resume:       Words("rollout rollouts release update schedule"),
	operation.Suspend:      Words("schedule runs rollout"),
}

// forWhom may follow "for" after an order.
var forWhom = Words("me us now good real the safety today")

var (
	plainWordExpr = regexp.MustCompile(`^[a-z]+$`)
	// habitExpr matches statements about what happens, not requests.
	habitExpr = Pattern(wordlist.AnyOf(
		`\b(again and again|over and over|(give|run|walk|talk|update) (me|us)|right)$`,
		`^(give|run|walk|talk|update) (me|us)\b`, `^make sense\b`, `^apply to\b`,
	))
)

// speaksOfChange reports whether a clause that begins with a verb of change mentions changes but requests none. noun
// means that words before it made a noun of the verb: "do a restart".
func speaksOfChange(s sentence, verb operation.Verb, noun bool) bool {
	if s.words[0].spoken || habitExpr.MatchString(s.low) {
		return true
	}
	rest := s.words[1:]
	second := s.starts("roll back") || s.starts("roll out") || s.starts("rolling restart") || s.starts("rolling update") ||
		s.words[0].low == "rollout" && len(rest) > 0 && verbs[rest[0].low] != ""
	if second {
		verb, rest = chooseVerb(s.words[0].low == "rollout", verbs[rest[0].low], verb), rest[1:]
		if s.starts("roll back") || s.starts("rollout undo") {
			verb = operation.Undo
		}
	}
	article := false
	for len(rest) > 0 && articles[rest[0].low] {
		article, rest = true, rest[1:]
	}
	if len(rest) == 0 || rest[0].quoted {
		return false
	}
	head := rest[0].low
	next := ""
	if len(rest) > 1 {
		next = rest[1].low
	}
	valued := verb == anything || verb == operation.SetResources || verb == operation.Scale
	switch {
	case head == "of":
		return !noun && !second
	case head == "in" && next != "" && verb == operation.SetResources:
		return true // "increase in memory"
	case kindOf(head) == "event":
		return true
	case (head == "number" || head == "count") && valued:
		return next == "of" && !slices.ContainsFunc(rest, func(w word) bool { return w.low == "replicas" || w.low == "pods" || w.low == "instances" })
	case owned[verb][head], kindOf(head) != "":
		return false
	case verb == "" && (symptomsOf(head) != nil || troubleWords[head]):
		return false
	case measures[head]:
		return !valued || !article
	}
	if article || !plainWordExpr.MatchString(head) || len(rest) < 3 {
		return false
	}
	return next == "of" || next == "for" && !forWhom[rest[2].low]
}

func chooseVerb(is bool, yes, no operation.Verb) operation.Verb {
	if is {
		return yes
	}
	return no
}
