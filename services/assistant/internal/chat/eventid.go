package chat

import (
	"net/http"
	"strconv"
	"strings"
)

// EventID returns the id of a frame in a session: the turn's number, and the frame's number in the turn.
func EventID(turn, frame int32) string {
	b := append(strconv.AppendInt(nil, int64(turn), 10), '.')
	return string(strconv.AppendInt(b, int64(frame), 10))
}

// LastEventID returns the frame after which a reader resumes, from its header Last-Event-ID; false if there is no valid
// one, and the reader gets all frames.
func LastEventID(h http.Header) (turn, frame int32, ok bool) {
	left, right, ok := strings.Cut(h.Get("Last-Event-ID"), ".")
	if !ok {
		return 0, 0, false
	}
	t, terr := parseDigits(left)
	f, ferr := parseDigits(right)
	return t, f, terr == nil && ferr == nil
}

// parseDigits accepts digits only, whereas strconv would accept a sign.
func parseDigits(s string) (int32, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int32(n), err
}
