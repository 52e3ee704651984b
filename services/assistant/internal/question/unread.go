package question

import (
	"fmt"
	"slices"
	"strings"
)

// functionWords are the closed classes of English: they hold a sentence together and name nothing, so that a question of which
// only they are left is read to its end. Verbs of asking and of politeness are among them.
var functionWords = setOf(`a an the this that these those some any all every each both either neither none no not nor other another such same own one ones
	i me my mine we us our ours you your yours he him his she her hers it its they them their theirs myself yourself itself themselves
	who whom whose what which where when why how there here
	am is are was were be been being do does did done doing have has had having can could may might must shall should will would let lets
	about above across after against along among around as at before behind below beside besides between beyond but by despite down during except for from
	in inside into like near of off on onto or out outside over per since than through throughout till to toward towards under until up upon via
	with within without and if so because while whether though although unless then else yet also too just only even ever still already again
	now currently really very quite rather maybe perhaps actually exactly simply always often sometimes anymore today tonight lately recently please pls thanks thank hey hi hello ok okay
	well yes yeah yep nope wait hm hmm um uh oh
	show list give get tell say see look find check explain describe know think want need help make take go going come seem seems look looks mean happen happens happened happening
	someone somebody something anyone anybody anything everyone everybody everything nobody nothing thing things stuff lot lots bit kind sort way
	right cluster kubernetes namespace fine good healthy alright ready up running run runs ran working work works looking doing
	use uses used using gets getting got gives giving given shows showing shown tells goes comes coming says said takes taking wants needs makes making`)

// placeholder is a word that no rule knows: everyday, so that it is no name either.
const placeholder = "qqq"

func init() { common[placeholder] = true }

// Unread lists the words of a question that its reading does without: put another word in its place, and the same is answered.
// "is checkout losing orders?" leaves "losing" and "orders": whether checkout is well answers something else. Words that hold a
// sentence together are not listed, nor are names, which only the cluster can tell from other words.
func Unread(message string) []string {
	s := readSentence(message)
	var content []int
	for i, w := range s.words {
		if !functionWords[w.low] && !w.quoted && !isAmount(w.low) && !slices.ContainsFunc(content, func(at int) bool { return s.words[at].low == w.low }) {
			content = append(content, i)
		}
	}
	var unread []string
	if len(s.words) > mostAblated || len(message) > longestAblated { // which of them are used is not known, so none counts as used
		for _, i := range content {
			unread = append(unread, s.words[i].low)
		}
		return unread
	}
	full := readingOf(s.without())
	bare := readingOf(s.without(content...))
	for _, i := range content {
		others := slices.DeleteFunc(slices.Clone(content), func(at int) bool { return at == i })
		// Beside a word of the same meaning neither is missed, so that each is tried alone, too.
		if readingOf(s.without(i)) == full && readingOf(s.without(others...)) == bare {
			unread = append(unread, s.words[i].low)
		}
	}
	return unread
}

// TellsFault reports whether a sentence, in lower case, says that something does not work.
func TellsFault(words string) bool { return badExpr.MatchString(words) }

// mostAblated and longestAblated, in bytes, limit the sentences of which each word is tried: it takes up to 100 ms.
const mostAblated, longestAblated = 40, 500

// without is the text of a sentence with some words replaced by the placeholder, wherever they stand.
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

// readingOf is all that an answer depends on, of a text.
func readingOf(text string) string {
	a := Parse(text)
	route := ""
	if a.Route != nil {
		route = fmt.Sprintf("%+v", *a.Route)
	}
	reading := fmt.Sprintf("%v %+v %q %v %v %q %v %s %+v", a.Intent, a.Changes, a.Kind, a.Everywhere, a.Within, a.UnreadTime, a.Right, route, a.Count)
	switch a.Intent { // what else an answer of the intent depends on
	case Diagnosis, Health, Unclear, Advice:
		reading += fmt.Sprint(a.Symptoms, TellsFault(a.Words))
	case Usage:
		reading += fmt.Sprintf("%+v", AskedRanking(a))
	}
	return reading
}
