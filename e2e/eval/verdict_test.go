//go:build e2e

package eval

import "regexp"

// Verdict is the score of an answer.
type Verdict string

// The verdicts, best first.
const (
	Found    Verdict = "found"     // object and all of the cause; of a healthy cluster: no fault
	Partly   Verdict = "partly"    // the object and some of the cause, or the cause without the object
	Missed   Verdict = "missed"    // neither; the answer admits that it does not know, or names another without certainty
	Wrong    Verdict = "wrong"     // another cause at high confidence, or something that no right answer says
	AllClear Verdict = "all-clear" // it reports no fault, and there is one
	Failed   Verdict = "failed"    // no answer came
)

// allClear matches statements that nothing is wrong.
var allClear = []*regexp.Regexp{
	regexp.MustCompile(`(?i)nothing (was found |is |seems |looks )?(to be )?wrong`),
	regexp.MustCompile(`(?i)no (problems?|faults?|issues?|errors?) (was|were|is|are)? ?(found|detected|visible)`),
	regexp.MustCompile(`(?i)(everything|all) (is|looks|seems|appears)( to be)? (well|fine|healthy|ok|in order)`),
	regexp.MustCompile(`(?i)\b(is|are|looks?|seems?|appears?)( to be)? (completely |perfectly )?healthy\b`),
	regexp.MustCompile(`(?i)\bI (see|found|find) nothing wrong\b`),
}

// noFault is enough of a healthy namespace, and no all-clear elsewhere: it names its subject.
var noFault = regexp.MustCompile(`(?i)\bno object shows a fault\b`)

// alarm matches statements that logs show trouble, which those of a healthy cluster do not.
var alarm = regexp.MustCompile(`(?i)\blogs? (?:do|does) not look healthy|\blogs? (?:show|tell of) (?:problems|trouble)`)

// denied matches what sounds like an all-clear and is the opposite.
var denied = regexp.MustCompile(`(?i)(?:not|isn't|aren't|nor) (?:everything|all|every\w*)?[^.\n]{0,30}(?:healthy|well|fine)|not (?:yet )?(?:be )?healthy`)

var healthyOf = regexp.MustCompile(`(?i)(\d+) of (\d+) \w+ (?:is|are) healthy`)

// certain matches statements of certainty about a cause.
var certain = regexp.MustCompile(`(?i)\bhigh confidence\b|confidence:?\W{0,4}high\b`)

// judge compares an answer with the truth.
func judge(e Expect, answer string) Verdict {
	if e.Healthy {
		switch {
		case says(e.Not, answer) > 0, certain.MatchString(answer), alarm.MatchString(answer):
			return Wrong
		case says(e.Object, answer) == len(e.Object) && says(e.Cause, answer) == len(e.Cause) && (len(e.Cause) > 0 || saysAllClear(answer) || noFault.MatchString(answer)):
			return Found
		}
		return Missed
	}
	object, cause := says(e.Object, answer) == len(e.Object), says(e.Cause, answer)
	switch {
	case says(e.Not, answer) > 0:
		return Wrong
	case object && cause == len(e.Cause):
		return Found
	case cause == 0 && saysAllClear(answer):
		return AllClear
	case cause == 0 && certain.MatchString(answer):
		return Wrong
	case cause > 0:
		return Partly
	}
	return Missed
}

// says counts the terms found in a text.
func says(terms []string, text string) (n int) {
	for _, t := range terms {
		if re, err := compile(t); err == nil && re.MatchString(text) {
			n++
		}
	}
	return n
}

// saysAllClear reports whether an answer states that nothing is wrong.
func saysAllClear(answer string) bool {
	answer = denied.ReplaceAllString(answer, "")
	// "0 of 2 workloads are healthy" is none, "2 of 2" is.
	answer = healthyOf.ReplaceAllStringFunc(answer, func(s string) string {
		if m := healthyOf.FindStringSubmatch(s); m[1] == m[2] {
			return s
		}
		return ""
	})
	for _, re := range allClear {
		if re.MatchString(answer) {
			return true
		}
	}
	return false
}
