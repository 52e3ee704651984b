package modelrepo

import (
	"bytes"
	"fmt"
	"strings"
)

// Limits of a YAML file before the parser sees it. The parser keeps a node for each level and each value, and copies
// some of them from level to level: 50 kB of opening brackets took it 4 GB. A model repository needs a fraction of
// this.
const (
	maxFlowDepth = 24    // brackets open at one place
	maxOpeners   = 2_000 // brackets in a file: one that hides how they close is still small
	maxIndent    = 96    // columns before a value
	maxInline    = 8     // "- - - x": sequences or complex keys that begin on one line
	maxLines     = 4_000 // of a file
	maxLine      = 16 << 10
	maxMarks     = 2_000 // tags, anchors, aliases and quotes
)

// checkShape refuses a file that would take the YAML parser much more memory than it has bytes. It does not know
// where strings begin and end, and need not: a file of people has few brackets even within them.
func checkShape(src []byte) error {
	if n := bytes.Count(src, []byte{'\n'}) + bytes.Count(src, []byte{'\r'}); n > maxLines {
		return fmt.Errorf("has more than %d lines", maxLines)
	}
	depth, openers, marks := 0, 0, 0
	for line := range bytes.FieldsFuncSeq(src, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if len(line) > maxLine {
			return fmt.Errorf("has a line of %d bytes; at most %d", len(line), maxLine)
		}
		if err := checkIndent(line); err != nil {
			return err
		}
		for _, c := range line {
			switch c {
			case '[', '{':
				depth++
				openers++
			case ']', '}':
				depth = max(0, depth-1)
			case '!', '&', '*', '"', '\'', '?', '|', '>', '%':
				marks++
			}
			if depth > maxFlowDepth {
				return fmt.Errorf("opens more than %d brackets within each other", maxFlowDepth)
			}
		}
		if openers > maxOpeners || marks > maxMarks {
			return fmt.Errorf("has more than %d brackets, or more than %d quotes, tags and similar marks", maxOpeners, maxMarks)
		}
	}
	return nil
}

// checkIndent limits the levels that one line can open by its indentation and by the indicators at its start.
func checkIndent(line []byte) error {
	inline, column := 0, 0
	for column < len(line) {
		switch {
		case line[column] == ' ' || line[column] == '\t':
		case strings.IndexByte("-?:", line[column]) >= 0 && (column+1 == len(line) || line[column+1] == ' ' || line[column+1] == '\t'):
			inline++
		default:
			column = len(line)
			continue
		}
		if column++; column > maxIndent {
			return fmt.Errorf("is indented by more than %d columns", maxIndent)
		}
		if inline > maxInline {
			return fmt.Errorf("begins more than %d lists on one line", maxInline)
		}
	}
	// The values of one line: "a: b: c: …" is no YAML, yet the parser builds a level for each before it reports that.
	if n := bytes.Count(line, []byte(": ")); n > 64 {
		return fmt.Errorf("has more than 64 keys on one line")
	}
	return nil
}
