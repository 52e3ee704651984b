package redact

import (
	"regexp"
	"slices"
	"strings"
)

// span is a secret part of a text, from its first byte up to but not including to.
type span struct {
	from, to int
	quoted   bool // the mark is written in quotes, to keep YAML valid
}

var markExpr = regexp.MustCompile(`\[redacted [0-9]+ bytes\]`)

// mergeSpans returns spans in order, with overlapping ones joined. A mark of an earlier redaction is no secret: a span
// with nothing else in it is dropped, and one that ends inside a mark is extended to its end.
func mergeSpans(s string, spans []span) []span {
	if len(spans) == 0 {
		return nil
	}
	if strings.Contains(s, "[redacted ") {
		spans = keepOffMarks(s, spans)
	}
	slices.SortStableFunc(spans, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to // the longest first
	})
	merged := spans[:0]
	for _, sp := range spans {
		last := len(merged) - 1
		switch {
		case sp.from >= sp.to:
		case last < 0 || sp.from >= merged[last].to:
			merged = append(merged, sp)
		case sp.from == merged[last].from && sp.to == merged[last].to:
			merged[last].quoted = merged[last].quoted || sp.quoted
		case sp.to > merged[last].to:
			merged[last] = span{from: merged[last].from, to: sp.to}
		}
	}
	return merged
}

func keepOffMarks(s string, spans []span) []span {
	marks := markExpr.FindAllStringIndex(s, -1)
	kept := spans[:0]
	for _, sp := range spans {
		first, _ := slices.BinarySearchFunc(marks, sp.from, func(m []int, from int) int { return m[1] - from - 1 })
		at, bare := sp.from, true // only marks, blanks and quotes
		for _, m := range marks[first:] {
			if m[0] >= sp.to {
				break
			}
			bare = bare && (m[0] <= at || strings.Trim(s[at:m[0]], " \t\r\n\"'\\") == "")
			sp.from, sp.to = min(sp.from, m[0]), max(sp.to, m[1])
			at = m[1]
		}
		if bare && (at >= sp.to || strings.Trim(s[at:sp.to], " \t\r\n\"'\\") == "") {
			continue
		}
		kept = append(kept, sp)
	}
	return kept
}

// replaceSpans replaces each span by a mark, merging them first.
func replaceSpans(s string, spans []span) string {
	var out strings.Builder
	copied := 0
	for _, sp := range spans {
		out.WriteString(s[copied:sp.from])
		mark := redactionMark(sp.to - sp.from)
		if sp.quoted {
			mark = "'" + mark + "'"
		}
		out.WriteString(mark)
		copied = sp.to
	}
	out.WriteString(s[copied:])
	return out.String()
}
