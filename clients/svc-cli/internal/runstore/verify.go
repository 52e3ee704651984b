package runstore

import (
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

func verifyCommand(e *command.Env) *cli.Command {
	return &cli.Command{
		Name: "verify", Category: tools, Usage: "check a whole store: rows, digests, event log, signatures", ArgsUsage: "STORE",
		Description: "Changes nothing and needs no server. Exit code 1: there are findings; 2: the store cannot be read.\n" +
			"A store can only be checked against what was signed or kept elsewhere: without a checkpoint kept elsewhere,\n" +
			"nothing detects entries lost before the oldest signed checkpoint, or truncated after the newest. With a key,\n" +
			"events that no signature covers are a finding.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "public-key", Usage: "check signatures with the key in `FILE`, as store keygen prints it"},
			&cli.StringFlag{Name: "checkpoint", Usage: "also check that the log continues the older checkpoint in `FILE`"},
		}, command.JSONFlags()),
		Action: e.Action(command.Envelope, func(c *cli.Context) error { return verifyStore(e, c) }),
	}
}

func verifyStore(e *command.Env, c *cli.Context) error {
	args, err := command.Arguments(c, "STORE")
	if err != nil {
		return err
	}
	var o store.VerifyOptions
	if path := c.String("public-key"); path != "" {
		if o.PublicKey, err = store.LoadVerifier(path); err != nil {
			return command.Failf("public_key_error", "%w", err)
		}
	}
	if path := c.String("checkpoint"); path != "" {
		if o.Checkpoint, err = command.ReadRegular(path); err != nil {
			return err
		}
	}
	done := showProgress(e, &o)
	v, err := store.Verify(c.Context, args[0], o)
	done()
	if err != nil {
		return err
	}
	if command.WantsJSON(c) {
		if err := e.JSON(v); err != nil {
			return err
		}
	} else if err := printVerification(e, v, o.PublicKey != nil); err != nil {
		return err
	}
	if !v.OK {
		return command.No
	}
	return nil
}

// printVerification prints the findings. Without a key, signatures are counted, not checked: then nothing may rely on
// them.
func printVerification(e *command.Env, v store.Verification, keyed bool) error {
	verdict := "OK"
	if !v.OK {
		verdict = "FINDINGS"
	}
	n := v.Checked
	e.Printf("verify: %s\nruns: %d\nruns_without_events: %d\nforeign_rows: %d\nevidence_reports: %d\nidempotency_keys: %d\n"+
		"connections: %d\nevents: %d\nsigned_events: %d\ncheckpoints: %d\nsigned_checkpoints: %d\n",
		verdict, n.Runs, n.RunsWithoutEvents, n.ForeignRows, n.EvidenceReports, n.IdempotencyKeys,
		n.Connections, n.Events, n.SignedEvents, n.Checkpoints, n.SignedCheckpoints)
	if !keyed && n.SignedCheckpoints > 0 {
		e.Printf("limit: the signatures were counted, not checked; check them with the key that made them (--public-key)\n")
	}
	if keyed && v.OldestSigned > 0 {
		e.Printf("limit: entries lost before event %d, the oldest signed checkpoint, cannot be detected\n"+
			"limit: entries lost after event %d, the newest signed checkpoint, cannot be detected either; pass a checkpoint kept elsewhere with --checkpoint\n",
			v.OldestSigned, n.SignedEvents)
	} else {
		e.Printf("limit: without a checked signature a rebuilt log cannot be distinguished from the first one\n")
	}
	if n.RunsWithoutEvents > 0 && (!keyed || n.SignedCheckpoints == 0) {
		e.Printf("limit: runs_without_events were there before the store had events, or were put there since\n")
	}
	rows := make([][]string, len(v.Findings))
	for i, f := range v.Findings {
		rows[i] = []string{f.Code, f.Subject, f.Detail}
	}
	return e.Table([]string{"finding", "subject", "detail"}, rows)
}

// showProgress shows how far a verification got, on a line that is cleared at its end.
func showProgress(e *command.Env, o *store.VerifyOptions) (done func()) {
	if !e.ErrorTerminal {
		return func() {}
	}
	const between = 200 * time.Millisecond
	last, shown := e.Now(), false
	o.Progress = func(n store.Checked) {
		if now := e.Now(); now.Sub(last) >= between {
			last, shown = now, true
			e.ShowProgress(fmt.Sprintf("checked %d runs, %d events", n.Runs, n.Events))
		}
	}
	return func() {
		if shown {
			e.ShowProgress("")
		}
	}
}
