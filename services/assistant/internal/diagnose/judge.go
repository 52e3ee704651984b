package diagnose

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Verdict grades an answer.
type Verdict string

// The verdicts, best first.
const (
	Right    Verdict = "right"  // the first finding has the object and the cause
	Partly   Verdict = "partly" // it has one of them, or a later finding has both
	Honest   Verdict = "honest" // no finding; the answer lists what was not examined
	Wrong    Verdict = "wrong"
	AllClear Verdict = "false all-clear"
)

// Truth is the cause of a recording.
type Truth struct {
	Namespace string `json:"namespace" yaml:"namespace"`
	Question  string `json:"question" yaml:"question"`
	Object    string `json:"object" yaml:"object"` // KIND/NAME
	Cause     string `json:"cause" yaml:"cause"`
}

//go:embed causes.yaml
var causesFile []byte

// wording is a phrase that findings use for a part of a cause.
type wording struct {
	Cause string   `yaml:"cause"`
	Says  []string `yaml:"says"`
	says  *regexp.Regexp
}

// wordings are ordered by length: the longest phrase counts.
var wordings = sync.OnceValues(func() ([]wording, error) {
	var list []wording
	if err := yaml.Unmarshal(causesFile, &list); err != nil {
		return nil, fmt.Errorf("causes.yaml: %w", err)
	}
	for i := range list {
		re, err := regexp.Compile(`(?is)\b(` + strings.Join(list[i].Says, "|") + `)|^(` + strings.Join(list[i].Says, "|") + `)`)
		if err != nil {
			return nil, fmt.Errorf("causes.yaml: %s: %w", list[i].Cause, err)
		}
		list[i].says = re
	}
	slices.SortStableFunc(list, func(a, b wording) int { return len(b.Cause) - len(a.Cause) })
	return list, nil
})

// saysCause reports whether a text names a cause in other words.
func saysCause(cause, text string) (bool, error) {
	list, err := wordings()
	if err != nil {
		return false, err
	}
	left := " " + strings.ToLower(cause) + " "
	for _, w := range list {
		if !strings.Contains(left, " "+w.Cause+" ") {
			continue
		}
		if !w.says.MatchString(text) {
			return false, nil
		}
		left = strings.ReplaceAll(left, " "+w.Cause+" ", "  ")
	}
	for word := range strings.FieldsSeq(left) {
		if !strings.Contains(strings.ToLower(text), word) {
			return false, nil
		}
	}
	return true, nil
}

// findingHead is the heading of a finding in an answer.
var findingHead = regexp.MustCompile(`(?m)^\*\*(\d+)\. .*\*\*$`)

// splitFindings splits an answer into its findings. before is the text above the first; without findings it is the
// whole answer.
func splitFindings(answer string) (before string, findings []string) {
	places := findingHead.FindAllStringIndex(answer, -1)
	if len(places) == 0 {
		return answer, nil
	}
	for i, at := range places {
		end := len(answer)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		findings = append(findings, answer[at[0]:end])
	}
	return answer[:places[0][0]], findings
}

var (
	allClear = regexp.MustCompile(`(?i)nothing (was found |is )?wrong|(everything|all) (is|looks) (well|fine|healthy)`)
	honest   = regexp.MustCompile(`(?i)not looked at|not (read|recorded|measured|visible)|cannot be (told|seen)|follows from measurements`)
)

// judge compares an answer with the truth.
func judge(t Truth, answer string) (Verdict, error) {
	answer, _, _ = strings.Cut(answer, "\nNote: this is a recording")
	_, object, _ := strings.Cut(t.Object, "/")
	before, findings := splitFindings(answer)
	if len(findings) == 0 {
		findings = []string{before}
	}
	partly := false
	for i, text := range findings {
		cause, err := saysCause(t.Cause, text)
		if err != nil {
			return Wrong, err
		}
		of := strings.Contains(text, object)
		switch {
		case cause && of && i == 0:
			return Right, nil
		case cause && of, i == 0 && (cause || of):
			partly = true
		}
	}
	switch {
	case before == answer && allClear.MatchString(answer):
		return AllClear, nil
	case before == answer && honest.MatchString(answer):
		return Honest, nil
	case partly:
		return Partly, nil
	}
	return Wrong, nil
}
