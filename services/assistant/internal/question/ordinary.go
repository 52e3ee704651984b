package question

import (
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// states are the values of kubectl's STATUS column, and reasons of events: words of a question, never a name.
var states = Words(`containercreating crashloopbackoff imagepullbackoff errimagepull errimageneverpull invalidimagename createcontainererror
	createcontainerconfigerror runcontainererror containercannotrun podinitializing evicted completed succeeded oomkilled notready unschedulable failedscheduling
	failedmount failedcreate failedattachvolume schedulingdisabled imageinspecterror deadlineexceeded backofflimitexceeded preempted nodelost unexpectedadmissionerror
	rest others another thats hours mins min secs sec hr hrs slowly slower faster flaky sluggish laggy unresponsive resolve resolving stateful log`)

// isNameInQuestion reports whether a word of a question can only be a name. Forms of ordinary words, such as "showing",
// and states cannot, though an object may have them as its name.
func isNameInQuestion(w word) bool {
	return isName(w) && (w.quoted || w.known || !states[w.low] && !isInflected(w.low))
}

// isNameAt reports whether the word at i of a question can only be a name, because of its letters or its place.
func isNameAt(words []word, taken []bool, i int) bool {
	return isNameInQuestion(words[i]) || mayBeName(words[i]) && standsAsName(words, taken, i)
}

// mayBeName reports whether a word is a name if it is in the place of one.
func mayBeName(w word) bool {
	if !operation.ValidName(w.low) || kindOf(w.low) != "" || states[w.low] || fillers[w.low] || isAmount(w.low) || isVersion(w.low) {
		return false
	}
	return w.known || !isReadAlone(w.low) && !isSuperlative(w.low) && symptomsOf(w.low) == nil && !badExpr.MatchString(w.low)
}

// beforeName are the words after which a form of an ordinary word, such as "accounting", is a name.
var beforeName = Words("about of with called named")

// standsAsName reports whether the word at i is in the place of a name: beside a kind word, or after a word that
// precedes names. Beside a plural it describes: "pods showing errors".
func standsAsName(words []word, taken []bool, i int) bool {
	oneOfKind := func(at int) bool {
		return at >= 0 && at < len(words) && !taken[at] && kindOf(words[at].low) != "" && !(strings.HasSuffix(words[at].low, "s") && kindOf(strings.TrimSuffix(words[at].low, "s")) != "")
	}
	if oneOfKind(i-1) || oneOfKind(i+1) && !(i+2 < len(words) && !taken[i+2] && isNameInQuestion(words[i+2])) {
		return true
	}
	at := i - 1
	for at >= 0 && articles[words[at].low] {
		at--
	}
	return at >= 0 && beforeName[words[at].low]
}

// joinPairs joins each kind that is written as two words, in a request only those before a name.
func (s sentence) joinPairs(request bool) sentence {
	var joined []word
	for i := 0; i < len(s.words); i++ {
		w := s.words[i]
		if i+1 < len(s.words) && !w.quoted && !s.words[i+1].quoted && (!request || i+2 < len(s.words) && isName(s.words[i+2])) {
			if kind, ok := pairs[w.low+" "+s.words[i+1].low]; ok {
				w.text, w.low = kind, kind
				i++
			}
		}
		joined = append(joined, w)
	}
	s.words = joined
	return s.from(0)
}

// readKinds replaces words that name workloads in a request, but kinds in a question: webhook, gateways and routes.
func (s sentence) readKinds() sentence {
	s.words = slices.Clone(s.words)
	for i, w := range s.words {
		switch {
		case w.quoted:
		case w.low == "gateways":
			s.words[i].low = gatewayWord
		case w.low == "routes":
			s.words[i].low = routeWord
		}
		if first, name, named := strings.Cut(w.low, "/"); !w.quoted && (first == "webhook" || first == "webhooks") {
			s.words[i].low = webhookWord
			if named {
				s.words[i].low += "/" + name
			}
		}
	}
	return s.from(0)
}

// titleEnds are endings of the nouns in alert titles: degradation, disruption, unreachability, absence, failure.
var titleEnds = []string{"ation", "ption", "ction", "sion", "ity", "ance", "ence", "ency", "ment", "ness", "ure", "outage", "errors"}

// titleStops are words that occur in sentences but not in titles.
var titleStops = Words("is are was were be been am do does did has have had can could will would should may might must what which who whom whose why how when where show list get give tell find explain describe check look see there it this that i we you my our")

// IsTitle reports whether words are the title of an alert, not a sentence: "partial service unreachability". The
// abstract nouns in it are no object names.
func IsTitle(words string) bool {
	const most = 8
	all := strings.Fields(words)
	if len(all) < 2 || len(all) > most || slices.ContainsFunc(all, func(word string) bool { return titleStops[word] }) {
		return false
	}
	return slices.ContainsFunc(all, isTitleNoun)
}

func isTitleNoun(word string) bool {
	return slices.ContainsFunc(titleEnds, func(end string) bool { return len(word) > len(end)+2 && strings.HasSuffix(word, end) })
}

// IsTitleWord reports whether a word of an alert's title is part of its wording: an abstract noun, or its adverb or
// adjective. Other words may be names, even ordinary ones.
func IsTitleWord(word string) bool {
	return isTitleNoun(word) || slices.ContainsFunc([]string{"ly", "ial", "ed", "ing"}, func(end string) bool { return len(word) > len(end)+3 && strings.HasSuffix(word, end) })
}
