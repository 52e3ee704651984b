package controltower

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// frames cuts the bytes of a stream into blocks, each ended by a blank line.
type frames struct {
	max     int // bytes of a block with what ends it
	buf     []byte
	scanned int // bytes of buf that have been scanned, and hold no end
}

func (f *frames) push(data []byte) { f.buf = append(f.buf, data...) }

func (f *frames) empty() bool { return len(f.buf) == 0 }

// next returns the next block without the blank line, or false if it is
// incomplete. An incomplete block counts to the limit too.
func (f *frames) next() (string, bool, error) {
	size, whole := len(f.buf), false
	if at := bytes.Index(f.buf[f.scanned:], []byte("\n\n")); at >= 0 {
		size, whole = f.scanned+at+2, true
	}
	switch {
	case size > f.max:
		return "", false, fmt.Errorf("a frame of the stream is longer than %d bytes", f.max)
	case bytes.IndexByte(f.buf[f.scanned:size], '\r') >= 0:
		return "", false, errors.New("the stream holds a carriage return")
	case !whole:
		f.scanned = max(size-1, 0)
		return "", false, nil
	}
	block := string(f.buf[:size-2])
	f.buf = append(f.buf[:0], f.buf[size:]...)
	f.scanned = 0
	if !utf8.ValidString(block) {
		return "", false, errors.New("the stream is not UTF-8")
	}
	return block, true, nil
}

// block is one block of the stream: an event, the end of the stream or, if
// neither, only a sign of life.
type block struct {
	event *eventFields
	end   string
}

type eventFields struct {
	id          int64
	event, data string
}

var (
	retryPattern    = regexp.MustCompile(`^retry: [0-9]{1,18}$`)
	sequencePattern = regexp.MustCompile(`^[1-9][0-9]{0,17}$`)
)

// parseBlock parses a block; first reports whether it opens the stream.
func parseBlock(text string, first bool) (block, error) {
	switch {
	case first:
		if !retryPattern.MatchString(text) {
			return block{}, errors.New("the stream does not start with its retry field alone")
		}
		return block{}, nil
	case text == ": keepalive":
		return block{}, nil
	case strings.HasPrefix(text, ":"):
		switch reason, ok := strings.CutPrefix(text, ": stream-ended reason="); reason {
		case EndMaxDuration, EndShutdown, EndStoreError:
			if ok {
				return block{end: reason}, nil
			}
		}
		return block{}, errors.New("the stream holds a comment that is neither keepalive nor an end marker")
	}
	fields := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		name, value, ok := strings.Cut(line, ": ")
		if !ok || name != "id" && name != "event" && name != "data" {
			return block{}, errors.New("an event holds a field other than id, event and data")
		}
		if _, twice := fields[name]; twice {
			return block{}, fmt.Errorf("an event holds the field %s twice", name)
		}
		fields[name] = value
	}
	if len(fields) != 3 {
		return block{}, errors.New("an event does not hold each of id, event and data")
	}
	if !sequencePattern.MatchString(fields["id"]) {
		return block{}, errors.New("the id of an event is no sequence")
	}
	id, err := strconv.ParseInt(fields["id"], 10, 64)
	if err != nil {
		return block{}, errors.New("the id of an event is no sequence")
	}
	return block{event: &eventFields{id: id, event: fields["event"], data: fields["data"]}}, nil
}
