package argv

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// HelpCommand is `APP help [COMMAND…]`, with the output of `APP COMMAND… --help`.
func HelpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Usage: "show the commands, or the help of one", ArgsUsage: "[COMMAND...]",
		Action: func(c *cli.Context) error {
			leaf, path, rest, err := readWords(c.App, c.Args().Slice())
			switch {
			case err != nil:
				return err
			case len(rest) > 0 && leaf != nil:
				return &Fault{Sentence: strings.Join(path, " ") + " has no subcommands", Hint: "see: " + strings.Join(path, " ") + " --help"}
			case len(rest) > 0:
				return UnknownWord(rest[0], c.App.Commands, path)
			}
			return c.App.RunContext(c.Context, append(path, "--help"))
		},
	}
}

// VersionCommand is `APP version`, with the output of `APP --version`.
func VersionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "show the version",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return &Fault{Sentence: "unexpected argument " + Quote(c.Args().Slice()[:1]), Hint: "see: " + c.App.Name + " version --help"}
			}
			return c.App.RunContext(c.Context, []string{c.App.Name, "--version"})
		},
	}
}

// missingOption finds a required option that is missing from the line. The flag parser would find it too, but answers
// with the whole help and an untyped error.
func missingOption(leaf *cli.Command, path, options []string) error {
	given := map[string]bool{}
	for _, o := range options {
		name, _, _ := Split(o)
		given[name] = true
	}
	for _, f := range leaf.Flags {
		required, ok := f.(cli.RequiredFlag)
		if !ok || !required.IsRequired() {
			continue
		}
		present := false
		for _, name := range f.Names() {
			present = present || given[name]
		}
		if !present {
			return &Fault{Sentence: "missing option --" + f.Names()[0] + "; see: " + strings.Join(path, " ") + " --help"}
		}
	}
	return nil
}
