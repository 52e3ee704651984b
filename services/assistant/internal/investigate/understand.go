package investigate

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// guess is a word that was taken for another.
type guess struct {
	word, taken string
	what        string // the kind of the other one, such as "namespace"; empty: an English word
}

// understand compares the words of a question that nothing reads with the vocabulary and with the names of the cluster:
// misspelt ones are replaced, which the answer mentions, and left are those that mean nothing here. The question it
// returns is never a request: a guess changes nothing.
func (w *work) understand(ctx context.Context, a question.Ask) (understood question.Ask, left []string, err error) {
	unknown := a.Unknown()
	if len(unknown) == 0 || strings.ContainsAny(w.turn.Query, "`\"") {
		return a, nil, nil
	}
	names, err := w.namesFor(ctx, a.Words)
	if err != nil {
		return a, nil, err
	}
	all, err := w.snapshot(ctx, cmp.Or(a.Namespace, w.turn.Scope))
	if err != nil {
		return a, nil, err
	}
	words := strings.Fields(a.Words)
	named := slices.ContainsFunc(words, names.has)
	guesses := map[string]guess{}
	for _, word := range unknown {
		if all != nil && len(hostsNamed(all, word)) > 0 {
			continue
		}
		g, ok := names.guess(word)
		switch {
		// The sentence names that one itself: another is meant. Beside a name, others need not be names.
		case !ok, g.what != "" && (slices.Contains(words, g.taken) || named && !a.Names(word) && !question.IsMistyped(word, g.taken)), g.what == "" && question.KindOf(g.taken) == "" && !question.Affects(a.Words, word, g.taken, names.has):
			left = append(left, word)
		default:
			guesses[word] = g
		}
	}
	if len(guesses) == 0 {
		return a, left, nil
	}
	if isForeign(left) {
		return a, unknown, nil
	}
	var told []guess
	for i, word := range words {
		if g, ok := guesses[word]; ok {
			words[i], told = g.taken, append(told, g)
		}
	}
	guessed := w.parse(ctx, strings.Join(words, " ")+"?")
	if guessed.Intent < question.Diagnosis && guessed.Intent != question.Unclear {
		return a, unknown, nil
	}
	w.say(describeGuesses(told))
	return guessed, left, nil
}

// describeGuesses lists the replaced words, so that a wrong guess is visible.
func describeGuesses(guesses []guess) string {
	var parts, words []string
	for _, g := range guesses {
		switch g.what {
		case "":
			words = append(words, fmt.Sprintf("%s for %s", report.Code(g.word), report.Code(g.taken)))
		case "namespace":
			parts = append(parts, fmt.Sprintf("There is no namespace %s. I assumed you meant namespace %s.", report.Code(g.word), report.Code(g.taken)))
		default:
			parts = append(parts, fmt.Sprintf("There is no object with the name %s. I assumed you meant %s %s.", report.Code(g.word), g.what, report.Code(g.taken)))
		}
	}
	if len(words) > 0 {
		parts = append(parts, "I took "+strings.Join(words, ", ")+".")
	}
	return strings.Join(parts, " ") + " That is a guess."
}

var latinExpr = regexp.MustCompile(`^[\x00-\x7F]*$`)

// isForeign reports whether words that mean nothing here are in the letters of another language.
func isForeign(left []string) bool {
	return slices.ContainsFunc(left, func(word string) bool { return !latinExpr.MatchString(word) })
}

// meansLittle reports whether most words of a sentence that could have a meaning have none here.
func meansLittle(a question.Ask, left []string) bool {
	return len(left) >= 2 && 2*len(left) > len(contentWords(a.Words))
}

// namesSomething reports whether a sentence names an existing namespace or workload.
func (w *work) namesSomething(ctx context.Context, a question.Ask) (bool, error) {
	if a.Count.Kind != "" {
		return false, nil // the question is for a number, which only a count answers
	}
	s, err := w.snapshot(ctx, "")
	if err != nil {
		return false, err
	}
	if a.Namespace != "" && hasNamespace(s, a.Namespace) || a.Perhaps != "" && hasNamespace(s, a.Perhaps) {
		return true, nil
	}
	return slices.ContainsFunc(a.Mentions, func(m question.Mention) bool {
		return len(hostsNamed(s, m.Name)) > 0 || hasKindCalled(s, m.Name) || slices.ContainsFunc(objectsNamed(s, "", m), func(r operation.Ref) bool { return !quiet[r.Kind] || m.Kind != "" })
	}), nil
}

// refuse states what was not understood, and gives three example questions about this cluster.
func (w *work) refuse(t *topic, left []string) {
	text := "That is not something I can answer."
	if len(left) > 0 {
		text = "I did not understand " + joinCodes(left) + ". I read plain English and kubectl lines; without a language model no other language."
	}
	w.say(text + " Ask, for example:\n\n" + examplesHere(t))
}

