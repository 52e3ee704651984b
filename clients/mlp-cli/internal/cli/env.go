package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mlp-platform/platform/libs/cli/argv"
	"github.com/mlp-platform/platform/libs/cli/printable"
	"github.com/mlp-platform/platform/libs/cli/terminal"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/config"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/cli/invocation"
)

// Env is a command's access to the outside world; tests pass buffers and a fixed clock.
type Env struct {
	In     io.Reader
	Out    io.Writer // data
	Err    io.Writer // talk: prompts, progress, hints
	Getenv func(string) string
	Now    func() time.Time // the clock of ages; how long a call took is measured with time.Since
	HTTP   *http.Client

	OutTTY, ErrTTY, InTTY bool
	Joined                bool // Out and Err go into one file or pipe
	OutWidth              int  // columns of the terminal behind Out; 0 if it is not a terminal
	ErrWidth              int  // of the one behind Err

	// Set from the global options before a command runs.
	Format      output.Format
	Context     string
	Yes         bool
	Quiet       bool
	Verbose     bool
	data        io.Writer         // Out for bytes that must not change; a terminal's is still cleaned
	bars        io.Writer         // Err for progress bars, which move the cursor; untrusted text in them is cleaned before
	selection   *output.Selection // of --fields and --jq
	compact     bool              // documents of one line: those of --watch
	command     string            // the command that runs, for dry runs
	interrupted func() bool       // whether Ctrl-C came
	lines       *bufio.Reader     // over In, for all prompts of one run
	changes     *changes          // the command's changes, to be recorded
	overrides   *sync.Once        // guards the one line about variables that override --context
}

// System returns the Env of the real process.
func System() *Env {
	return &Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Now: time.Now, Format: output.Table,
		OutTTY: terminal.IsTerminal(os.Stdout), ErrTTY: terminal.IsTerminal(os.Stderr), InTTY: terminal.IsTerminal(os.Stdin),
		Joined: isSameFile(os.Stdout, os.Stderr), OutWidth: terminal.Width(os.Stdout), ErrWidth: terminal.Width(os.Stderr)}
}

func isSameFile(a, b *os.File) bool {
	x, errX := a.Stat()
	y, errY := b.Stat()
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// cleanStreams returns e with streams that show untrusted text without letting it control the terminal. Documents to a
// pipe are data and pass unchanged.
func (e *Env) cleanStreams() *Env {
	own := *e
	own.overrides, own.changes = new(sync.Once), new(changes)
	own.data, own.bars = e.Out, e.Err
	own.Err = printable.NewWriter(e.Err)
	if e.OutTTY || !e.Format.Structured() {
		own.Out = printable.NewColorWriter(e.Out)
	}
	if e.OutTTY {
		own.data = own.Out
	}
	return &own
}

// Color reports whether to colour the terminal (NO_COLOR, TERM=dumb).
func (e *Env) Color() bool {
	return e.OutTTY && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
}

// Printer writes results in the chosen format.
func (e *Env) Printer() *output.Printer {
	return &output.Printer{Out: e.Out, Format: e.Format, Width: e.OutWidth, Now: e.Now, Color: e.Color() && e.Format == output.Table, Select: e.selection, Compact: e.compact}
}

// Config resolves the settings in force. Variables override the context, even one named by --context; that case is
// reported once per run, or a forgotten export would send a command to another platform unnoticed.
func (e *Env) Config() (*config.Resolved, error) {
	f, err := config.Load(config.Path(e.Getenv))
	if err != nil {
		return nil, err
	}
	r, err := config.Resolve(f, e.Context, e.Getenv)
	if err == nil && e.Context != "" && len(r.Overriding) > 0 && e.overrides != nil {
		e.overrides.Do(func() {
			e.Talk("note: the environment overrides the context %s: %s", r.Context, strings.Join(r.Overriding, ", "))
		})
	}
	return r, err
}

// Talk writes a line to people; silent under --quiet and in structured formats.
func (e *Env) Talk(format string, a ...any) {
	if !e.Quiet && !e.Format.Structured() {
		fmt.Fprintln(e.Err, output.Wrap(fmt.Sprintf(format, a...), e.ErrWidth))
	}
}

// Confirm asks before a mutation. --yes, a structured format and a stdin that is no terminal count as yes. After a
// declined question it prints that nothing changed.
func (e *Env) Confirm(ctx context.Context, question string, yesByDefault bool) (bool, error) {
	if e.Yes || e.Format.Structured() || !e.InTTY {
		return true, nil
	}
	choice := "[y/N]"
	if yesByDefault {
		choice = "[Y/n]"
	}
	fmt.Fprintf(e.Err, "%s %s ", question, choice)
	line, err := e.readLine(ctx)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	case "":
		if yesByDefault && err == nil {
			return true, nil
		}
	}
	fmt.Fprintln(e.Err, "Nothing changed.")
	return false, nil
}

