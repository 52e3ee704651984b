package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/config"
	"github.com/mlp-platform/platform/libs/cli/completion"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/modelrepo"
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
		candidates, q := completion.Candidates(c.App, c.Args().Slice())
		isModel := q.Option != nil && q.Option.Names()[0] == "model" ||
			q.Option == nil && q.Command != nil && len(q.Command.Subcommands) == 0 && takesModel(q.Command) && !strings.HasPrefix(q.Typed, "-")
		values := env.optionValues(q)
		if isModel {
			values = completeModels(c.Context, env)
		}
		for _, v := range values {
			if len(v) >= len(q.Typed) && strings.EqualFold(v[:len(q.Typed)], q.Typed) {
				candidates = append(candidates, q.Prefix+v)
			}
		}
		for _, s := range candidates {
			fmt.Fprintln(env.Out, s)
		}
		return nil
	}}
}

// optionValues returns the values of an option that takes one of a list.
func (e *Env) optionValues(q completion.Query) []string {
	if q.Option == nil {
		return nil
	}
	switch q.Option.Names()[0] {
	case "output":
		return formatNames()
	case "context":
		return e.contextNames()
	case "alias", "from", "to":
		return aliases
	case "backend":
		return backends
	case "env":
		return modelrepo.Environments
	case "gate":
		return gates
	case "kind":
		return driftKinds
	case "by":
		return costDimensions
	case "task":
		return modelrepo.TaskTypes
	case "type":
		return modelTypes
	case "service":
		return stackServices
	case "state": // one option of several commands, each with different states
		switch usage := q.Option.(*cli.StringFlag).Usage; {
		case strings.HasPrefix(usage, "resolved"):
			return alertStates
		case strings.HasPrefix(usage, "only those"):
			return runStates()
		}
		return guardedStates
	}
	return nil
}

// contextNames returns the contexts of the configuration file, if it can be read.
func (e *Env) contextNames() []string {
	f, err := config.Load(config.Path(e.Getenv))
	if err != nil {
		return nil
	}
	return sortedKeys(f.Contexts)
}

// takesModel reports whether a command's first positional is a model.
func takesModel(c *cli.Command) bool {
	return strings.HasPrefix(c.ArgsUsage, "<model") || strings.HasPrefix(c.ArgsUsage, "[model]")
}