func joinCodes(list []string) string {
	const most = 8
	var shown []string
	for i, word := range list {
		if i == most {
			shown = append(shown, fmt.Sprintf("and %d more", len(list)-most))
			break
		}
		shown = append(shown, report.Code(word))
	}
	return strings.Join(shown, ", ")
}

// examplesHere returns three questions that this cluster can answer.
func examplesHere(t *topic) string {
	namespace, name := "default", ""
	if t != nil && t.snap != nil {
		if len(t.snap.Namespaces) > 0 {
			namespace = cmp.Or(t.namespace, t.snap.Namespaces[0].Name)
		}
		for _, f := range playbook.Findings(t.snap, t.namespace) {
			if f.Object.Namespace != "" {
				namespace, name = f.Object.Namespace, f.Object.Name
				break
			}
		}
	}
	lines := []string{"- what is wrong in " + namespace + "?", "- which pods are not ready?", "- what changed in the last hour?"}
	if name != "" {
		lines[1] = "- why is " + name + " not healthy?"
	}
	return strings.Join(lines, "\n")
}

// betweenExpr matches questions about two places at once, which are one question.
var betweenExpr = question.Pattern(`\b` + wordlist.AnyOf("reach(es|ed|ing|able)?", "connect(s|ed|ing|ions?)?", "to", "from") + `\b`)

// splitByNamespace makes one question for each namespace that a question lists.
func (w *work) splitByNamespace(ctx context.Context, a question.Ask) ([]question.Ask, error) {
	if a.Everywhere || wide[a.Intent] || len(a.Mentions) == 0 || betweenExpr.MatchString(a.Words) {
		return []question.Ask{a}, nil
	}
	s, err := w.snapshot(ctx, cmp.Or(a.Namespace, w.turn.Scope))
	if err != nil || s == nil || !slices.ContainsFunc(a.Mentions, func(m question.Mention) bool { return hasNamespace(s, m.Name) }) {
		return []question.Ask{a}, err
	}
	spaces := []string{}
	if a.Namespace != "" {
		spaces = append(spaces, a.Namespace)
	}
	var rest []question.Mention
	for _, m := range a.Mentions {
		object := slices.ContainsFunc(objectsNamed(s, a.Namespace, question.Mention{Name: m.Name}), func(r operation.Ref) bool { return r.Kind != "Namespace" && !quiet[r.Kind] })
		if (m.Kind == "" && !object || m.Kind == "namespace") && hasNamespace(s, m.Name) {
			if !slices.Contains(spaces, m.Name) {
				spaces = append(spaces, m.Name)
			}
			continue
		}
		rest = append(rest, m)
	}
	if len(spaces) < 2 {
		return []question.Ask{a}, nil
	}
	var parts []question.Ask
	for _, namespace := range spaces {
		part := a
		part.Namespace, part.Mentions = namespace, rest
		parts = append(parts, part)
	}
	return parts, nil
}

// order answers what seems a request for a change. A misspelt one is read as a question about that change.
func (w *work) order(ctx context.Context, a question.Ask) error {
	understood, _, err := w.understand(ctx, a)
	if err != nil {
		return err
	}
	if understood.Intent != question.Order {
		return w.ask(ctx, understood)
	}
	name := "NAME"
	all, err := w.snapshot(ctx, "")
	if err != nil {
		return err
	}
	for _, m := range a.Mentions {
		if all == nil || hasNamespace(all, m.Name) {
			continue
		}
		if found := objectsNamed(all, a.Namespace, m); len(found) > 0 && found[0].Kind != "Node" {
			name = m.Name
			break
		}
	}
	w.say(fmt.Sprintf(unreadOrder, name))
	if question.TellsFault(a.Words) { // "delete what keeps crashing": the cause helps to word the request
		a.Intent = question.Diagnosis
		return w.ask(ctx, a)
	}
	return nil
}

// askEach answers several questions of one message in turn, and then works out the change that it requests, if any.
func (w *work) askEach(ctx context.Context, all []question.Ask, left []string) (turn.Outcome, error) {
	var request *question.Ask
	for _, a := range all {
		switch {
		case a.Intent == question.Request:
			request = &a
			continue
		case w.ranInThisTurn():
			continue // answered before the change
		}
		w.say("**" + a.Title() + "**")
		w.steps, w.spent = nil, spentLogs{}
		if err := w.ask(ctx, a); err != nil {
			return turn.Outcome{}, err
		}
	}
	if len(left) > 0 && !w.ranInThisTurn() {
		w.say("Not answered, since they are too many for one message: " + joinCodes(left) + ".")
	}
	if request == nil {
		return turn.Outcome{}, nil
	}
	if !w.ranInThisTurn() {
		w.say("**" + request.Title() + "**")
		w.steps = nil
	}
	return w.request(ctx, *request)
}
