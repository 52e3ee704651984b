// Package argv accepts options and arguments in any order, which the flag parser beneath urfave/cli does not: it stops
// at the first argument. Unknown commands and options are refused with the nearest known one.
package argv

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Fault is an error in a command line, and how to correct it.
type Fault struct {
	Sentence string
	Hint     string // may be empty
}

func (f *Fault) Error() string {
	if f.Hint == "" {
		return f.Sentence
	}
	return f.Sentence + "; " + f.Hint
}

// Arrange puts the options of the innermost command before its arguments. It refuses global options after the
// command, naming the corrected line, unless the command has an option of that name, and unknown words and options,
// naming the nearest. Its error is a *Fault.
//
// Shape: app [global options] command [subcommand…] [options and arguments in any order] [-- arguments]
func Arrange(app *cli.App, argv []string) ([]string, error) {
	if len(argv) == 0 {
		return argv, nil
	}
	out := []string{argv[0]}
	rest := argv[1:]
	globals := flagIndex(app.Flags)

	// Global options, up to the first word.
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") && rest[0] != "-" && rest[0] != "--" {
		name, _, joined := Split(rest[0])
		if name == "help" || name == "h" {
			return []string{argv[0], "--help"}, nil
		}
		f, known := globals[name]
		if !known {
			return nil, unknownOption(name, globals, app.Name)
		}
		n := 1
		if !joined && takesValue(f) {
			n = 2
		}
		if n > len(rest) {
			return nil, &Fault{Sentence: "option " + rest[0] + " needs a value"}
		}
		out, rest = append(out, rest[:n]...), rest[n:]
	}

	leaf, path, rest, err := readWords(app, rest)
	if err != nil {
		return nil, err
	}
	out = append(out, path[1:]...)
	if leaf == nil {
		return append(out, rest...), nil
	}

	known := flagIndex(leaf.Flags)
	var options, arguments []string // values are among the options, behind the option that takes them
	for i := 0; i < len(rest); i++ {
		arg := rest[i]
		if arg == "--" {
			arguments = append(arguments, rest[i+1:]...)
			break
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") || isNumber(arg) {
			arguments = append(arguments, arg)
			continue
		}
		name, _, joined := Split(arg)
		f, ok := known[name]
		if (name == "help" || name == "h") && (!ok || slices.Contains(f.Names(), "help")) {
			// Alone: urfave/cli would take an argument beside it for a topic.
			return append(out, "--help"), nil
		}
		if !ok {
			if g, global := globals[name]; global {
				moved := []string{arg}
				if !joined && takesValue(g) && i+1 < len(rest) {
					moved = append(moved, rest[i+1])
				}
				return nil, misplacedOption(app.Name, argv, moved, arg)
			}
			return nil, unknownOption(name, known, strings.Join(path, " "))
		}
		options = append(options, arg)
		if !joined && takesValue(f) {
			if i+1 >= len(rest) {
				return nil, &Fault{Sentence: "option " + arg + " needs a value"}
			}
			i++
			options = append(options, rest[i])
			// Only after the arguments: before them the last value would be indistinguishable from the first argument.
			for takesSeveral(f) && len(arguments) > 0 && i+1 < len(rest) && !strings.HasPrefix(rest[i+1], "-") {
				i++
				options = append(options, arg, rest[i])
			}
		}
	}
	if err := missingOption(leaf, path, options); err != nil {
		return nil, err
	}
	out = append(out, options...)
	if len(arguments) > 0 {
		out = append(append(out, "--"), arguments...)
	}
	return out, nil
}

// readWords reads the command words: the innermost command, the words that lead to it and what follows them.
func readWords(app *cli.App, rest []string) (leaf *cli.Command, path, after []string, err error) {
	commands := app.Commands
	path = []string{app.Name}
	for len(rest) > 0 && len(commands) > 0 && !strings.HasPrefix(rest[0], "-") {
		c := Find(commands, rest[0])
		if c == nil {
			return nil, nil, nil, UnknownWord(rest[0], commands, path)
		}
		leaf, commands = c, c.Subcommands
		path, rest = append(path, c.Name), rest[1:]
	}
	return leaf, path, rest, nil
}

// misplacedOption builds the corrected line for a global option that comes after the command.
func misplacedOption(app string, argv, moved []string, arg string) *Fault {
	at := len(argv)
	for i := len(argv) - len(moved); i > 0; i-- {
		if slices.Equal(argv[i:i+len(moved)], moved) {
			at = i
			break
		}
	}
	line := append([]string{app}, moved...)
	line = append(line, argv[1:at]...)
	if at < len(argv) {
		line = append(line, argv[at+len(moved):]...)
	}
	return &Fault{Sentence: arg + " is a global option and must come before the subcommand: " + Quote(line)}
}

// Quote writes words so that a shell reads them back.
func Quote(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n\"'$&|;<>()*?[]{}\\`!#~") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out[i] = w
	}
	return strings.Join(out, " ")
}

// Split splits an argument into its name without dashes and the value joined to it by "=".
func Split(arg string) (name, value string, joined bool) {
	return strings.Cut(strings.TrimLeft(arg, "-"), "=")
}

func isNumber(arg string) bool {
	return len(arg) > 1 && (arg[1] >= '0' && arg[1] <= '9' || arg[1] == '.')
}

func flagIndex(flags []cli.Flag) map[string]cli.Flag {
	m := map[string]cli.Flag{}
	for _, f := range flags {
		for _, n := range f.Names() {
			m[n] = f
		}
	}
	return m
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

// Several is a flag that may be given more than once and whose values may also follow it in a row, once the command has
// an argument: `FILE --id a b` is `FILE --id a --id b`.
type Several interface {
	cli.Flag
	Several() bool
}

func takesSeveral(f cli.Flag) bool {
	s, ok := f.(Several)
	return ok && s.Several()
}

// Find returns the command of this name or alias, or nil.
func Find(commands []*cli.Command, word string) *cli.Command {
	for _, c := range commands {
		if c.HasName(word) {
			return c
		}
	}
	return nil
}
