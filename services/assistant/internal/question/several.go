package question

import (
	"regexp"
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
