package steward

import (
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// Category of the help that holds the commands about steward reports.
const Category = "Steward reports"

// Commands are those about steward reports.
func Commands(e *command.Env) []*cli.Command { return append(textCommands(e), siteCommands(e)...) }

// textCommands are `svc steward-report` and `svc steward-history`.
func textCommands(e *command.Env) []*cli.Command {
	details := func(what string) cli.Flag {
		return &cli.BoolFlag{Name: "details", Usage: what, DisableDefaultText: true}
	}
	return []*cli.Command{
		{
			Name: "steward-report", Category: Category, Usage: "check a steward's report and summarise it", ArgsUsage: "INPUT",
			Description: "With --json: the report itself, once it has passed every check.",
			Flags:       append([]cli.Flag{details("list the branches too")}, command.JSONFlags()...),
			Action:      e.Action(command.Envelope, func(c *cli.Context) error { return showReport(e, c) }),
		},
		{
			Name: "steward-history", Category: Category, Usage: "put the reports of one repository together", ArgsUsage: "PATH...",
			Description: fmt.Sprintf("A PATH is a report or a folder that is searched for files named %s, %d folders deep.", FileName, MaxDepth),
			Flags: append([]cli.Flag{
				details("list the runs too"),
				&cli.BoolFlag{Name: "pretty", Usage: "with --json: indent it", DisableDefaultText: true},
			}, command.JSONFlags()...),
			Action: e.Action(command.Envelope, func(c *cli.Context) error { return showHistory(e, c) }),
		},
	}
}

// errDetailsOfDocument refuses two forms of one answer.
var errDetailsOfDocument = command.Usagef("--details and --json are two forms of one answer: give one of them")

func showReport(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "INPUT")
	if err != nil {
		return err
	}
	document := command.WantsJSON(c)
	if document && c.Bool("details") {
		return errDetailsOfDocument
	}
	r, err := Load(args[0])
	if err != nil {
		return err
	}
	if document {
		return e.JSON(r.Document)
	}
	printFacts(e, r.Facts())
	if !c.Bool("details") {
		return nil
	}
	for _, b := range r.Planned {
		e.Printf("- planned %s\n", b.text())
	}
	for _, p := range r.Created {
		e.Printf("- created #%d %s %s\n", p.Number, p.text(), p.URL)
	}
	for _, s := range r.Skipped {
		e.Printf("- skipped %s: %s\n", s.text(), s.Note())
	}
	return nil
}

func (b Branch) text() string {
	return fmt.Sprintf("%s -> %s at %s (ahead %d, behind %d)", command.Clean(b.Branch), command.Clean(b.Base), b.HeadSHA, b.AheadBy, b.BehindBy)
}

func printFacts(e *command.Env, facts []Fact) {
	for _, f := range facts {
		e.Printf("%s: %s\n", f.Name, command.Clean(f.Value))
	}
}

// LoadHistory reads the history that a command's arguments name.
func LoadHistory(c *cli.Context) (History, error) {
	paths := c.Args().Slice()
	if len(paths) == 0 {
		return History{}, command.Usagef("missing argument PATH; see: %s --help", c.Command.HelpName)
	}
	all, err := LoadAll(paths)
	if err != nil {
		return History{}, err
	}
	return NewHistory(all)
}

func showHistory(e *command.Env, c *cli.Context) error {
	document := command.WantsJSON(c)
	switch {
	case document && c.Bool("details"):
		return errDetailsOfDocument
	case !document && c.Bool("pretty"):
		return command.Usagef("--pretty goes with --json")
	}
	h, err := LoadHistory(c)
	if err != nil {
		return err
	}
	switch {
	case c.Bool("pretty"):
		data, err := canon.P(h)
		if err != nil {
			return err
		}
		_, err = e.Stdout.Write(data)
		return err
	case document:
		return e.JSON(h)
	}
	printFacts(e, h.Facts())
	if !c.Bool("details") {
		return nil
	}
	rows := make([][]string, len(h.Runs))
	for i, r := range h.Runs {
		rows[i] = []string{r.GeneratedAt, strconv.FormatInt(r.RunID, 10), strconv.FormatInt(r.RunAttempt, 10), r.Status,
			strconv.Itoa(r.Planned), strconv.Itoa(r.Created), strconv.Itoa(r.Skipped), r.Source}
	}
	return e.Table([]string{"GENERATED", "RUN", "ATTEMPT", "STATUS", "PLANNED", "CREATED", "SKIPPED", "SOURCE"}, rows)
}
