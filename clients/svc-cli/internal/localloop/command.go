package localloop

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/report"
)

// Commands lists the commands of this area.
func Commands(e *command.Env) []*cli.Command {
	return []*cli.Command{{
		Name:      "local-loop",
		Category:  "Runs and evidence",
		Usage:     "judge two attempts at one work unit with a deterministic verifier",
		ArgsUsage: "CONFIG",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output-dir", Usage: "write the run to `PATH`, which must be absent or empty (default: svc-local-loop/<run id>)"},
			&cli.StringFlag{Name: "replay", Usage: "run again and compare with the run in `DIR`; nothing is written; exit 1 if they differ"},
		}, command.JSONFlags()...),
		Action: e.Action(command.Envelope, func(c *cli.Context) error { return commandFault(runLoop(e, c)) }),
	}}
}

func runLoop(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "CONFIG")
	if err != nil {
		return err
	}
	if c.IsSet("replay") && c.IsSet("output-dir") {
		return command.Usagef("--replay writes nothing, so --output-dir cannot be combined with it")
	}
	for _, name := range []string{"replay", "output-dir"} {
		if c.IsSet(name) && c.String(name) == "" {
			return command.Usagef("--%s needs the path of a folder", name)
		}
	}
	source, err := Open(args[0])
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	options := Options{Now: e.Now}
	if e.ErrorTerminal {
		options.Progress = func(text string) { fmt.Fprintln(e.Stderr, command.Clean(text)) }
	}
	if c.IsSet("replay") {
		return replayRun(e, c, source, options)
	}
	dir := c.String("output-dir")
	if dir == "" {
		dir = DefaultOutput(source.Config.RunID)
	}
	if err := source.CheckOutput(dir); err != nil {
		return err
	}
	out, err := source.Run(c.Context, options)
	if err != nil {
		return err
	}
	if err := out.Write(dir); err != nil {
		return err
	}
	return showOutcome(e, c, dir, out)
}

// Result is the document of a run.
type Result struct {
	SchemaVersion        string         `json:"schema_version"`
	Kind                 string         `json:"kind"`
	RunID                string         `json:"run_id"`
	RunState             string         `json:"run_state"`
	OutputDir            string         `json:"output_dir"`
	SourceRunDigest      string         `json:"source_run_digest"`
	EvidenceReportDigest string         `json:"evidence_report_digest"`
	Summary              report.Summary `json:"summary"`
	SelectedAttemptID    *string        `json:"selected_attempt_id"` // always null
	Files                []string       `json:"files"`
}

func showOutcome(e *command.Env, c *cli.Context, dir string, out *Outcome) error {
	if command.WantsJSON(c) {
		return e.JSON(Result{
			SchemaVersion: RecordVersion, Kind: "svc-local-loop-result", RunID: out.Record.RunID, RunState: out.Record.RunState,
			OutputDir: dir, SourceRunDigest: out.Report.SourceRunDigest, EvidenceReportDigest: out.Report.Digest(),
			Summary: out.Report.Summary, Files: out.FileNames(),
		})
	}
	e.Printf("run: %s\nstate: %s\n", out.Record.RunID, out.Record.RunState)
	e.Printf("work_unit: %s version %d\n", out.Record.WorkUnit.ID, out.Record.WorkUnit.Version)
	e.Printf("evidence: %s\n", out.Report.Digest())
	rows := [][]string{}
	for _, a := range out.Report.Attempts {
		rows = append(rows, attemptRow(a))
	}
	if err := e.Table([]string{"ATTEMPT", "STATE", "EVIDENCE", "RECOMMENDATION", "PASSED", "ERROR"}, rows); err != nil {
		return err
	}
	e.Printf("selected: none\nmerge_authority: no\noutput: %s\n", command.Clean(dir))
	return nil
}

func attemptRow(a report.Attempt) []string {
	advice, passed, problem := "-", "-", "-"
	if v := a.Verifier; v != nil {
		n := 0
		for _, check := range v.Checks {
			if check.Status == report.Passed {
				n++
			}
		}
		advice, passed = v.Recommendation, strconv.Itoa(n)+"/"+strconv.Itoa(len(v.Checks))
	}
	if a.Error != nil {
		problem = *a.Error
	}
	return []string{a.AttemptID, a.State, a.EvidenceState, advice, passed, problem}
}

// Replay is the document of a replay.
type Replay struct {
	SchemaVersion string       `json:"schema_version"`
	Kind          string       `json:"kind"`
	OK            bool         `json:"ok"`
	RunID         string       `json:"run_id"`
	Compared      []string     `json:"compared"`
	Differences   []Difference `json:"differences"`
}

func replayRun(e *command.Env, c *cli.Context, source *Source, o Options) error {
	found, err := source.Replay(c.Context, c.String("replay"), o)
	if err != nil {
		return err
	}
	same := len(found.Differences) == 0
	if command.WantsJSON(c) {
		err = e.JSON(Replay{
			SchemaVersion: RecordVersion, Kind: "svc-local-loop-replay", OK: same, RunID: found.Outcome.Record.RunID,
			Compared: found.Outcome.FileNames(), Differences: found.Differences,
		})
	} else {
		err = showReplay(e, found, same)
	}
	if err == nil && !same {
		return command.No
	}
	return err
}

func showReplay(e *command.Env, found *Comparison, same bool) error {
	if same {
		e.Printf("replay: equal\nrun: %s\nfiles: %d\n", found.Outcome.Record.RunID, len(found.Outcome.Files))
		return nil
	}
	e.Printf("replay: different\nrun: %s\n", found.Outcome.Record.RunID)
	rows := [][]string{}
	for _, d := range found.Differences {
		rows = append(rows, []string{d.File, d.Path, d.Detail})
	}
	return e.Table([]string{"FILE", "PLACE", "DIFFERENCE"}, rows)
}

// commandFault converts a run's faults to the form that the commands print.
func commandFault(err error) error {
	var f *Fault
	if !errors.As(err, &f) {
		return err
	}
	text := f.Detail
	if f.File != "" {
		text = f.File + ": " + text
	}
	return &command.Fault{Code: f.Code, Path: f.Path, Message: text, Cause: err}
}
