package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxFrame limits one frame, in bytes. The longest of the platform is an approval of the assistant, with a diff of 3,000 characters.
const maxFrame = 1 << 20

// ErrFrameTooLarge means that a frame is longer than [maxFrame]; nothing more can be read.
var ErrFrameTooLarge = errors.New("sse: a frame of the stream is too large")

// Frame is one server-sent event or comment of a stream.
type Frame struct {
	// Raw are its original bytes, with the blank line that ends it.
	Raw []byte
	// Data are its data lines joined by LF; nil for a comment.
	Data []byte
}

// Done reports whether the frame is the last of a complete answer of chat completions.
func (f Frame) Done() bool { return string(f.Data) == "[DONE]" }

// FrameReader splits a stream into frames. Use it from one goroutine.
type FrameReader struct{ r *bufio.Reader }

// NewFrameReader reads from r.
func NewFrameReader(r io.Reader) *FrameReader { return &FrameReader{bufio.NewReaderSize(r, 16<<10)} }

// Next is the next frame. A stream that ends between two frames ends with io.EOF, one that breaks off within a
// frame with io.ErrUnexpectedEOF: half a frame is no frame.
func (f *FrameReader) Next() (Frame, error) {
	var frame Frame
	for {
		line, err := f.readLine(maxFrame - len(frame.Raw))
		if err != nil {
			if errors.Is(err, io.EOF) && len(frame.Raw)+len(line) > 0 {
				return Frame{}, io.ErrUnexpectedEOF
			}
			return Frame{}, err
		}
		blank := len(bytes.TrimRight(line, "\r\n")) == 0
		if blank && len(frame.Raw) == 0 {
			continue // further blank lines between two frames mean nothing
		}
		frame.Raw = append(frame.Raw, line...)
		if blank {
			return frame, nil
		}
		if data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); ok {
			if frame.Data != nil {
				frame.Data = append(frame.Data, '\n')
			}
			frame.Data = append(frame.Data, bytes.TrimPrefix(data, []byte(" "))...)
			if frame.Data == nil {
				frame.Data = []byte{}
			}
		}
	}
}

// readLine reads up to and with LF, at most room bytes. The platform ends lines by LF; one that ends by CR alone
// is read as part of the next, which its JSON, having no raw CR, survives.
func (f *FrameReader) readLine(room int) ([]byte, error) {
	var line []byte
	for {
		part, err := f.r.ReadSlice('\n')
		if len(line)+len(part) > room {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrFrameTooLarge, maxFrame)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
