package cli

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
)

// The end of the input, as by Ctrl-D, may come while an answer is shown. The prompt after that answer must not wait for a
// line that nobody will type.
func TestTypedLinesRememberTheirEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines := readTypedLines(strings.NewReader(""))
		synctest.Wait() // the end is read, and nobody has asked for it
		lines.forget(nil)
		for range 2 {
			line, err := lines.next(&keys{make(chan os.Signal, 1)})
			if line != "" || !errors.Is(err, io.EOF) {
				t.Errorf("got %q and %v, want the end of the input", line, err)
			}
		}
	})
}
