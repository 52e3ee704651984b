package redact

import "strings"

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	// maxLabel limits the name in a line that begins or ends a block.
	maxLabel = 64
)

// findPEM finds PEM blocks, also those with escaped line feeds (\n), and the remainder of one truncated at either end.
func findPEM(s string, spans []span) []span {
	if !strings.Contains(s, "-----") {
		return spans
	}
	copied := 0
	cut := func(from, to int) {
		spans = append(spans, span{from: from, to: to})
		copied = to
	}
	begin, end := strings.Index(s, pemBegin), strings.Index(s, pemEnd)
	for begin >= 0 || end >= 0 {
		switch {
		case begin >= 0 && end > begin: // whole
			to := pastLabel(s, end+len(pemEnd))
			if isPublicBlock(s, begin, end) {
				copied = to
			} else {
				cut(begin, to)
			}
		case begin >= 0 && end < 0: // the end is missing
			label := pastLabel(s, begin+len(pemBegin))
			to := label
			for to < len(s) && inPEM(s[to]) {
				to++
			}
			if publicLabels[pemLabel(s[begin+len(pemBegin):])] {
				copied = to
			} else {
				cut(begin, to)
			}
		default: // the beginning is missing
			from := end
			for from > copied && inPEM(s[from-1]) {
				from--
			}
			to := pastLabel(s, end+len(pemEnd))
			if publicLabels[pemLabel(s[end+len(pemEnd):])] {
				copied = to
			} else {
				cut(from, to)
			}
		}
		begin, end = indexAfter(s, pemBegin, begin, copied), indexAfter(s, pemEnd, end, copied)
	}
	return spans
}

// isPublicBlock reports whether the block between a begin line and an end line is public: both lines have a public
// label, and only base64 is between them.
func isPublicBlock(s string, begin, end int) bool {
	label := pemLabel(s[begin+len(pemBegin):])
	if !publicLabels[label] || pemLabel(s[end+len(pemEnd):]) != label {
		return false
	}
	from := begin + len(pemBegin) + len(label) + len("-----")
	return from <= end && isPEMBody(s[from:end])
}

// indexAfter returns the position of the next sub at or after from; known is the last position found, or -1 if none is
// left.
func indexAfter(s, sub string, known, from int) int {
	if known < 0 || known >= from {
		return known
	}
	if i := strings.Index(s[from:], sub); i >= 0 {
		return from + i
	}
	return -1
}

// pastLabel returns the end of the line that begins or ends a block.
func pastLabel(s string, at int) int {
	if i := strings.Index(s[at:min(at+maxLabel, len(s))], "-----"); i >= 0 {
		return at + i + len("-----")
	}
	return at
}

func inPEM(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("+/= \t\r\n\\", c) >= 0
}
