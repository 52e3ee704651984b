package argv

import (
	"strconv"

	"github.com/urfave/cli/v2"
)

// Arguments checks the number of arguments of a command and returns "" for those that are absent. A name that starts
// with a bracket is optional. Its error is a *Fault.
func Arguments(c *cli.Context, names ...string) ([]string, error) {
	got := c.Args().Slice()
	required := 0
	for _, n := range names {
		if n[0] != '[' {
			required++
		}
	}
	hint := "see: " + c.Command.HelpName + " --help"
	switch {
	case len(got) < required:
		return nil, &Fault{Sentence: "missing argument " + names[len(got)], Hint: hint}
	case len(got) > len(names):
		return nil, &Fault{Sentence: "unexpected argument " + strconv.Quote(got[len(names)]), Hint: hint}
	}
	for len(got) < len(names) {
		got = append(got, "")
	}
	return got, nil
}
