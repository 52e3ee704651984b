package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/fault"
)

// The scripts hand the words typed so far to `mlp __complete`, which prints one candidate a line. No script
// lets the shell expand a candidate (as bash's compgen -W does): model names are other people's text.
const (
	bashCompletion = `# mlp completion for bash
_mlp() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("$line")
  done < <(mlp __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _mlp mlp
`
	zshCompletion = `#compdef mlp
# mlp completion for zsh
_mlp() {
  local -a candidates
  candidates=("${(@f)$(mlp __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n ${candidates[1]} ]] && compadd -a candidates
}
compdef _mlp mlp
`
	fishCompletion = `# mlp completion for fish
complete -c mlp -f -a '(mlp __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`
)

func completionFor(env *Env) (shell, script, path string, err error) {
	home := env.Getenv("HOME")
	shell = filepath.Base(env.Getenv("SHELL"))
	switch shell {
	case "bash":
		return shell, bashCompletion, filepath.Join(home, ".local", "share", "bash-completion", "completions", "mlp"), nil
	case "zsh":
		return shell, zshCompletion, filepath.Join(home, ".zsh", "completions", "_mlp"), nil
	case "fish":
		return shell, fishCompletion, filepath.Join(home, ".config", "fish", "completions", "mlp.fish"), nil
	}
	return "", "", "", fault.New("unknown_shell", "completion is available for bash, zsh and fish; $SHELL is %q", env.Getenv("SHELL")).
		WithHint("set SHELL, for example: SHELL=/bin/bash mlp --install-completion")
}

func showCompletion(env *Env) error {
	_, script, _, err := completionFor(env)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(env.Out, script)
	return err
}

func installCompletion(env *Env) error {
	shell, script, path, err := completionFor(env)
	if err != nil {
		return err
	}
	if env.Getenv("HOME") == "" {
		return fault.New("no_home", "there is no home directory to install completion in").WithHint("use: mlp --show-completion")
	}
	if old, err := os.ReadFile(path); err == nil && string(old) == script {
		_, err := fmt.Fprintf(env.Out, "completion for %s is already installed in %s\n", shell, path)
		return err
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.New("completion_unwritable", "cannot read %s: %v", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fault.New("completion_unwritable", "cannot make the completion folder: %v", err)
	}
	if err := os.WriteFile(path, []byte(script), 0o644); err != nil {
		return fault.New("completion_unwritable", "cannot write the completion script: %v", err)
	}
	_, err = fmt.Fprintf(env.Out, "completion for %s installed in %s; open a new shell to use it\n", shell, path)
	return err
}

// completeCommand prints candidates for the last of the words typed so far.
func completeCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "__complete", Hidden: true, Usage: "print completions", Action: func(c *cli.Context) error {
		words := c.Args().Slice()
		if len(words) == 0 {
			words = []string{""}
		}
		last := words[len(words)-1]
		cmds, flags := c.App.Commands, c.App.Flags
		var leaf *cli.Command
		for _, w := range words[:len(words)-1] {
			if strings.HasPrefix(w, "-") {
				continue
			}
			if n := find(cmds, w); n != nil {
				leaf, cmds, flags = n, n.Subcommands, n.Flags
			}
		}
		if strings.HasPrefix(last, "-") {
			for _, f := range flags {
				if n := f.Names()[0]; strings.HasPrefix("--"+n, last) {
					fmt.Fprintf(env.Out, "--%s\n", n)
				}
			}
			return nil
		}
		for _, n := range cmds {
			if !n.Hidden && strings.HasPrefix(n.Name, last) {
				fmt.Fprintln(env.Out, n.Name)
			}
		}
		if leaf != nil && len(leaf.Subcommands) == 0 && takesModel(leaf) {
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
	return strings.Contains(c.ArgsUsage, "<model>") || strings.Contains(c.ArgsUsage, "[model]")
}
