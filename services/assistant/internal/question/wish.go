package question

import (
	"regexp"
	"slices"
	"strings"
)

// participles are the forms in which a wish has a verb of change: "I want web restarted", "web should be scaled to 3".
var participles = participlesOf(verbs)

func participlesOf[V any](of map[string]V) map[string]string {
	forms := map[string]string{"gone": "delete", "undone": "undo", "rolled": "roll", "stopped": "stop", "dropped": "drop", "put": "put", "set": "set", "run": "run"}
	for verb := range of {
		if stem, mute := strings.CutSuffix(verb, "e"); mute {
			forms[stem+"ed"] = verb
		} else {
			forms[verb+"ed"] = verb
		}
	}
	return forms
}

// order is a request in other words: request is the one it stands for, with the groups of say.
type order struct {
	say     *regexp.Regexp
	request string
}

// reworded applies the orders of the vocabulary to a sentence.
func reworded(s sentence) sentence {
	if slices.ContainsFunc(s.words, func(w word) bool { return w.quoted || w.spoken }) {
		return s
	}
	for _, o := range orders {
		if text := s.text(); o.say.MatchString(text) {
			asks := s.asks
			s = readSentence(o.say.ReplaceAllString(text, o.request), s.named)
			s.asks = asks
		}
	}
	return s
}

// text returns the words of a sentence as written.
func (s sentence) text() string {
	texts := make([]string, len(s.words))
	for i, w := range s.words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

var (
	wishers = Words("i we")
	modals  = Words("should must needs need has have ought")
	nounsOf = Words("restart rollback redeploy reboot")
)

// imperative returns a wish as the request it stands for: "web should be restarted" as "restart web". Another sentence
// is returned unchanged.
func imperative(s sentence) sentence {
	if s.asks || len(s.words) < 2 {
		return s
	}
	s = reworded(s)
	if len(s.words) == 3 && s.words[0].known && s.words[1].low == "to" && countExpr.MatchString(s.words[2].low) {
		return s.reordered("scale", s.words)
	}
	words, wished := s.words, false
	if wishers[words[0].low] {
		switch {
		case words[1].low == "want" || words[1].low == "need":
			words, wished = words[2:], true
		case len(words) > 3 && words[1].low == "would" && (words[2].low == "like" || words[2].low == "love"):
			words, wished = words[3:], true
		default:
			return s
		}
	}
	if count, object, ok := readReplicas(words); ok {
		return s.reordered("scale", append(object, word{text: "to", low: "to"}, count))
	}
	for i := 1; i < len(words); i++ {
		object, rest := words[:i], words[i:]
		modal := modals[rest[0].low]
		has := rest[0].low == "has" || rest[0].low == "have"
		if modal {
			rest = rest[1:]
		}
		switch {
		case modal && len(rest) > 1 && rest[0].low == "to":
			rest = rest[1:]
		case has: // "web has 3 pods" states a fact
			continue
		}
		if len(rest) == 0 || !modal && !wished {
			continue
		}
		if count, none, ok := readReplicas(withoutVerb(rest)); ok && modal && len(none) == 0 {
			return s.reordered("scale", append(slices.Clone(object), word{text: "to", low: "to"}, count))
		}
		if len(rest) == 2 && modal && articles[rest[0].low] && nounsOf[rest[1].low] {
			return s.reordered(rest[1].low, object)
		}
		be := rest[0].low == "be"
		if be || wished && len(rest) > 2 && rest[0].low == "to" && rest[1].low == "be" {
			rest = rest[slices.IndexFunc(rest, func(w word) bool { return w.low == "be" })+1:]
		} else if !wished || modal {
			continue
		}
		if len(rest) > 0 && participles[rest[0].low] != "" && !rest[0].known {
			return s.reordered(participles[rest[0].low], slices.Concat(object, rest[1:]))
		}
	}
	return s
}

// isWish reports whether a request is worded as a wish.
func isWish(s sentence) bool {
	s = stripLead(s)
	return imperative(s).low != s.low
}

// withoutVerb removes the verb in "should have 3 replicas".
func withoutVerb(words []word) []word {
	if len(words) > 0 && (words[0].low == "have" || words[0].low == "run" || words[0].low == "get") {
		return words[1:]
	}
	return words
}

// readReplicas reads "3 replicas for web" as the number and the object, which may be missing.
func readReplicas(words []word) (count word, object []word, ok bool) {
	if len(words) < 2 || !countExpr.MatchString(words[0].low) || !isReplicas(words[1].low) {
		return word{}, nil, false
	}
	switch {
	case len(words) == 2:
		return words[0], nil, true
	case len(words) > 3 && (words[2].low == "for" || words[2].low == "of"):
		return words[0], slices.Clone(words[3:]), true
	}
	return word{}, nil, false
}

func isReplicas(low string) bool {
	return low == "replica" || low == "replicas" || low == "instances" || low == "copies" || kindOf(low) == "pod"
}

// reordered returns the sentence of a verb and the other words.
func (s sentence) reordered(verb string, rest []word) sentence {
	s.words = append([]word{{text: verb, low: verb}}, rest...)
	return s.from(0)
}

// particles follow the verb of an order: "turn off web".
var particles = Words("off on up down back away out")

// lightVerbs are the function words that are verbs of orders: "take the label off web".
var lightVerbs = Words("give make put let take turn move bring go run use")

// orderedExpr matches the words of an order that describe its object or its result, and so complain of nothing: "delete
// the broken pod", "set the log level to debug".
var orderedExpr = Pattern(`^\S+ (the |all |every |any )?(broken|failed|failing|crashed|crashing|stuck|dead|evicted|pending|unhealthy|terminating|missing) | to \S+$`)

// isOrder reports whether a sentence that no rule understands is most likely an order: it begins with a verb and its
// object, and neither asks nor complains.
func isOrder(s sentence) bool {
	s = reworded(stripLead(s))
	if s.asks || len(s.words) < 2 || negatedExpr.MatchString(s.low) || whyExpr.MatchString(s.low) {
		return false
	}
	first, next := s.words[0], s.words[1]
	_, changes := verbs[first.low]
	object := next.known || articles[next.low] || severals[next.low] || placeholders[next.low] // "delete the broken pod" complains of nothing
	if !(changes && object) && badExpr.MatchString(orderedExpr.ReplaceAllString(s.low, " ")) {
		return false
	}
	if changes && verbs[first.low] == "" {
		return false // "fix the broken pod" wants the diagnosis
	}
	if !changes && !lightVerbs[first.low] && symptomsOf(s.low) != nil && !quantityWords(s) {
		return false
	}
	switch {
	case first.known, first.quoted, kindOf(first.low) != "", asking[first.low] && first.low != "give", interrogatives[first.low], auxiliaries[first.low], isAmount(first.low), strings.HasSuffix(first.low, "s"),
		IsFunctionWord(first.low) && !lightVerbs[first.low]:
		return false
	case first.low == "give" && !next.known && !(articles[next.low] && len(s.words) > 2 && s.words[2].known):
		return false // "give me the pods"
	case next.known, articles[next.low] && !restricting[next.low], severals[next.low], changes && placeholders[next.low], lightVerbs[first.low] && particles[next.low]:
		return len(s.words) > 2 || next.known
	}
	return changes && first.low != "rollout" && kindOf(next.low) != ""
}

// quantityWords reports whether a sentence has an amount, so that "memory" in it is no symptom.
func quantityWords(s sentence) bool {
	return slices.ContainsFunc(s.words, func(w word) bool { return isAmountWord(w.low) })
}
