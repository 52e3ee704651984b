package request

import (
	"regexp"
	"strings"
	"testing"
)

var made = regexp.MustCompile(`^req_[0-9a-f]{32}$`)

func TestID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a", "a:b.c", "0-_x", strings.Repeat("a", 128)} {
		if got := ID([]string{id}); got != id {
			t.Errorf("%q became %q", id, got)
		}
	}
	for _, ids := range [][]string{nil, {""}, {"bad id"}, {strings.Repeat("a", 129)}, {"a", "a"}, {".a"}, {"é"}, {"a\x00"}} {
		if got := ID(ids); !made.MatchString(got) {
			t.Errorf("%q became %q", ids, got)
		}
	}
	if NewID() == NewID() {
		t.Error("one id twice")
	}
}

func TestTraceParent(t *testing.T) {
	t.Parallel()
	trace, parent := strings.Repeat("a", 32), strings.Repeat("1", 16)
	good := "00-" + trace + "-" + parent + "-01"
	if TraceParent([]string{good}) != good {
		t.Error("a valid one was dropped")
	}
	for _, bad := range []string{
		"", " " + good, good + " ", "01" + good[2:], "ff" + good[2:], strings.ToUpper(good), good + "-x", good[:54],
		"00-" + strings.Repeat("0", 32) + "-" + parent + "-01", "00-" + trace + "-" + strings.Repeat("0", 16) + "-01",
		"00-" + trace[1:] + "g-" + parent + "-01", "00_" + trace + "-" + parent + "-01", "00-" + trace + "-" + parent + "-0g",
	} {
		if got := TraceParent([]string{bad}); got != "" {
			t.Errorf("%q was echoed", bad)
		}
	}
	if TraceParent([]string{good, good}) != "" {
		t.Error("two were taken")
	}
}
