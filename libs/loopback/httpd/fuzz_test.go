package httpd

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// parseIn feeds a head in pieces of the given size and returns the result.
func parseIn(data []byte, size int) (r Request, end, status int, done bool) {
	var h head
	for n := 0; n < len(data); {
		n = min(n+size, len(data))
		if done, status = h.next(data[:n]); status != 0 {
			return r, 0, status, false
		}
		if done {
			h.fill(data[:n], &r)
			return r, h.line, 0, true
		}
	}
	return r, 0, 0, false
}

// FuzzHead: a head is accepted, refused with one of four statuses, or waited for;
// how it is split into packets changes nothing; an accepted head respects the limits
// and has the same content when it is written again.
func FuzzHead(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST http://127.0.0.1:80/a?b HTTP/1.0\nContent-Length: 3\nA:\n\nabc",
		"GET / HTTP/2.0\r\n", "GET /\r\n", "\r\n", "GET / HTTP/1.1\r\n folded\r\n", "GET / HTTP/1.1\r\nA\x00: b\r\n",
		"GET / HTTP/1.1\r\n" + strings.Repeat("A:\n", 100), // the long lines are in TestParserLevelAnswers
	} {
		f.Add([]byte(seed), 7)
	}
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		r, end, status, done := parseIn(data, max(len(data), 1))
		again, end2, status2, done2 := parseIn(data, max(1, size%4096))
		if end != end2 || status != status2 || done != done2 || !reflect.DeepEqual(r, again) {
			t.Fatalf("at once: %d %d %v %+v; in pieces: %d %d %v %+v; want end == end2 && status == status2 && done == done2 && reflect.DeepEqual(r, again)", end, status, done, r, end2, status2, done2, again)
		}
		if status != 0 && refusals[status] == "" {
			t.Fatalf(`refused with %d; want (status == 0 || refusals[status] != "")`, status)
		}
		if !done {
			return
		}
		if len(r.Header) > MaxFields || !bytes.HasSuffix(data[:end], []byte("\n")) || r.Target == "" || r.Absolute && r.Path == "" {
			t.Fatalf("%+v; want len(r.Header) <= MaxFields && bytes.HasSuffix(data[:end], []byte(\"\\n\")) && r.Target != \"\" && (!r.Absolute || r.Path != \"\")", r)
		}
		if !r.Absolute && r.Path+map[bool]string{true: "?"}[r.HasQuery]+r.RawQuery != r.Target {
			t.Fatalf(`%+v does not add up to its target; want (r.Absolute || r.Path + map[bool]string{true: "?"}[r.HasQuery] + r.RawQuery == r.Target)`, r)
		}
		text := fmt.Sprintf("%s %s %s\r\n", r.Method, r.Target, r.Proto)
		for _, field := range r.Header {
			text += field.Name + ": " + field.Value + "\r\n"
		}
		if len(text) > MaxRequestLine {
			return // line feeds became longer
		}
		written, _, status, done := parseIn([]byte(text+"\r\n"), 1<<20)
		if !done || !reflect.DeepEqual(written, r) {
			t.Fatalf("%q: %d, %+v, want %+v", text, status, written, r)
		}
	})
}
