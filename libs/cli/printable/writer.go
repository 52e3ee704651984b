package printable

import (
	"io"
	"sync"
)

// Writer passes on its input in printable form. A character may be split between two writes; one that is never
// completed is not written. A colour must not be split. Writes may be concurrent.
type Writer struct {
	colors bool

	mu   sync.Mutex // guards out and rest
	out  io.Writer
	rest []byte // the start of a character, of the last write
}

// NewWriter returns a writer to out that passes no control sequence: for logs and errors.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// NewColorWriter returns a writer to out that passes the tools' own colours. Coloured text must have passed [Line] or
// [Text], or external text could use the colours too.
func NewColorWriter(out io.Writer) *Writer { return &Writer{out: out, colors: true} }

// Write implements io.Writer. It returns the number of bytes of p, not of the output.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) == 0 && isPrintable(p) {
		return w.out.Write(p)
	}
	all := append(w.rest, p...)
	text, read := appendText(make([]byte, 0, len(all)+16), all, w.colors, false)
	w.rest = append([]byte(nil), all[read:]...)
	if _, err := w.out.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteControl writes a sequence of the program's own, such as one that clears the line of a progress bar, past the
// cleaning. It must hold nothing of others.
func WriteControl(w io.Writer, sequence string) error {
	for own, ok := w.(*Writer); ok; own, ok = w.(*Writer) {
		own.mu.Lock()
		defer own.mu.Unlock()
		w = own.out
	}
	_, err := io.WriteString(w, sequence)
	return err
}
