package question

import (
	"regexp"
	"slices"
	"strings"
)

// Symptom is the visible sign of a problem.
type Symptom int

// The symptoms.
const (
	Crash Symptom = iota + 1
	Pending
	NotStarting
	Image
	Traffic
	Terminating
	Scaling
	Drain
	Init
	Access
	Names
	Job
	Rollout
	Node
	Volume
	Memory
	Config
	Probe
	Quota
	Webhook
	Slow
	Version // an old one runs, or it is not everywhere
	Lost    // missing or vanished pods
	Certificate
	Address // an external one that a Service waits for
)

// symptomNames are the names of the symptoms in the vocabulary, in their order.
var symptomNames = [...]string{
	"", "crash", "pending", "not_starting", "image", "traffic", "terminating", "scaling", "drain", "init", "access", "names", "job", "rollout",
	"node", "volume", "memory", "config", "probe", "quota", "webhook", "slow", "version", "lost", "certificate", "address",
}

// sign defines the sentences about a symptom.
type sign struct {
	symptom Symptom
	expr    *regexp.Regexp
}

func symptomsOf(low string) []Symptom {
	var found []Symptom
	for _, s := range symptoms {
		if s.expr.MatchString(low) {
			found = append(found, s.symptom)
		}
	}
	return found
}

// SymptomWords returns the words of a sentence, in lower case, that name a symptom on their own: in a question about a
// fact they name the fact.
func SymptomWords(words string) []string {
	var found []string
	for word := range strings.FieldsSeq(words) {
		if symptomsOf(word) != nil && !slices.Contains(found, word) {
			found = append(found, word)
		}
	}
	return found
}
