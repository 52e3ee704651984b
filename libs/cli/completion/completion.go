// Package completion completes commands and options in bash, zsh and fish.
//
// The scripts pass the words typed so far to a hidden command, `APP __complete`, which prints one candidate a line. No
// script lets the shell expand a candidate, as bash's compgen -W does: a candidate may be another user's text.
package completion

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/libs/cli/argv"
)

// CommandName is the hidden command that the scripts call.
const CommandName = "__complete"

// scripts are keyed by shell; APP is a placeholder for the program.
var scripts = map[string]struct{ text, folder, file string }{
	"bash": {`# APP completion for bash
_APP() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("$line")
  done < <(APP __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _APP APP
`, ".local/share/bash-completion/completions", "APP"},
	"zsh": {`#compdef APP
# APP completion for zsh
_APP() {
  local -a candidates
  candidates=("${(@f)$(APP __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n ${candidates[1]} ]] && compadd -a candidates
}
compdef _APP APP
`, ".zsh/completions", "_APP"},
	"fish": {`# APP completion for fish
complete -c APP -f -a '(APP __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`, ".config/fish/completions", "APP.fish"},
}

// ErrShell means that there is no script for the shell.
var ErrShell = errors.New("completion is available for bash, zsh and fish")

// ErrHome means that there is no directory to install into.
var ErrHome = errors.New("there is no home directory to install completion in")

// Script returns the completion script of a program for the shell at the path that $SHELL holds, or ErrShell.
func Script(app, shell string) (string, error) {
	s, ok := scripts[filepath.Base(shell)]
	if !ok {
		return "", ErrShell
	}
	return strings.ReplaceAll(s.text, "APP", app), nil
}

// Install writes the script where the shell looks for it, and returns its path and whether it was there already.
func Install(app, shell, home string) (path string, already bool, err error) {
	script, err := Script(app, shell)
	if err != nil {
		return "", false, err
	}
	if home == "" {
		return "", false, ErrHome
	}
	s := scripts[filepath.Base(shell)]
	path = filepath.Join(home, filepath.FromSlash(s.folder), strings.ReplaceAll(s.file, "APP", app))
	if old, err := os.ReadFile(path); err == nil && string(old) == script {
		return path, true, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, fmt.Errorf("cannot read %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", false, fmt.Errorf("cannot make the completion folder: %w", err)
	}
	if err := os.WriteFile(path, []byte(script), 0o644); err != nil {
		return "", false, fmt.Errorf("cannot write the completion script: %w", err)
	}
	return path, false, nil
}

// Query describes the word being typed, for values that only the program knows.
type Query struct {
	Command *cli.Command // the innermost that the words name; nil: none
	Option  cli.Flag     // the option whose value is typed; nil: an argument
	Typed   string       // of the value or argument
	Prefix  string       // to be put before each candidate, where option and value are one word
}

// Candidates lists the commands and options that can complete the last of the words typed so far. It does not know the
// values of options and arguments: for these it returns a query.
func Candidates(app *cli.App, words []string) (candidates []string, q Query) {
	if len(words) == 0 {
		words = []string{""}
	}
	words, last := splitLast(words)
	commands, flags := app.Commands, app.Flags
	for i := 0; i < len(words); i++ {
		w := words[i]
		if strings.HasPrefix(w, "-") {
			name, _, joined := argv.Split(w)
			if f := findOption(flags, name); f != nil && !joined {
				if i+1 == len(words) {
					return nil, Query{Command: q.Command, Option: f, Typed: last}
				}
				i++ // its value names no command
			}
			continue
		}
		if c := argv.Find(commands, w); c != nil {
			q.Command, commands, flags = c, c.Subcommands, c.Flags
		}
	}
	if strings.HasPrefix(last, "-") {
		if name, value, joined := argv.Split(last); joined {
			if f := findOption(flags, name); f != nil {
				return nil, Query{Command: q.Command, Option: f, Typed: value, Prefix: strings.TrimSuffix(last, value)}
			}
		}
		for _, f := range flags {
			if n := f.Names()[0]; strings.HasPrefix("--"+n, last) {
				candidates = append(candidates, "--"+n)
			}
		}
		q.Typed = last
		return candidates, q
	}
	for _, c := range commands {
		if !c.Hidden && strings.HasPrefix(c.Name, last) {
			candidates = append(candidates, c.Name)
		}
	}
	q.Typed = last
	return candidates, q
}

// splitLast splits off the word being typed. Bash makes three words of --option=value.
func splitLast(words []string) (before []string, last string) {
	n := len(words)
	switch {
	case n >= 2 && words[n-1] == "=":
		return words[:n-1], ""
	case n >= 3 && words[n-2] == "=":
		return words[:n-2], words[n-1]
	}
	return words[:n-1], words[n-1]
}

// findOption finds an option that takes a value.
func findOption(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && d.TakesValue() && slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}
