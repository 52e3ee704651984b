package command

import (
	"io"
	"sync"
)

// Output is a stdout that remembers its first failed write, so that a result lost to a full disk is a fault also of
// the commands that print it line by line. Nothing is written after it: half a result must not look whole.
type Output struct {
	to io.Writer

	mu  sync.Mutex // guards what follows
	err error
}

// NewOutput makes an Output on to.
func NewOutput(to io.Writer) *Output { return &Output{to: to} }

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.to.Write(p)
	if err != nil {
		o.err = Failf(OutputWriteError, "cannot write to standard output: %w", err)
		return n, o.err
	}
	return n, nil
}

// Err is the first failed write.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
