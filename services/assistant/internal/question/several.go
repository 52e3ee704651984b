package question

import (
	"regexp"
	"slices"
	"strings"
)

// mostQuestions limits the questions of one message that are answered.
const mostQuestions = 4

// questionEnd matches a question mark that ends a question; one inside a word is part of a URL.
var questionEnd = regexp.MustCompile(`\?+(?:\s+|$)`)

// splitQuestions returns the sentences of a message if each ends with a question mark, or nil.
func splitQuestions(message string) []string {
	if len(questionEnd.FindAllString(message, 2)) < 2 || strings.ContainsAny(message, "`\"\n") {
		return nil
	}
	var parts []string
	for _, part := range questionEnd.Split(message, -1) {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part+"?")
		}
	}
	return parts
}

// Questions splits a message into several independent questions. For any other message it returns nil: it is answered
// as a whole.
func (a Ask) Questions() []Ask {
	if len(a.parts) < 2 || len(a.parts) > mostQuestions {
		return nil
	}
	var all []Ask
	for _, part := range a.parts {
		q := Parse(part, a.named)
		if q.Intent < Diagnosis || q.Leans || q.Invalid != "" {
			return nil // it changes something, or refers to another part
		}
		all = append(all, q)
	}
	last := all[len(all)-1]
	for i := range all {
		// "any warnings? who can delete pods in shop?" is about one place.
		if all[i].Namespace == "" && !all[i].Everywhere && len(all[i].Mentions) == 0 {
			all[i].Namespace = last.Namespace
		}
	}
	return all
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

// Names reports whether a word is in the place of a name.
func (a Ask) Names(word string) bool {
	return slices.ContainsFunc(a.Mentions, func(m Mention) bool { return m.Name == word && (m.Sure || m.Kind != "") }) || a.Namespace == word
}
