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
	for _, c := range app.Commands {
		describeCommand(&b, c, "mlp")
	}
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

func describeCommand(b *strings.Builder, c *cli.Command, path string) {
	if c.Hidden {
		return
	}
	path += " " + c.Name
	if len(c.Subcommands) > 0 {
		if len(c.Flags) > 0 { // a group with an action
			defer func() {
				for _, s := range c.Subcommands {
					describeCommand(b, s, path)
				}
			}()
		} else {
			for _, s := range c.Subcommands {
				describeCommand(b, s, path)
			}
			return
		}
	}
	fmt.Fprintf(b, "\n### `%s`\n\n%s.\n", strings.TrimSpace(path+" "+c.ArgsUsage), strings.ToUpper(c.Usage[:1])+c.Usage[1:])
	if example, ok := strings.CutPrefix(c.Description, "Example: "); ok {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", example)
	}
	rows := 0
	for _, f := range c.Flags {
		names := f.Names()
		if d, ok := f.(cli.DocGenerationFlag); ok && names[0] != "yes" && names[0] != "quiet" && names[0] != "verbose" && names[0] != "help" {
			if rows == 0 {
				b.WriteString("\n| Option | Meaning |\n|---|---|\n")
			}
			rows++
			for i, n := range names {
				if len(n) > 1 {
					names[i] = "--" + n
				} else {
					names[i] = "-" + n
				}
			}
			usage := d.GetUsage()
			if v := strings.Trim(d.GetDefaultText(), `"`); d.TakesValue() && v != "" && v != "0" && !strings.Contains(usage, "default") {
				usage += " (default " + v + ")"
			}
			fmt.Fprintf(b, "| `%s` | %s |\n", strings.Join(names, "`, `"), strings.ReplaceAll(usage, "|", "\\|"))
		}
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
