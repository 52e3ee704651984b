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

// Gap is something that an answer did not look at.
type Gap struct {
	What    string // a noun phrase
	Command string // the command that would look; empty where none would
}

// Record is what one answer looked at. Its zero value looked at nothing.
type Record struct {
	subject   string // the end of a sentence: "with deployment `web`", "in namespace `shop`"
	namespace string
	objects   []operation.Ref
	snap      *engine.Snapshot
	logs      *Logs // nil: no log was looked for
	gaps      []Gap
	left      string // symptoms that no rule explains, as a list; empty: none
	unjudged  string // what there is to say of objects of kinds that no rule judges; empty: some rule judges them
	doubted   bool   // logs hint at a fault, without telling one
}

// New starts the record of an answer about some objects of a namespace, or about all of it; subject ends
// a sentence such as "nothing was found wrong …".
func New(snap *engine.Snapshot, subject, namespace string, objects []operation.Ref) *Record {
	return &Record{subject: subject, namespace: namespace, objects: objects, snap: snap}
}

// SetLogs says which logs belong to the subject, and how far each was read.
func (r *Record) SetLogs(logs *Logs) { r.logs = logs }

// AddGap adds something that was not looked at.
func (r *Record) AddGap(what, command string) {
	if g := (Gap{what, command}); !slices.Contains(r.gaps, g) {
		r.gaps = append(r.gaps, g)
	}
}

// SetUnexplained sets the list of symptoms that no rule explains.
func (r *Record) SetUnexplained(list string) { r.left = list }

// SetUnjudged says that no rule judges the kinds of the objects, and what is known of them.
func (r *Record) SetUnjudged(text string) { r.unjudged = text }

// Doubt says that logs hint at a fault, without telling one.
func (r *Record) Doubt() { r.doubted = true }

// Gaps lists what was not looked at.
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

// flagsOf are the flags of kubectl for a namespace, or for all with an empty one.
func flagsOf(namespace string) string {
	if namespace == "" {
		return " -A"
	}
	return " -n " + namespace
}

// describeGaps is the paragraph that lists the gaps; empty where there is none.
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

// Conclusion is what a record allows to say. Only [Verdict] makes one that is clear.
type Conclusion struct {
	clear bool
	text  string
}

// Clear reports whether nothing was found wrong, and everything was looked at.
func (c Conclusion) Clear() bool { return c.clear }

// String is the conclusion in Markdown.
func (c Conclusion) String() string { return c.text }

// Verdict concludes from a record and from what the rules found. Nothing else in the service may say that
// nothing is wrong.
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

// inSubject lets "No object shows a fault" go on with a subject that begins with "with".
func inSubject(subject string) string {
	if rest, ok := strings.CutPrefix(subject, "with "); ok {
		return "in " + rest
	}
	return subject
}
