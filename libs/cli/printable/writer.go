package printable

import (
	"io"
	"sync"
)

// Writer passes on what is written to it as it may be printed. A character may be cut between two writes; one that is
// never completed is not written. A colour may not be cut. Writes may be called at once.
type Writer struct {
	colors bool

	mu   sync.Mutex // guards out and rest
	out  io.Writer
	rest []byte // the start of a character, of the last write
}

// NewWriter returns a writer to out that lets no sequence pass: for logs and errors.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// NewColorWriter returns a writer to out that lets the tools' own colours pass. What is coloured must have passed
// [Line] or [Text], or others colour with it too.
func NewColorWriter(out io.Writer) *Writer { return &Writer{out: out, colors: true} }

// Write implements io.Writer. It counts the bytes of p, not of what they became.
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
