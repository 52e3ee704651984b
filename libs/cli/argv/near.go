package argv

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// UnknownWord rejects a word where one of these commands is expected; path leads there.
func UnknownWord(word string, commands []*cli.Command, path []string) *Fault {
	names := make([]string, 0, len(commands))
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	f := &Fault{Sentence: "unknown command " + strconv.Quote(word) + " for " + Quote(path)}
	if below := commandsBelow(word, commands, path); len(below) > 0 {
		f.Hint = "did you mean: " + strings.Join(below, ", or ")
	} else if near := Nearest(word, names); near != "" {
		f.Hint = "did you mean: " + strings.Join(path, " ") + " " + near
	} else {
		f.Hint = "see: " + strings.Join(path, " ") + " --help"
	}
	return f
}

// commandsBelow returns the lines of the subcommands with exactly that name: for "approve", "approvals approve".
func commandsBelow(name string, commands []*cli.Command, path []string) (lines []string) {
	for _, c := range commands {
		for _, sub := range c.Subcommands {
			if !c.Hidden && !sub.Hidden && sub.Name == name {
				lines = append(lines, strings.Join(path, " ")+" "+c.Name+" "+name)
			}
		}
	}
	return lines
}

func unknownOption(name string, known map[string]cli.Flag, command string) *Fault {
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
	f := &Fault{Sentence: "unknown option " + dashes + name + " for " + command}
	if near := Nearest(name, names); near != "" {
		f.Hint = "did you mean: --" + near
	} else {
		f.Hint = "see: " + command + " --help"
	}
	return f
}

// Nearest returns the known word within a third of the letters (at least two) of edit distance.
func Nearest(word string, known []string) string {
	best, bestD := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := editDistance(word, k); d < bestD {
			best, bestD = k, d
		}
		if strings.HasPrefix(k, word) && len(word) >= 2 {
			return k
		}
	}
	return best
}

// editDistance is the Levenshtein distance in bytes; commands and options are ASCII.
func editDistance(a, b string) int {
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
