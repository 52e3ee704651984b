package chat

import (
	"net/http"
	"strconv"
	"strings"
)

// EventID is the id of a frame in a session: the turn's number, and the frame's in the turn.
func EventID(turn, frame int32) string {
	b := append(strconv.AppendInt(nil, int64(turn), 10), '.')
	return string(strconv.AppendInt(b, int64(frame), 10))
}

// LastEventID is the frame after which a reader resumes, by its header Last-Event-ID; false if it sent none that is
// such an id, and gets all.
func LastEventID(h http.Header) (turn, frame int32, ok bool) {
	left, right, ok := strings.Cut(h.Get("Last-Event-ID"), ".")
	if !ok {
		return 0, 0, false
	}
	t, terr := parseDigits(left)
	f, ferr := parseDigits(right)
	return t, f, terr == nil && ferr == nil
}

// parseDigits takes digits only, where strconv would take a sign.
func parseDigits(s string) (int32, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int32(n), err
}
