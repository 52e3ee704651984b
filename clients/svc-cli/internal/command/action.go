package command

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/cli/argv"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// Exit codes.
const (
	ExitDone  = fault.ExitOK
	ExitNo    = fault.ExitRuntime
	ExitFault = fault.ExitUsage // any error: 1 is the answer of a check
)

// Shape is the form of a command's error document.
type Shape int

// The shapes.
const (
	Envelope Shape = iota // {"ok":false,"error":{code,message}}
	Verdict               // {"valid":false,"error":{code,path,message}}
)

// JSONFlags are the two spellings of one option, made for each command: the library writes into flags, so that apps
// which share one cannot run concurrently.
func JSONFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "json", Usage: "print the JSON document", DisableDefaultText: true},
		&cli.StringFlag{Name: "output", Usage: "`FORMAT` of the result: text or json", DefaultText: "text"},
	}
}

// WantsJSON reports whether the result is requested as a document.
func WantsJSON(c *cli.Context) bool { return c.Bool("json") || c.String("output") == "json" }

// Exit is the end of a command whose fault is printed already.
type Exit struct{ Code int }

func (e *Exit) Error() string { return fmt.Sprintf("exit %d", e.Code) }

// Action wraps a command's work: its fault is printed and becomes an [Exit].
func (e *Env) Action(s Shape, run func(*cli.Context) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		err := checkFormat(c)
		if err == nil {
			err = run(c)
		}
		return e.End(s, WantsJSON(c), err)
	}
}

// checkFormat refuses an --output that no command has. A command that has another flag of that name defines it itself.
func checkFormat(c *cli.Context) error {
	for _, f := range c.Command.Flags {
		if s, ok := f.(*cli.StringFlag); ok && s.Name == "output" && s.DefaultText == "text" {
			if v := c.String("output"); v != "" && v != "text" && v != "json" {
				return Usagef("--output is text or json, not %q", v)
			}
			if c.Bool("json") && c.String("output") == "text" {
				return Usagef("--json and --output text contradict each other")
			}
		}
	}
	return nil
}

// End prints the fault that ended a command, if any, and returns nil or an [Exit].
func (e *Env) End(s Shape, document bool, err error) error {
	var exit *Exit
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE): // a reader that went away, as under `| head -1`, is no fault
		return nil
	case errors.As(err, &exit):
		return exit
	case errors.Is(err, No):
		return &Exit{ExitNo}
	}
	f := FaultOf(err)
	text := Clean(f.Message)
	if f.Path != "" {
		text = Clean(f.Path) + ": " + text
	}
	if f.Code != InvalidArguments && f.Code != Failed && f.Code != Interrupted {
		text += " (" + f.Code + ")"
	}
	fmt.Fprintf(e.Stderr, "error: %s\n", text)
	if document {
		// A reader that went away misses the document; the exit code stays.
		_ = e.JSON(s.document(f))
	}
	return &Exit{ExitFault}
}

func (s Shape) document(f *Fault) any {
	if s == Verdict {
		type body struct {
			Code    string `json:"code"`
			Path    string `json:"path"`
			Message string `json:"message"`
		}
		return struct {
			Valid bool `json:"valid"`
			Error body `json:"error"`
		}{Error: body{f.Code, f.Path, f.Message}}
	}
	type body struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	return struct {
		OK    bool `json:"ok"`
		Error body `json:"error"`
	}{Error: body{f.Code, f.Message}}
}

// Arguments checks the number of arguments of a command. A name in brackets is optional and is "" if absent.
func Arguments(c *cli.Context, names ...string) ([]string, error) {
	got, err := argv.Arguments(c, names...)
	if err != nil {
		return nil, Usagef("%s", err.Error())
	}
	return got, nil
}