// Check is one test of a dry run.
type Check struct {
	Name   string `json:"name"`
	Pass   bool   `json:"pass"`
	Detail string `json:"detail"`
}

// DryRun prints what a mutation would do; it never writes and always succeeds.
func (e *Env) DryRun(target string, would map[string]any, checks []Check) error {
	if e.interrupted != nil && e.interrupted() {
		return fault.New("interrupted", "interrupted; a dry run changes nothing") // else each check reports just that
	}
	if checks == nil {
		checks = []Check{}
	}
	doc := struct {
		DryRun  bool           `json:"dry_run"`
		Command string         `json:"command"`
		Target  string         `json:"target"`
		Would   map[string]any `json:"would"`
		Checks  []Check        `json:"checks"`
	}{true, e.command, target, would, checks}
	p := e.Printer()
	if e.Format == output.JSON || e.Format == output.YAML {
		return p.Document(doc)
	}
	what := output.Grid{Columns: []string{"Command", "Target", "Field", "Value"}}
	if e.Format == output.CSV {
		for _, k := range sortedKeys(would) {
			what.Rows = append(what.Rows, []any{e.command, target, k, dryRunCell(would[k])})
		}
		return p.Print(what)
	}
	what.Title, what.Columns = "Dry run of "+e.command+" "+output.Clean(target)+": nothing is changed", []string{"Field", "Value"}
	for _, k := range sortedKeys(would) {
		what.Rows = append(what.Rows, []any{k, dryRunCell(would[k])})
	}
	tests := output.Grid{Columns: []string{"Check", "Result", "Detail"}, Empty: "No checks."}
	for _, c := range checks {
		result := output.Styled{Value: "pass", Style: output.Good}
		if !c.Pass {
			result = output.Styled{Value: "fail", Style: output.Bad}
		}
		tests.Rows = append(tests.Rows, []any{c.Name, result, c.Detail})
	}
	return p.Print(what, tests)
}

// dryRunCell shows lists and objects as JSON, as the document has them, instead of as Go prints them.
func dryRunCell(v any) any {
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer && !r.IsNil() {
		r = r.Elem()
	}
	switch r.Kind() {
	case reflect.Pointer, reflect.Invalid: // no value
		return nil
	case reflect.Map, reflect.Slice, reflect.Struct:
	default:
		return r.Interface()
	}
	data, err := output.Marshal(v)
	if err != nil {
		return v
	}
	return string(data)
}

// failWith prints the findings, then fails: a document holds both, so in that format only the error's document is
// printed.
func (e *Env) failWith(f *fault.Error, found output.Grid) error {
	if !e.Format.Structured() {
		if err := e.Printer().Print(found); err != nil {
			return err
		}
	}
	return f
}

// fail writes err once, in the form the format asks for, and returns the exit code.
func (e *Env) fail(err error) int {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return fault.ExitOK // a reader that went away, as under `| head -1`, is no error
	}
	f := fault.From(err)
	if field := (*output.UnknownFieldError)(nil); errors.As(err, &field) {
		f = fault.New("unknown_field", "%v", err)
		if near := argv.Nearest(field.Field, field.Known); near != "" {
			f = f.WithHint("did you mean: --fields %s", near)
		} else if len(field.Known) > 0 {
			f = f.WithHint("the fields are %s", strings.Join(field.Known, ", "))
		}
	}
	if errors.Is(err, context.Canceled) {
		f = fault.New("interrupted", "interrupted")
	}
	f = f.WithHint("%s", invocation.Current().Localize(f.Hint))
	if e.Format.Structured() {
		var hint, service, requestID *string
		var status *int
		set := func(s string) *string {
			if s == "" {
				return nil
			}
			return &s
		}
		hint, service, requestID = set(f.Hint), set(f.Service), set(f.RequestID)
		if f.Status != 0 {
			status = &f.Status
		}
		format := e.Format
		if format == output.CSV {
			// One document on failure too; a table of one error has no useful columns.
			format = output.JSON
		}
		_ = (&output.Printer{Out: e.Out, Format: format, Compact: e.compact}).Document(struct {
			Error     string  `json:"error"`
			Code      string  `json:"code"`
			ExitCode  int     `json:"exit_code"`
			Hint      *string `json:"hint"`
			Service   *string `json:"service"`
			Status    *int    `json:"status"`
			RequestID *string `json:"request_id"`
			Faults    any     `json:"faults,omitempty"`
		}{f.Message, f.Code, f.Exit, hint, service, status, requestID, f.Faults})
		return f.Exit
	}
	fmt.Fprintln(e.Err, output.Wrap("error: "+output.Clean(f.Message), e.ErrWidth))
	if f.Hint != "" {
		fmt.Fprintln(e.Err, output.Wrap("hint: "+output.Clean(f.Hint), e.ErrWidth))
	}
	if e.Verbose && f.RequestID != "" {
		fmt.Fprintf(e.Err, "request id: %s\n", output.Clean(f.RequestID))
	}
	return f.Exit
}
