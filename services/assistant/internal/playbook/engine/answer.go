package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
)

// Limits on one answer.
const (
	MostFindings = 20 // more are shown on request
	mostEvidence = 12
)

// Answer returns the text, in Markdown, for findings of a snapshot. It proposes nothing: fixes are shown as commands
// that a person may request.
func Answer(s *Snapshot, found []Finding) string { return AnswerFrom(s, found, 0) }

// AnswerFrom is Answer without the first findings, which were shown before.
func AnswerFrom(s *Snapshot, found []Finding, from int) string {
	var b strings.Builder
	from = min(from, len(found))
	b.WriteString(countFindings(len(found)-from, from > 0) + "\n")
	for i, f := range found[from:] {
		if i == MostFindings {
			fmt.Fprintf(&b, "\nThe other %d are left out; say `more` to see them, or ask about one namespace.\n", len(found)-from-MostFindings)
			break
		}
		fmt.Fprintf(&b, "\n**%d. %s**\n\n", from+i+1, f.heading())
		f.write(&b)
	}
	if len(s.Unread) > 0 {
		fmt.Fprintf(&b, "\nNot read, and so not judged: %s.\n", strings.Join(slices.Sorted(maps.Keys(s.Unread)), ", "))
	}
	return b.String()
}

func countFindings(n int, more bool) string {
	switch {
	case n == 0:
		return "No rule found a fault."
	case n == 1 && more:
		return "One more thing is wrong."
	case n == 1:
		return "One thing is wrong."
	case more:
		return fmt.Sprintf("%d more things are wrong.", n)
	}
	return fmt.Sprintf("%d things are wrong.", n)
}

func (f Finding) heading() string {
	if f.Object.Namespace == "" {
		return fmt.Sprintf("%s: %s", UpperFirst(RefTitle(f.Object)), f.Class)
	}
	return fmt.Sprintf("%s in namespace %s: %s", UpperFirst(RefTitle(f.Object)), QuoteCode(f.Object.Namespace), f.kind())
}

func (f Finding) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s (Confidence: %s.)\n\n", f.Cause, f.Confidence)
	for i, e := range f.Evidence {
		if i == mostEvidence {
			fmt.Fprintf(b, "- And %d more of this kind.\n", len(f.Evidence)-mostEvidence)
			break
		}
		fmt.Fprintf(b, "- %s\n", e)
	}
	if len(f.Pods) > 0 {
		fmt.Fprintf(b, "- Seen on %s.\n", QuoteCodes(f.Pods))
	}
	for i, c := range f.Consequences {
		if i == mostEvidence {
			fmt.Fprintf(b, "- And %d more consequences.\n", len(f.Consequences)-mostEvidence)
			break
		}
		fmt.Fprintf(b, "- A consequence: %s. %s\n", RefTitle(c.Object), c.Cause)
	}
	if f.Text != "" {
		fmt.Fprintf(b, "\nWhat helps: %s\n", f.Text)
	}
	if f.Fix != nil {
		// Indented, since the text could close a fence.
		fmt.Fprintf(b, "\n    %s\n", strings.ReplaceAll(kubectl.Render(*f.Fix), "\n", "\n    "))
	}
}
