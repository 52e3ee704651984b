package gate

import (
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/evidence/canon"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
)

// Collision is the code of outputs that would overwrite an input or each other.
const Collision = "output_collision"

// OutputFlags are the options of every report.
func OutputFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "out", Usage: "write the report to `FILE` instead of printing it"},
		&cli.BoolFlag{Name: "pretty", Usage: "indent the report"},
	}, command.JSONFlags()...)
}

// Outputs are the files a command writes.
type Outputs struct {
	report, markdown string // "" is standard output, or no Markdown
	pretty           bool
}

// readOutputs reads the flags. A file named by nothing would be standard output by accident.
func readOutputs(c *cli.Context) (Outputs, error) {
	o := Outputs{report: c.String("out"), markdown: c.String("markdown"), pretty: c.Bool("pretty")}
	for _, name := range []string{"out", "markdown"} {
		if c.IsSet(name) && c.String(name) == "" {
			return o, command.Usagef("--%s needs the name of a file", name)
		}
	}
	return o, nil
}

// apartFrom refuses outputs that are one of the inputs or one file, by their text or through links. It is called before
// anything is computed, and before anything is written.
func (o Outputs) apartFrom(inputs ...string) error {
	if o.report != "" && o.markdown != "" && sameFile(o.report, o.markdown) {
		return command.Failf(Collision, "--out and --markdown name one file: %s", o.report)
	}
	for _, out := range []string{o.report, o.markdown} {
		for _, in := range inputs {
			if out != "" && sameFile(out, in) {
				return command.Failf(Collision, "the output %s is the input %s; name another file", out, in)
			}
		}
	}
	return nil
}

// Write writes the report, in form R, and the Markdown.
func (o Outputs) Write(e *command.Env, report any, markdown []byte) error {
	value, err := canon.From(report)
	if err != nil {
		return err
	}
	form := canon.R
	if o.pretty {
		form = canon.RPretty
	}
	data, err := form(value)
	if err != nil {
		return err
	}
	if o.markdown != "" {
		if err := command.WriteFile(o.markdown, markdown); err != nil {
			return err
		}
	}
	if o.report != "" {
		return command.WriteFile(o.report, data)
	}
	_, err = e.Stdout.Write(data)
	return err
}

// sameFile reports whether two paths lead to one file, which need not exist yet.
func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(x, y) // hard links too
	}
	return resolvePath(a) == resolvePath(b)
}

// maxLinks limits the links followed, as the system itself would.
const maxLinks = 40

// resolvePath follows the links of a path whose end, or the end of a link, may not exist.
func resolvePath(path string) string {
	for range maxLinks {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
			break
		}
		dir, base := filepath.Split(path)
		if real, err := filepath.EvalSymlinks(filepath.Clean(dir)); err == nil {
			path = filepath.Join(real, base)
		}
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return filepath.Clean(path)
}
