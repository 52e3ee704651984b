package ground

import (
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Record holds everything that a session has seen. It belongs to one goroutine.
type Record struct {
	results []string // of tools, in lower case
	said    []string // by the user, and in checked answers
	numbers numbers
	calls   []operation.Operation // that were run
	listed  bool                  // the playbooks have read all kinds
	writes  []operation.Verb      // that were executed
	// Findings are the latest findings of the playbooks; empty if there are none.
	Findings []Finding
	// Contradiction replaces an all-clear that the findings contradict.
	Contradiction string
}

// Finding is a finding as compared with an all-clear.
type Finding struct {
	Namespaces []string
	Kinds      []string // of the objects that have the problem, in lower case
	Names      []string // of those objects
}

// AddResult adds the output of a tool.
func (r *Record) AddResult(text string) {
	r.results = append(r.results, strings.ToLower(text))
	r.numbers.addTable(text)
	r.numbers.add(text)
}

// AddSaid adds text of the user, whose names and numbers an answer may repeat.
func (r *Record) AddSaid(text string) {
	r.said = append(r.said, strings.ToLower(text))
	r.numbers.add(text)
}

// AddAnswer adds an earlier answer of the session. Marked claims in it stay unseen.
func (r *Record) AddAnswer(text string) {
	pieces := strings.Split(text, Mark)
	for i, p := range pieces[:len(pieces)-1] {
		p = strings.TrimRight(p, " #")
		pieces[i] = p[:strings.LastIndexAny(p, " \n")+1]
	}
	r.AddSaid(strings.Join(pieces, ""))
}

// AddCall adds a call that was run.
func (r *Record) AddCall(op operation.Operation) { r.calls = append(r.calls, op) }

// AddWrite adds a write that was executed.
func (r *Record) AddWrite(v operation.Verb) { r.writes = append(r.writes, v) }

// AddFindings adds the findings of the playbooks, which have read all kinds.
func (r *Record) AddFindings(found []Finding) {
	r.listed = true
	r.Findings = append(r.Findings, found...)
	r.numbers.init()
	r.numbers.derived[float64(len(found))], r.numbers.derived[float64(len(r.Findings))] = true, true
}

// mentions reports whether a name or an image was seen as a separate word. A prefix of a longer name counts: a pod's
// name contains that of its workload.
func (r *Record) mentions(word string) bool {
	word = strings.ToLower(word)
	has := func(text string) bool { return mentions(text, word) }
	return slices.ContainsFunc(r.results, has) || slices.ContainsFunc(r.said, has)
}

// contains reports whether a text occurs anywhere in the results or in what was said.
func (r *Record) contains(text string) bool {
	text = strings.ToLower(text)
	has := func(seen string) bool { return strings.Contains(seen, text) }
	return slices.ContainsFunc(r.results, has) || slices.ContainsFunc(r.said, has)
}

// resultsHave reports whether the output of a tool has a word with this prefix.
func (r *Record) resultsHave(stem string) bool {
	return slices.ContainsFunc(r.results, func(text string) bool {
		for from := 0; ; {
			i := strings.Index(text[from:], stem)
			if i < 0 {
				return false
			}
			if from += i; from == 0 || !isAlphanumeric(text[from-1]) {
				return true
			}
			from++
		}
	})
}

func mentions(text, word string) bool {
	if word == "" {
		return true
	}
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(word)
		if (start == 0 || !isNameByte(text[start-1])) && (end == len(text) || !isAlphanumeric(text[end])) {
			return true
		}
		from = start + 1
	}
}

func isAlphanumeric(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b >= 0x80
}

func isNameByte(b byte) bool { return isAlphanumeric(b) || b == '-' || b == '_' }
