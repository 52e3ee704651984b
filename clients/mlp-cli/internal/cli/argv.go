package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/fault"
)

// arrange puts the options of the innermost command before its positionals, since the flag parser stops
// at the first positional and people write both orders. It also refuses global options after the
// subcommand (naming the corrected line) and unknown words (naming the nearest known one).
//
// Shape: mlp [global options] command [subcommand…] [options and positionals in any order] [-- positionals]
func arrange(app *cli.App, argv []string) ([]string, error) {
	if len(argv) == 0 {
		return argv, nil
	}
	out := []string{argv[0]}
	rest := argv[1:]
	globals := flagIndex(app.Flags)

	// Global options, up to the first word.
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") && rest[0] != "-" && rest[0] != "--" {
		name, _, joined := split(rest[0])
		if name == "help" || name == "h" {
			return []string{argv[0], "--help"}, nil
		}
		f, known := globals[name]
		if !known {
			return nil, unknownOption(name, globals, "mlp")
		}
		n := 1
		if !joined && takesValue(f) {
			n = 2
		}
		if n > len(rest) {
			return nil, fault.Usage("option %s needs a value", rest[0])
		}
		out, rest = append(out, rest[:n]...), rest[n:]
	}

	// Command words.
	commands := app.Commands
	path := []string{"mlp"}
	var leaf *cli.Command
	for len(rest) > 0 && len(commands) > 0 {
		word := rest[0]
		if strings.HasPrefix(word, "-") {
			break
		}
		c := find(commands, word)
		if c == nil {
			return nil, unknownWord(word, commands, path)
		}
		leaf, commands = c, c.Subcommands
		path, out, rest = append(path, c.Name), append(out, word), rest[1:]
	}
	if leaf == nil {
		return append(out, rest...), nil
	}

	known := flagIndex(leaf.Flags)
	var options, words []string
	for i := 0; i < len(rest); i++ {
		arg := rest[i]
		if arg == "--" {
			words = append(words, rest[i+1:]...)
			break
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") || isNumber(arg) {
			words = append(words, arg)
			continue
		}
		name, _, joined := split(arg)
		f, ok := known[name]
		if !ok {
			if name == "help" || name == "h" {
				options = append(options, "--help")
				continue
			}
			if g, global := globals[name]; global {
				moved := []string{arg}
				if !joined && takesValue(g) && i+1 < len(rest) {
					moved = append(moved, rest[i+1])
				}
				return nil, misplaced(argv, moved, arg)
			}
			return nil, unknownOption(name, known, strings.Join(path, " "))
		}
		options = append(options, arg)
		if !joined && takesValue(f) {
			if i+1 >= len(rest) {
				return nil, fault.Usage("option %s needs a value", arg)
			}
			i++
			options = append(options, rest[i])
		}
	}
	out = append(out, options...)
	if len(words) > 0 {
		out = append(append(out, "--"), words...)
	}
	return out, nil
}

// misplaced builds the corrected line for a global option that stands after the subcommand.
func misplaced(argv, moved []string, arg string) error {
	at := len(argv)
	for i := len(argv) - len(moved); i > 0; i-- {
		if slices.Equal(argv[i:i+len(moved)], moved) {
			at = i
			break
		}
	}
	line := append([]string{"mlp"}, moved...)
	line = append(line, argv[1:at]...)
	if at < len(argv) {
		line = append(line, argv[at+len(moved):]...)
	}
	return fault.Usage("%s is a global option and must stand before the subcommand: %s", arg, quote(line))
}

func quote(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n\"'$&|;<>()*?[]{}\\`!#~") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out[i] = w
	}
	return strings.Join(out, " ")
}

func split(arg string) (name, value string, joined bool) {
	name, value, joined = strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return name, value, joined
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

func find(commands []*cli.Command, word string) *cli.Command {
	for _, c := range commands {
		if c.HasName(word) {
			return c
		}
	}
	return nil
}

func unknownWord(word string, commands []*cli.Command, path []string) error {
	names := make([]string, 0, len(commands))
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	e := fault.Usage("unknown command %q for %s", word, quote(path))
	if near := nearest(word, names); near != "" {
		return e.WithHint("did you mean: %s %s", strings.Join(path, " "), near)
	}
	return e.WithHint("see: %s --help", strings.Join(path, " "))
}

func unknownOption(name string, known map[string]cli.Flag, command string) error {
	names := make([]string, 0, len(known))
	for n := range known {
		if len(n) > 1 {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	dashes := "--"
	if len(name) == 1 {
		dashes = "-"
	}
	e := fault.Usage("unknown option %s%s for %s", dashes, name, command)
	if near := nearest(name, names); near != "" {
		return e.WithHint("did you mean: --%s", near)
	}
	return e.WithHint("see: %s --help", command)
}

// nearest returns the known word within a third of the letters (at least two) of edit distance.
func nearest(word string, known []string) string {
	best, bestD := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := distance(word, k); d < bestD {
			best, bestD = k, d
		}
		if strings.HasPrefix(k, word) && len(word) >= 2 {
			return k
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes; commands and options are ASCII.
func distance(a, b string) int {
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := prev[0]
		prev[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diag, prev[j] = prev[j], min(prev[j]+1, prev[j-1]+1, diag+cost)
		}
	}
	return prev[len(b)]
}
