package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

var update = flag.Bool("update", false, "rewrite the generated part of docs/mlp.md")

const (
	referenceFile = "../../../../docs/mlp.md"
	referenceMark = "<!-- generated: commands -->\n"
)

// docs/mlp.md lists every command and option as the program knows them.
func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	app := newApp(&Env{Getenv: func(string) string { return "" }})
	var b strings.Builder
	describeCommands(&b, app.Commands)
	data, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), referenceMark)
	if !ok {
		t.Fatalf("%s has no mark %q; want ok", referenceFile, referenceMark)
	}
	if *update {
		if err := os.WriteFile(referenceFile, []byte(head+referenceMark+b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if rest != b.String() {
		t.Fatalf("docs/mlp.md is out of date; run: go test ./internal/cli -run Reference -update")
	}
}

// sharedFrom is the number of commands from which an option that they have alike is described once.
const sharedFrom = 4

// describeCommands writes the options that several commands share, then each command with its own.
func describeCommands(b *strings.Builder, commands []*cli.Command) {
	all := listCommands(commands, "mlp")
	count := map[option]int{}
	common := map[string]option{} // the most common meaning of an option
	var order []string
	for _, c := range all {
		for _, o := range optionsOf(c.Flags) {
			if count[o]++; count[o] == sharedFrom && common[o.names] == (option{}) {
				order = append(order, o.names)
			}
			if count[o] >= sharedFrom && count[o] > count[common[o.names]] {
				common[o.names] = o
			}
		}
	}
	var shown []option
	for _, names := range order {
		shown = append(shown, common[names])
	}
	b.WriteString("\nOptions that several commands share, which name them below:\n")
	writeOptions(b, shown)
	for _, c := range all {
		fmt.Fprintf(b, "\n### `%s`\n\n%s.\n", strings.TrimSpace(c.path+" "+c.ArgsUsage), strings.ToUpper(c.Usage[:1])+c.Usage[1:])
		if example, ok := strings.CutPrefix(c.Description, "Example: "); ok {
			fmt.Fprintf(b, "\n```sh\n%s\n```\n", example)
		}
		var own []option
		var shared []string
		for _, o := range optionsOf(c.Flags) {
			if common[o.names] == o {
				shared = append(shared, o.names)
			} else {
				own = append(own, o)
			}
		}
		writeOptions(b, own)
		if len(shared) > 0 {
			fmt.Fprintf(b, "\nShared: %s.\n", strings.Join(shared, ", "))
		}
	}
}

type pathOfCommand struct {
	*cli.Command
	path string
}

// listCommands lists the commands that can be run.
func listCommands(commands []*cli.Command, path string) []pathOfCommand {
	var all []pathOfCommand
	for _, c := range commands {
		if c.Hidden {
			continue
		}
		at := path + " " + c.Name
		if len(c.Subcommands) == 0 || len(c.Flags) > 0 { // a group may have an action
			all = append(all, pathOfCommand{c, at})
		}
		all = append(all, listCommands(c.Subcommands, at)...)
	}
	return all
}

type option struct{ names, usage string }

func optionsOf(flags []cli.Flag) []option {
	var all []option
	for _, f := range flags {
		names := f.Names()
		d, ok := f.(cli.DocGenerationFlag)
		if !ok || names[0] == "yes" || names[0] == "quiet" || names[0] == "verbose" || names[0] == "help" {
			continue
		}
		for i, n := range names {
			if len(n) > 1 {
				n = "-" + n
			}
			names[i] = "`-" + n + "`"
		}
		usage := d.GetUsage()
		if v := strings.Trim(d.GetDefaultText(), `"`); d.TakesValue() && v != "" && v != "0" && !strings.Contains(usage, "default") {
			usage += " (default " + v + ")"
		}
		all = append(all, option{strings.Join(names, ", "), strings.ReplaceAll(usage, "|", "\\|")})
	}
	return all
}

func writeOptions(b *strings.Builder, options []option) {
	if len(options) > 0 {
		b.WriteString("\n| Option | Meaning |\n|---|---|\n")
	}
	for _, o := range options {
		fmt.Fprintf(b, "| %s | %s |\n", o.names, o.usage)
	}
}

// Each command has an example, whose words and options exist.
func TestExamplesAreCommandLines(t *testing.T) {
	t.Parallel()
	app := newApp(&Env{Getenv: func(string) string { return "" }})
	known := map[string]bool{}
	var walk func(c *cli.Command, path string)
	walk = func(c *cli.Command, path string) {
		if c.Hidden {
			return
		}
		path = strings.TrimSpace(path + " " + c.Name)
		for _, s := range c.Subcommands {
			walk(s, path)
		}
		if len(c.Subcommands) > 0 && len(c.Flags) == 0 {
			return
		}
		known[path] = true
		example := examples[path]
		if !strings.HasPrefix(strings.TrimPrefix(example, "mlp --context prod "), "mlp "+path) && !strings.HasPrefix(example, "mlp --context prod "+path) && !strings.HasPrefix(example, "mlp --json "+path) {
			t.Errorf("the example of mlp %s is %q; want one of that command", path, example)
		}
		if _, err := arrangeLine(app, joinConditions(strings.Fields(example))); err != nil {
			t.Errorf("%s: got %v, want a line that can be read", example, err)
		}
	}
	for _, c := range app.Commands {
		walk(c, "")
	}
	for path := range examples {
		if !known[path] {
			t.Errorf("there is an example of mlp %s, which does not exist", path)
		}
	}
}
