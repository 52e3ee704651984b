package command

import (
	"fmt"
	"io"
	"time"

	"github.com/mlp-platform/platform/libs/cli/printable"
	"github.com/mlp-platform/platform/libs/cli/terminal"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// Env is a command's access to its environment; tests pass buffers and a fixed clock.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer // results
	Stderr io.Writer // faults, progress, warnings
	Getenv func(string) string
	// LookupEnv distinguishes an empty variable from an absent one; nil: Getenv does not either.
	LookupEnv func(string) (string, bool)
	Now       func() time.Time

	Terminal      bool // Stdout is a terminal
	ErrorTerminal bool // Stderr is one: progress may be shown
	Width         int  // columns of the terminal behind Stdout; 0 is unlimited

	Version     string // of the build
	OpenBrowser func(string) error
}

// Variable returns a variable of the environment and whether it is set.
func (e *Env) Variable(name string) (string, bool) {
	if e.LookupEnv != nil {
		return e.LookupEnv(name)
	}
	v := e.Getenv(name)
	return v, v != ""
}

// JSON prints a document in form J. It accepts the values that canon.From accepts.
func (e *Env) JSON(v any) error {
	value, err := canon.From(v)
	if err != nil {
		return err
	}
	data, err := canon.J(value)
	if err != nil {
		return err
	}
	_, err = e.Stdout.Write(data)
	return err
}

// Printf prints on stdout, cleaned but for line breaks: text of others that must stay on its line passes [Clean] first.
// A write that fails ends the command by its end at
// the latest: see [Output].
func (e *Env) Printf(format string, a ...any) {
	fmt.Fprint(e.Stdout, printable.Text(fmt.Sprintf(format, a...)))
}

// ShowProgress puts text in place of the last progress on the line of stderr; an empty one clears the line. What is
// lost with a stderr that cannot be written is only progress.
func (e *Env) ShowProgress(text string) {
	_ = printable.WriteControl(e.Stderr, "\r\x1b[K"+printable.Line(text))
}

// Written returns the error if output so far did not reach stdout. Only an act that cannot be repeated, or whose result
// is lost with its text, needs to check before the command ends.
func (e *Env) Written() error {
	if o, ok := e.Stdout.(*Output); ok {
		return o.Err()
	}
	return nil
}

// Clean makes text of others safe to print, as one line.
func Clean(s string) string { return printable.Line(s) }

// Table prints rows: at a terminal under a heading and cut to its width, to a pipe separated by tabs, without a
// heading. The cells are text of others and get cleaned.
func (e *Env) Table(header []string, rows [][]string) error {
	cells := make([][]string, len(rows))
	for i, row := range rows {
		cells[i] = make([]string, len(row))
		for j, c := range row {
			cells[i][j] = printable.Line(c)
		}
	}
	if !e.Terminal {
		return terminal.Tabs(e.Stdout, cells)
	}
	if len(rows) == 0 {
		return nil
	}
	columns := make([]terminal.Column, len(header))
	for i, h := range header {
		columns[i] = terminal.Column{Title: h, Right: isNumeric(cells, i)}
	}
	return terminal.Table(e.Stdout, e.Width, false, columns, cells)
}

// isNumeric reports whether a column holds nothing but digits, and not so many that they are a digest or revision.
func isNumeric(cells [][]string, column int) bool {
	for _, row := range cells {
		if column >= len(row) || row[column] == "" || len(row[column]) > 19 {
			return false
		}
		for _, c := range row[column] {
			if c < '0' || c > '9' {
				return false
			}
		}
	}
	return true
}
