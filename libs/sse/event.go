package sse

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"
)

// ContentType is the media type of an event stream.
const ContentType = "text/event-stream"

// Event is one event. An empty Name stands for "message".
type Event struct {
	ID    string
	Name  string
	Data  []byte
	Retry time.Duration // tells the client its reconnection delay; 0 does not
}

// ErrBadField refuses CR, LF or NUL in an id or name: they would let data of
// one event forge the next.
var ErrBadField = errors.New("sse: id and event must not contain CR, LF or NUL")

// Append adds the event's frame to dst. Line ends of every kind in Data become
// several data fields, which a reader joins by LF.
func (e Event) Append(dst []byte) ([]byte, error) {
	if strings.ContainsAny(e.ID, "\r\n\x00") || strings.ContainsAny(e.Name, "\r\n\x00") {
		return dst, ErrBadField
	}
	if e.Name != "" {
		dst = append(append(append(dst, "event: "...), e.Name...), '\n')
	}
	if e.ID != "" {
		dst = append(append(append(dst, "id: "...), e.ID...), '\n')
	}
	if e.Retry > 0 {
		dst = append(strconv.AppendInt(append(dst, "retry: "...), e.Retry.Milliseconds(), 10), '\n')
	}
	data := e.Data
	for {
		dst = append(dst, "data: "...)
		i := bytes.IndexAny(data, "\r\n")
		if i < 0 {
			dst = append(dst, data...)
			break
		}
		dst = append(append(dst, data[:i]...), '\n')
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
	return append(dst, '\n', '\n'), nil
}

// appendComment adds a comment, which readers ignore; line ends begin another.
func appendComment(dst []byte, text string) []byte {
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\r' || r == '\n' }) {
		dst = append(append(append(dst, ": "...), line...), '\n')
	}
	if len(dst) == 0 {
		dst = append(dst, ":\n"...)
	}
	return append(dst, '\n')
}
