package cli

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
)

// The end of the input, as by Ctrl-D, may come while an answer is shown. The prompt after that answer must not wait
// for a line that will never come.
func TestTypedLinesRememberTheirEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines := readTypedLines(strings.NewReader(""))
		synctest.Wait() // the end is read before any prompt
		lines.forget(nil)
		for range 2 {
			line, err := lines.next(&keys{make(chan os.Signal, 1)}, func() {})
			if line != "" || !errors.Is(err, io.EOF) {
				t.Errorf("got %q and %v, want the end of the input", line, err)
			}
		}
	})
}

// A press that comes as soon as the prompt is seen ends its wait, and none is taken by the wait before.
func TestPressAtThePromptCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, typed := io.Pipe()
		defer typed.Close() //nolint:errcheck // a pipe's end does not fail
		lines := readTypedLines(in)
		k := &keys{make(chan os.Signal, 1)}
		for n := range 1000 {
			_, cancel := k.during(t.Context())
			cancel()
			line, err := lines.next(k, func() { k.signals <- os.Interrupt })
			if line != "" || !errors.Is(err, errInterrupted) {
				t.Fatalf("press %d: got %q and %v, want it to end the wait", n, line, err)
			}
		}
		typed.Close() //nolint:errcheck // as above
		synctest.Wait()
		lines.forget(nil)
	})
}
