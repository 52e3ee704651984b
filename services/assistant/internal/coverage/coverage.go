package coverage

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// mostGaps limits the gaps that one answer lists.
const mostGaps = 8

// Gap is something that an answer did not examine.
type Gap struct {
	What    string // a noun phrase
	Command string // the command that would examine it; empty if there is none
}

// Record is the record of what one answer examined. The zero value has examined nothing.
type Record struct {
	subject   string // the end of a sentence: "with deployment `web`", "in namespace `shop`"
	namespace string
	objects   []operation.Ref
	snap      *engine.Snapshot
	logs      *Logs // nil: no log was requested
	gaps      []Gap
	left      string // symptoms that no rule explains, as a list; empty: none
	unjudged  string // information on objects of kinds that no rule judges; empty: some rule judges them
	doubted   bool   // logs suggest a fault without naming one
}

// New starts the record of an answer about some objects of a namespace, or about all of it; subject ends a sentence
// such as "nothing was found wrong …".
func New(snap *engine.Snapshot, subject, namespace string, objects []operation.Ref) *Record {
	return &Record{subject: subject, namespace: namespace, objects: objects, snap: snap}
}

// SetLogs sets the logs of the subject, with the part of each that was read.
func (r *Record) SetLogs(logs *Logs) { r.logs = logs }

// AddGap adds something that was not examined.
func (r *Record) AddGap(what, command string) {
	if g := (Gap{what, command}); !slices.Contains(r.gaps, g) {
		r.gaps = append(r.gaps, g)
	}
}

// SetUnexplained sets the list of symptoms that no rule explains.
func (r *Record) SetUnexplained(list string) { r.left = list }

// SetUnjudged records that no rule judges the kinds of the objects, and the information on them.
func (r *Record) SetUnjudged(text string) { r.unjudged = text }

// Doubt records that logs suggest a fault without naming one.
func (r *Record) Doubt() { r.doubted = true }

// Gaps lists everything that was not examined.
func (r *Record) Gaps() []Gap {
	if r == nil || r.snap == nil {
		return []Gap{{What: "the cluster", Command: "kubectl get pods -A"}}
	}
	gaps := slices.Clone(r.gaps)
	if unread := slices.Sorted(maps.Keys(r.snap.Unread)); len(unread) > 0 {
		what := "kinds that could not be read: " + strings.Join(unread, ", ")
		if rules := rulesWithout(r.snap.Unread); rules != "" {
			what += ", so that the rules for " + rules + " saw only a part"
		}
		gaps = append(gaps, Gap{what, "kubectl get " + strings.Join(unread, ",") + flagsOf(r.namespace)})
	}
	return append(gaps, r.logs.Gaps()...)
}

// flagsOf returns the flags of kubectl for a namespace, or for all with an empty one.
func flagsOf(namespace string) string {
	if namespace == "" {
		return " -A"
	}
	return " -n " + namespace
}

// describeGaps returns a paragraph that lists the gaps; empty if there are none.
func describeGaps(gaps []Gap) string {
	if len(gaps) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Not looked at:\n\n")
	for i, g := range gaps {
		if i == mostGaps {
			fmt.Fprintf(&b, "- And %d more.\n", len(gaps)-mostGaps)
			break
		}
		b.WriteString("- " + engine.UpperFirst(g.What))
		if g.Command != "" {
			b.WriteString(": `" + strings.ReplaceAll(g.Command, "`", "") + "`")
		}
		b.WriteString(".\n")
	}
	return b.String()
}

// Conclusion is the strongest statement that a record permits. Only [Verdict] returns one that is clear.
type Conclusion struct {
	clear bool
	text  string
}

// Clear reports whether nothing was found wrong, and everything was examined.
func (c Conclusion) Clear() bool { return c.clear }

// String returns the conclusion in Markdown.
func (c Conclusion) String() string { return c.text }

// Verdict concludes from a record and the findings of the rules. No other code in the service may state that nothing is
// wrong.
func Verdict(r *Record, found []engine.Finding) Conclusion {
	gaps := r.Gaps()
	subject := "in the cluster"
	if r != nil && r.subject != "" {
		subject = r.subject
	}
	text := ""
	switch {
	case len(found) > 0:
		return Conclusion{text: describeGaps(gaps)}
	case r != nil && r.left != "":
		text = fmt.Sprintf("No known cause was found, but not everything is healthy %s:\n\n%s\nThe log or the description of one of them may tell more.", subject, r.left)
	case r != nil && r.unjudged != "":
		text = r.unjudged
	case len(gaps) == 0 && !r.doubted:
		return Conclusion{clear: true, text: "Nothing was found wrong " + subject + "."}
	default:
		text = "No object shows a fault " + inSubject(subject) + "."
	}
	return Conclusion{text: strings.TrimSpace(text + "\n\n" + describeGaps(gaps))}
}

// inSubject adapts a subject that begins with "with" to "No object shows a fault".
func inSubject(subject string) string {
	if rest, ok := strings.CutPrefix(subject, "with "); ok {
		return "in " + rest
	}
	return subject
}
