// Package clip truncates text to a number of characters, at line ends, and states in the text what is missing.
package clip

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Head keeps the first lines. hint explains how to see the rest; it may be empty.
func Head(text string, most int, hint string) (kept string, cut bool) {
	if utf8.RuneCountInString(text) <= most {
		return text, false
	}
	lines := strings.SplitAfter(text, "\n")
	room := most - utf8.RuneCountInString(clipMarker("first", len(lines), len(lines), hint))
	n := countFitting(lines, room, func(i int) int { return i })
	return strings.Join(lines[:n], "") + clipMarker("first", n, countLines(lines), hint), true
}

// Tail keeps the last lines: of a log, the newest.
func Tail(text string, most int, hint string) (kept string, cut bool) {
	if utf8.RuneCountInString(text) <= most {
		return text, false
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	room := most - utf8.RuneCountInString(clipMarker("last", len(lines), len(lines), hint))
	n := countFitting(lines, room, func(i int) int { return len(lines) - 1 - i })
	return clipMarker("last", n, len(lines), hint) + strings.Join(lines[len(lines)-n:], ""), true
}

// countFitting counts the lines that fit, in the order that at gives.
func countFitting(lines []string, room int, at func(int) int) int {
	for i := range lines {
		if room -= utf8.RuneCountInString(lines[at(i)]); room < 0 {
			return i
		}
	}
	return len(lines)
}

// countLines ignores the empty piece after the last line feed.
func countLines(lines []string) int {
	if lines[len(lines)-1] == "" {
		return len(lines) - 1
	}
	return len(lines)
}

func clipMarker(which string, n, of int, hint string) string {
	if hint != "" {
		hint = "; " + hint
	}
	return fmt.Sprintf("[the %s %d of %d lines%s]\n", which, n, of, hint)
}
