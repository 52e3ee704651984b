package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/cli/completion"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

func showCompletion(env *Env) error {
	script, err := completion.Script("mlp", env.Getenv("SHELL"))
	if err != nil {
		return completionFault(env, err)
	}
	_, err = fmt.Fprint(env.Out, script)
	return err
}

func installCompletion(env *Env) error {
	path, already, err := completion.Install("mlp", env.Getenv("SHELL"), env.Getenv("HOME"))
	if err != nil {
		return completionFault(env, err)
	}
	shell := filepath.Base(env.Getenv("SHELL"))
	if already {
		_, err := fmt.Fprintf(env.Out, "completion for %s is already installed in %s\n", shell, path)
		return err
	}
	_, err = fmt.Fprintf(env.Out, "completion for %s installed in %s; open a new shell to use it\n", shell, path)
	return err
}

func completionFault(env *Env, err error) error {
	switch {
	case errors.Is(err, completion.ErrShell):
		return fault.New("unknown_shell", "%v; $SHELL is %q", err, env.Getenv("SHELL")).
			WithHint("set SHELL, for example: SHELL=/bin/bash mlp --install-completion")
	case errors.Is(err, completion.ErrHome):
		return fault.New("no_home", "%v", err).WithHint("use: mlp --show-completion")
	}
	return fault.New("completion_unwritable", "%v", err)
}

// completeCommand prints candidates for the last of the words typed so far.
func completeCommand(env *Env) *cli.Command {
	return &cli.Command{Name: completion.CommandName, Hidden: true, Usage: "print completions", Action: func(c *cli.Context) error {
		words := c.Args().Slice()
		candidates, leaf := completion.Candidates(c.App, words)
		for _, s := range candidates {
			fmt.Fprintln(env.Out, s)
		}
		last := ""
		if len(words) > 0 {
			last = words[len(words)-1]
		}
		if leaf != nil && len(leaf.Subcommands) == 0 && takesModel(leaf) && !strings.HasPrefix(last, "-") {
			for _, m := range completeModels(c.Context, env) {
				if strings.HasPrefix(strings.ToUpper(m), strings.ToUpper(last)) {
					fmt.Fprintln(env.Out, m)
				}
			}
		}
		return nil
	}}
}

// takesModel tells whether a command's first positional is a model.
func takesModel(c *cli.Command) bool {
	return strings.HasPrefix(c.ArgsUsage, "<model") || strings.HasPrefix(c.ArgsUsage, "[model]")
}
