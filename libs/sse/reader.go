package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// DefaultMaxEvent bounds, in bytes, one event that a Reader takes.
const DefaultMaxEvent = 1 << 20

// ErrTooLarge means an event longer than the Reader's bound. The stream cannot
// be read further.
var ErrTooLarge = errors.New("sse: event too large")

// Reader reads the events of a stream. Use it from one goroutine.
type Reader struct {
	r      *bufio.Reader
	max    int
	lastID string
	retry  time.Duration
	line   []byte
	begun  bool // the first line was read: a byte order mark is no more skipped
	skipLF bool // the last line ended with CR; an LF after it belongs to it
	err    error
}

// NewReader reads from r. maxEvent bounds one event with its comments, in bytes;
// 0 means DefaultMaxEvent.
func NewReader(r io.Reader, maxEvent int) *Reader {
	if maxEvent <= 0 {
		maxEvent = DefaultMaxEvent
	}
	return &Reader{r: bufio.NewReader(r), max: maxEvent}
}

// LastEventID is what a client sends when it reconnects; it may be newer than
// the last event's, as an id can come without data.
func (r *Reader) LastEventID() string { return r.lastID }

// Retry is the reconnection delay the server asked for, or 0.
func (r *Reader) Retry() time.Duration { return r.retry }

// Next is the next event. At the end of the stream it is io.EOF; an event that
// the end cut off is not returned, as the standard says.
func (r *Reader) Next() (Event, error) {
	if r.err != nil {
		return Event{}, r.err
	}
	e, err := r.next()
	r.err = err
	return e, err
}

func (r *Reader) next() (Event, error) {
	var e Event
	hasData := false
	for size := 0; ; {
		line, err := r.readLine(r.max - size)
		if err != nil {
			return Event{}, err
		}
		size += len(line) + 1
		if len(line) == 0 {
			if !hasData {
				e, size = Event{}, 0
				continue
			}
			e.ID = r.lastID
			e.Data = e.Data[:len(e.Data)-1] // the LF after the last data line
			return e, nil
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) { // the name is empty for comments
		case "data":
			hasData = true
			e.Data = append(append(e.Data, value...), '\n')
		case "event":
			e.Name = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				r.lastID = string(value)
			}
		case "retry":
			if d, ok := parseMillis(value); ok {
				r.retry, e.Retry = d, d
			}
		}
	}
}

// parseMillis reads ASCII digits only; the standard knows no sign.
func parseMillis(value []byte) (time.Duration, bool) {
	n, err := strconv.ParseUint(string(value), 10, 63)
	if err != nil || n > math.MaxInt64/uint64(time.Millisecond) {
		return 0, false
	}
	return time.Duration(n) * time.Millisecond, true
}

// readLine reads up to LF, CR LF or CR. The line is valid until the next call.
// It does not wait for the byte after a CR, which may come much later.
func (r *Reader) readLine(room int) ([]byte, error) {
	r.line = r.line[:0]
	for {
		if _, err := r.r.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				return nil, io.EOF
			}
			return nil, fmt.Errorf("sse: read: %w", err)
		}
		chunk, _ := r.r.Peek(r.r.Buffered())
		if r.skipLF {
			r.skipLF = false
			if chunk[0] == '\n' {
				_, _ = r.r.Discard(1) // buffered, cannot fail
				continue
			}
		}
		i := bytes.IndexAny(chunk, "\r\n")
		n := i
		if i < 0 {
			n = len(chunk)
		}
		if len(r.line)+n > room {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, r.max)
		}
		r.line = append(r.line, chunk[:n]...)
		if i < 0 {
			_, _ = r.r.Discard(n)
			continue
		}
		r.skipLF = chunk[i] == '\r'
		_, _ = r.r.Discard(n + 1)
		if !r.begun {
			r.begun = true
			return bytes.TrimPrefix(r.line, []byte("\ufeff")), nil
		}
		return r.line, nil
	}
}
