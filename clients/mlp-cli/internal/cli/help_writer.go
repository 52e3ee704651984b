package cli

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
)

// minDescription is the minimum width of a description beside its option. If less is left, it goes below.
const minDescription = 24

// helpWriter wraps the lines of a help between words. A terminal would break them inside words, and the flag library
// wraps only with a package variable that every run in a process shares.
type helpWriter struct {
	out   io.Writer
	width int
	rest  []byte // the line that has not ended
}

func (w *helpWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, ended := bytes.Cut(w.rest, []byte("\n"))
		if !ended {
			return len(p), nil
		}
		wrapped := wrapHelpLine(string(line), w.width)
		w.rest = rest
		if _, err := io.WriteString(w.out, wrapped+"\n"); err != nil {
			return 0, err
		}
	}
}

// flush writes a last line that does not end in a newline.
func (w *helpWriter) flush() {
	if len(w.rest) > 0 {
		_, _ = io.WriteString(w.out, wrapHelpLine(string(w.rest), w.width)) // nowhere to report an error
		w.rest = nil
	}
}

// wrapHelpLine breaks a line of a help between words. The text after two spaces is the description of an option or
// command: its continuation lines are aligned below the first.
func wrapHelpLine(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	term, description, described := strings.Cut(text, "  ")
	if !described {
		return output.WrapWords(text, indent, indent+2, width)
	}
	description = strings.TrimLeft(description, " ")
	column := utf8.RuneCountInString(line) - utf8.RuneCountInString(description)
	if width-column >= minDescription {
		return line[:len(line)-len(description)] + strings.TrimLeft(output.WrapWords(description, column, column, width), " ")
	}
	return output.WrapWords(term, indent, indent+2, width) + "\n" + output.WrapWords(description, indent+4, indent+4, width)
}
