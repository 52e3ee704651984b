package question

import (
	"fmt"
	"slices"
	"strings"
)

// functionWords are the closed word classes of English: they connect a sentence and name nothing, so that a question is
// fully read if only they remain. Verbs of asking and of politeness are among them.
var functionWords = Words(`a an the this that these those some any all every each both either such own one ones
	i me my mine we us our ours you your yours he him his she her hers it its they them their theirs myself yourself itself themselves
	who whom whose what which where when why how there here
	am is are was were be been being do does did done doing have has had having can could may might must shall should will would let lets
	about across along among around as at by despite down for from
	in inside into like of off on onto or out per through throughout to toward towards up upon via
	with within and if so because while whether though although then else yet also too just even ever still already again
	now currently really very quite rather maybe perhaps actually exactly simply always often sometimes anymore today tonight lately recently last please pls thanks thank hey hi hello ok okay
	well yes yeah yep nope wait hm hmm um uh oh
	show list give get tell say see look find check explain describe know think want need help make take go going come seem seems look looks mean happen happens happened happening
	someone somebody something anyone anybody anything everyone everybody everything thing things stuff lot lots bit kind sort way
	right cluster kubernetes namespace fine good healthy alright ready up running run runs ran working work works looking doing
	use uses used using fronts selects exposes gets getting got gives giving given shows showing shown tells goes comes coming says said takes taking wants needs makes making`)

// restricting are the function words that deny, compare, order or exclude: "which services have nobody behind them" is
// not about all services.
var restricting = Words(`no not none neither nobody nothing never without unless except but than instead only same other another nor
	above across after against before behind below beside besides between beyond during over since till under until`)

// Amounts are never names; what they mean depends on the words beside them.
var _ = Words("many much few more most less least several")

// IsFunctionWord reports whether a word, in lower case, holds a sentence together and names nothing.
func IsFunctionWord(word string) bool { return functionWords[word] || restricting[word] }

// placeholder is a word that no rule reads; it is learned, so that it is no name either.
const placeholder = "qqq"

func init() { learn(placeholder) }

// Unread lists the words of a question that do not affect how it is read: with another word in their place, the answer
// is the same. "is checkout losing orders?" leaves "losing" and "orders": whether checkout is well answers something
// else. Function words are not listed, nor are names: known reports whether a word is a name, which only the cluster
// knows.
func Unread(message string, known Named) []string {
	s := readSentence(message, known)
	var content, small []int
	for i, w := range s.words {
		repeated := func(at int) bool { return s.words[at].low == w.low }
		switch {
		case functionWords[w.low], w.quoted, isAmount(w.low), known(w.low), slices.ContainsFunc(content, repeated), slices.ContainsFunc(small, repeated):
		case restricting[w.low]:
			small = append(small, i)
		default:
			content = append(content, i)
		}
	}
	if len(s.words) > mostAblated || len(message) > longestAblated { // which of them are used is unknown, so none counts as used
		return s.at(content)
	}
	full := readingOf(s.without(), known)
	bare := readingOf(s.without(content...), known)
	unread := slices.DeleteFunc(slices.Clone(content), func(i int) bool {
		others := slices.DeleteFunc(slices.Clone(content), func(at int) bool { return at == i })
		// Beside a word of the same meaning neither is missed, so each is also tried alone.
		return readingOf(s.without(i), known) != full || readingOf(s.without(others...), known) != bare
	})
	if len(unread) == 0 { // otherwise the small words belong to what is left out
		unread = slices.DeleteFunc(small, func(i int) bool { return readingOf(s.without(i), known) != full })
	}
	return s.at(unread)
}

// Unknown returns the words that no rule reads and that name nothing in the cluster: misspelt, or not understood.
func (a Ask) Unknown() []string {
	var unknown []string
	for _, w := range a.said.words {
		known := isRead(w.low) && !isMistypedKind(w.low) || isInflected(w.low) || w.known || kindOf(w.low) != "" || isAmount(w.low) || isVersion(w.low)
		if !known && !w.quoted && !strings.ContainsAny(w.low, "/=:") && !slices.Contains(unknown, w.low) {
			unknown = append(unknown, w.low)
		}
	}
	return unknown
}

// at returns the words at some positions of a sentence.
func (s sentence) at(places []int) []string {
	var words []string
	for _, i := range places {
		words = append(words, s.words[i].low)
	}
	return words
}

// Affects reports whether a question is read differently with another word in the place of one.
func Affects(words, word, other string, known Named) bool {
	fields := strings.Fields(words)
	for i := range fields {
		if fields[i] == word {
			fields[i] = other
		}
	}
	return readingOf(strings.Join(fields, " "), known) != readingOf(words, known)
}

// Ignores reports whether a question is read the same without one of its words.
func (a Ask) Ignores(word string) bool { return !Affects(a.Words, word, placeholder, a.named) }

// TellsFault reports whether a sentence, in lower case, reports that something does not work.
func TellsFault(words string) bool { return badExpr.MatchString(words) }

// mostAblated and longestAblated, in bytes, limit the sentences whose words are each tried: this takes up to 100 ms.
const mostAblated, longestAblated = 40, 500

// without returns the text of a sentence with some words replaced by the placeholder, wherever they occur.
func (s sentence) without(at ...int) string {
	hidden := map[string]bool{}
	for _, i := range at {
		hidden[s.words[i].low] = true
	}
	words := make([]string, len(s.words))
	for i, w := range s.words {
		switch {
		case hidden[w.low]:
			words[i] = placeholder
		case w.quoted:
			words[i] = "`" + w.text + "`"
		default:
			words[i] = w.text
		}
	}
	text := strings.Join(words, " ")
	if s.asks {
		text += "?"
	}
	return text
}

// readingOf returns everything in a parsed text that an answer depends on.
func readingOf(text string, known Named) string {
	a := Parse(text, known)
	route := ""
	if a.Route != nil {
		route = fmt.Sprintf("%+v", *a.Route)
	}
	excludes, place := LeavesOut(a.Words)
	reading := fmt.Sprint(excludes, place) + fmt.Sprintf("%v %+v %q %v %v %q %v %s %+v %q %s", a.Intent, a.Changes, a.Kind, a.Everywhere, a.Within, a.UnreadTime, a.Right, route, a.Count, a.Lacks, a.Aged)
	switch a.Intent { // what else an answer of the intent depends on
	case Diagnosis, Health, Unclear, Advice:
		reading += fmt.Sprint(a.Symptoms, TellsFault(a.Words))
	case Facts:
		q := a.FactQuery()
		reading += fmt.Sprint(q.Kind, q.HowMany, q.Whether, q.Compares, q.Most, q.Least, q.Sorted, q.Read)
	case Usage:
		reading += fmt.Sprintf("%+v", AskedRanking(a))
	case Restarts: // its table has the most restarts first
		reading += fmt.Sprint(AskedRanking(a).Ranked && !AskedRanking(a).Least)
	}
	return reading
}
