package cli

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/cli/argv"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// arrangeLine puts options before arguments; a wrong line is a usage fault.
func arrangeLine(app *cli.App, line []string) ([]string, error) {
	out, err := argv.Arrange(app, line)
	if err != nil {
		return nil, usageFault(err)
	}
	return out, nil
}

func usageFault(err error) error {
	var f *argv.Fault
	if !errors.As(err, &f) {
		return err
	}
	e := fault.Usage("%s", f.Sentence)
	if f.Hint == "" {
		return e
	}
	return e.WithHint("%s", f.Hint)
}

func unknownWord(word string, commands []*cli.Command, path []string) error {
	return usageFault(argv.UnknownWord(word, commands, path))
}
