package investigate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/spelling"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// guess is a word that was taken for another.
type guess struct {
	word, taken string
	what        string // the kind of the other one, such as "namespace"; empty: an English word
}

// understand compares the words of a question with the cluster: misspelt ones are replaced by similar ones, which the
// answer mentions, and left are those that mean nothing here. The question it returns is never a request: a guess
// changes nothing.
func (w *work) understand(ctx context.Context, a question.Ask) (understood question.Ask, left []string, err error) {
	if len(a.Unknown) == 0 || strings.ContainsAny(w.turn.Query, "`\"") {
		return a, nil, nil
	}
	var names clusterNames
	unknown := a.Unknown
	for _, namespace := range []string{cmp.Or(a.Namespace, w.turn.Scope), ""} { // the whole cluster only if necessary
		s, err := w.snapshot(ctx, namespace)
		if err != nil {
			return a, nil, err
		}
		if s == nil {
			continue
		}
		if namespace == "" && names != nil {
			names = names.withNamespaces(s) // the place is named: other places are not meant
		} else {
			names = namesOf(s)
		}
		known := func(word string) bool { return names.has(word) || len(hostsNamed(s, word)) > 0 }
		if unknown = slices.DeleteFunc(slices.Clone(unknown), known); len(unknown) == 0 {
			return a, nil, nil
		}
	}
	words := strings.Fields(a.Words)
	if names, err = w.guessable(ctx, a, words, names); err != nil {
		return a, nil, err
	}
	var guesses []guess
	for _, unknown := range unknown {
		g, ok := names.guess(unknown)
		if !ok || g.what != "" && slices.Contains(words, g.taken) { // the sentence names that one itself: another is meant
			left = append(left, unknown)
			continue
		}
		guesses = append(guesses, g)
		for i := range words {
			if words[i] == unknown {
				words[i] = g.taken
			}
		}
	}
	// Words of another language resemble English ones, too: if most mean nothing, none is guessed.
	if len(guesses) == 0 || isForeign(append(slices.Clone(left), guessedWords(guesses)...)) {
		return a, append(left, guessedWords(guesses)...), nil
	}
	guessed := question.Parse(strings.Join(words, " ") + "?")
	if guessed.Intent < question.Diagnosis && guessed.Intent != question.Unclear {
		return a, append(left, guessedWords(guesses)...), nil
	}
	w.say(describeGuesses(guesses))
	return guessed, left, nil
}

// guessable returns the names that a misspelt word may mean: those of the namespace in the sentence, if it has one.
func (w *work) guessable(ctx context.Context, a question.Ask, words []string, names clusterNames) (clusterNames, error) {
	if a.Namespace != "" || a.Everywhere {
		return names, nil
	}
	all, err := w.snapshot(ctx, "")
	if err != nil || all == nil {
		return names, err
	}
	place := ""
	for _, word := range words {
		if hasNamespace(all, word) && strings.Contains(word, "-") { // an ordinary word may also be a namespace
			if place != "" {
				return names, nil
			}
			place = word
		}
	}
	if place == "" {
		return names, nil
	}
	s, err := w.snapshot(ctx, place)
	if err != nil || s == nil {
		return names, err
	}
	return namesOf(s), nil
}

func guessedWords(guesses []guess) []string {
	var list []string
	for _, g := range guesses {
		list = append(list, g.word)
	}
	return list
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

// foreignWords are words of other languages that no English sentence has, in English letters.
var foreignWords = question.WordSet(`sind nicht das der ein eine und warum wieso mein meine kaputt geht mit von auf que por esta pasa hay los las una como porque donde en el pas pourquoi les des une dans
	avec ne il elle perche che sono non funziona come cosa di il questo waarom het een niet werkt wat naar dlaczego nie jest co por nao uma onde esse`)

// isForeign reports whether words that mean nothing here are those of another language: the answer would be to
// something else.
func isForeign(left []string) bool {
	return slices.ContainsFunc(left, func(word string) bool { return !latinExpr.MatchString(word) || foreignWords[word] })
}

// meansLittle reports whether so many words of a sentence mean nothing here that only a name in it can save it.
func meansLittle(a question.Ask, left []string) bool {
	return len(left) >= 2 && 2*len(left) >= len(strings.Fields(a.Words))
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

// clusterNames maps the names that a question may use to what they are.
type clusterNames map[string]string

func namesOf(s *engine.Snapshot) clusterNames {
	all := clusterNames{}
	for _, o := range nameableObjects(s) {
		if _, known := all[o.ref.Name]; !known || o.ref.Kind == "Namespace" {
			all[o.ref.Name] = strings.ToLower(o.ref.Kind)
		}
	}
	for i := range s.Pods {
		for j := range s.Pods[i].Spec.Containers {
			name := s.Pods[i].Spec.Containers[j].Name
			all[name] = cmp.Or(all[name], "container")
		}
	}
	return all
}

// withNamespaces adds the namespaces of the whole cluster.
func (n clusterNames) withNamespaces(s *engine.Snapshot) clusterNames {
	all := maps.Clone(n)
	for i := range s.Namespaces {
		all[s.Namespaces[i].Name] = "namespace"
	}
	return all
}

func (n clusterNames) has(word string) bool {
	_, ok := n[word]
	return ok
}

// unguessed are kinds whose names people do not misspell: the cluster makes them up, or they serve other objects.
var unguessed = map[string]bool{"pod": true, "replicaset": true, "configmap": true, "secret": true, "serviceaccount": true, "storageclass": true, "persistentvolume": true, "container": true}

// guess finds the one name, else the English word, that a word misspells.
func (n clusterNames) guess(word string) (guess, bool) {
	allowed := 1
	switch {
	case len(word) < 4:
		return guess{}, false
	case len(word) > 6:
		allowed = 2
	}
	best, far, several := "", allowed+1, false
	for name, kind := range n {
		if unguessed[kind] {
			continue
		}
		switch d := spelling.Distance(word, name); {
		case d < far:
			best, far, several = name, d, false
		case d == far && d <= allowed:
			several = true
		}
	}
	english := question.NearestWord(word, spelling.Distance)
	switch {
	// A word with an extra letter is most likely another word: "seen" is not "see".
	case english != "" && len(word) <= len(english) && spelling.Distance(word, english) <= far:
		return guess{word: word, taken: english}, true
	case best != "" && far <= allowed && !several:
		return guess{word, best, n[best]}, true
	}
	return guess{}, false
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
var betweenExpr = regexp.MustCompile(`\b` + wordlist.AnyOf("reach(es|ed|ing|able)?", "connect(s|ed|ing|ions?)?", "to", "from") + `\b`)

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

// askEach answers several questions of one message in turn.
func (w *work) askEach(ctx context.Context, all []question.Ask) error {
	for _, a := range all {
		w.say("**" + strings.ToUpper(a.Words[:1]) + a.Words[1:] + "?**")
		w.steps, w.spent = nil, spentLogs{}
		if err := w.ask(ctx, a); err != nil {
			return err
		}
	}
	return nil
}
