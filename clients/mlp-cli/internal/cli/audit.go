package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

func auditCommand(env *Env) *cli.Command {
	last := func(value string) cli.Flag {
		return &cli.StringFlag{Name: "last", Value: value, Usage: "how far back: 90m, 12h, 30d, 4w; a bare number is days"}
	}
	return &cli.Command{Name: "audit", Usage: "who did what, newest first", Flags: append(listFlags(100), last("30d"),
		&cli.StringFlag{Name: "since", Usage: "instead of --last, from this time on: 2026-11-20T08:00:00Z, 2026-11-20, yesterday, today"},
		&cli.StringFlag{Name: "until", Usage: "only what was done before this time"},
		&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "only what was done to this model"},
		&cli.StringFlag{Name: "action", Aliases: []string{"a"}, Usage: "only this action, such as promotion.approved"},
		&cli.StringFlag{Name: "source", Aliases: []string{"s"}, Usage: "only entries from this source: cli, bridge, agent or a service such as control-plane"},
		&cli.StringFlag{Name: "actor", Usage: "only what this person or program did"},
	), Subcommands: []*cli.Command{
		{Name: "verify", Usage: "recompute the ledger's chain of hashes", Flags: []cli.Flag{
			&cli.Int64Flag{Name: "from", DefaultText: "the first of all", Usage: "first entry"},
			&cli.Int64Flag{Name: "to", DefaultText: "the newest", Usage: "last entry"},
		}, Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			var q controlplane.VerifyAuditParams
			for name, bound := range map[string]**int64{"from": &q.From, "to": &q.To} {
				if c.IsSet(name) {
					if c.Int64(name) < 1 {
						return fault.Usage("--%s must be at least 1", name)
					}
					*bound = new(c.Int64(name))
				}
			}
			return auditVerify(c.Context, env, q)
		}},
		{Name: "export", Usage: "the ledger as NDJSON that can be verified offline", Flags: []cli.Flag{last(""),
			&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "write it there (default: standard output)"},
		}, Action: func(c *cli.Context) error {
			if _, err := readArguments(c); err != nil {
				return err
			}
			return auditExport(c.Context, env, c.String("last"), c.String("file"))
		}},
	}, Action: func(c *cli.Context) error {
		if _, err := readArguments(c); err != nil {
			return err
		}
		o, err := env.readListOptions(c)
		if err != nil {
			return err
		}
		since, until, err := env.auditSpan(c)
		if err != nil {
			return err
		}
		return auditList(c.Context, env, controlplane.ListAuditEventsParams{Model: optional(c.String("model")), Action: optional(c.String("action")),
			Source: optional(c.String("source")), Actor: optional(c.String("actor")), Since: since, Until: until}, o)
	}}
}

// auditSpan returns the period that --last, or --since and --until select; nil for no bound.
func (e *Env) auditSpan(c *cli.Context) (since, until *time.Time, err error) {
	if c.String("until") != "" {
		at, err := parseTime(c.String("until"), e.Now())
		if err != nil {
			return nil, nil, err
		}
		until = new(at.UTC())
	}
	switch {
	case c.String("since") == "":
		since, err = e.since(c.String("last"))
	case c.IsSet("last"):
		return nil, nil, fault.Usage("--last and --since contradict each other")
	default:
		var at time.Time
		at, err = parseTime(c.String("since"), e.Now())
		since = new(at.UTC())
	}
	if err == nil && since != nil && until != nil && !until.After(*since) {
		err = fault.Usage("--until %s is not after the beginning, %s", c.String("until"), since.Format(time.RFC3339))
	}
	return since, until, err
}

// since returns the beginning of a window; nil for none.
func (e *Env) since(last string) (*time.Time, error) {
	if last == "" {
		return nil, nil
	}
	d, err := parseWindow(last)
	if err != nil {
		return nil, err
	}
	return new(e.Now().Add(-d).UTC()), nil
}

type auditRow struct {
	Seq     int64           `json:"seq"`
	At      string          `json:"at"`
	Source  string          `json:"source"`
	Actor   string          `json:"actor"`
	Action  string          `json:"action"`
	Target  string          `json:"target"`
	Outcome string          `json:"outcome"`
	Details json.RawMessage `json:"details"`
	Hash    string          `json:"hash"`
}

func auditList(ctx context.Context, env *Env, q controlplane.ListAuditEventsParams, o listOptions) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	events, more, err := readItems(o.fetch(), func(limit *int, cursor *string) ([]controlplane.AuditEvent, *string, error) {
		q.Limit, q.Cursor = limit, cursor
		page, err := decode[controlplane.AuditEventList](cp.ListAuditEvents(ctx, &q))
		return page.Items, page.NextCursor, err
	})
	if err != nil {
		return err
	}
	doc := []auditRow{}
	g := output.Grid{Columns: []string{"Time", "Source", "Actor", "Action", "Target", "Details"}, Spare: []string{"Source", "Details"}, Empty: "No entry matches."}
	for _, e := range events {
		if len(e.Details) == 0 {
			e.Details = json.RawMessage("null")
		}
		doc = append(doc, auditRow{e.Seq, e.Ts, e.Source, e.Actor, e.Action, e.Target, string(e.Outcome), e.Details, e.Hash})
		at := any(e.Ts)
		if t, err := time.Parse(time.RFC3339Nano, e.Ts); err == nil {
			at = t
		}
		g.Rows = append(g.Rows, []any{at, e.Source, e.Actor, auditAction(e), e.Target, auditDetails(e.Details)})
	}
	g.Doc = doc
	return env.printList(o, g, more)
}

// auditAction marks actions that were attempted and not done.
func auditAction(e controlplane.AuditEvent) any {
	if e.Outcome == controlplane.AuditOutcomeOk {
		return e.Action
	}
	return output.Styled{Value: e.Action + " (" + string(e.Outcome) + ")", Style: output.Bad}
}

func auditDetails(d json.RawMessage) string {
	if s := string(d); s != "null" && s != "{}" {
		return s
	}
	return ""
}

func auditVerify(ctx context.Context, env *Env, q controlplane.VerifyAuditParams) error {
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	v, err := decode[controlplane.AuditVerdict](cp.VerifyAudit(ctx, &q))
	if err != nil {
		return err
	}
	reason := ""
	if v.Reason != nil {
		reason = string(*v.Reason)
	}
	doc := map[string]any{"verified": v.Verified, "checked": v.Checked, "first_bad_seq": v.FirstBadSeq, "reason": nullIfEmpty(reason),
		"signed_seq": v.SignedSeq, "head": v.Head, "verified_at": v.VerifiedAt, "memory": v.Memory, "high_water": v.HighWater,
		"failures": v.Failures, "acknowledgements": v.Acknowledgements}
	if !v.Verified {
		at := "its end"
		if v.FirstBadSeq != nil {
			at = fmt.Sprintf("entry %d", *v.FirstBadSeq)
		}
		f := fault.New("audit_altered", "the audit ledger does not verify: %s at %s; %d entries were checked", strings.ReplaceAll(reason, "_", " "), at, v.Checked)
		f.Faults = []any{doc}
		if v.Detail != nil {
			f.Message += ": " + output.Clean(*v.Detail)
		}
		return f.WithHint("keep what is there before anything else: mlp audit export --file audit.ndjson")
	}
	signed := "no entry is under a trusted checkpoint"
	if v.SignedSeq > 0 {
		signed = fmt.Sprintf("signed up to entry %d", v.SignedSeq)
	}
	for _, a := range v.Acknowledgements {
		signed += fmt.Sprintf("; accepted up to entry %d by %s and %s at %s: %s", a.Seq, output.Clean(a.RequestedBy), output.Clean(a.AcknowledgedBy), a.At, output.Clean(a.Reason))
	}
	return env.done(doc, "%d entries verified; %s; head %d %s", v.Checked, signed, v.Head.Seq, output.Clean(v.Head.Hash))
}

// auditExport writes a whole export or nothing: an export without its last line is truncated, which could not be
// detected later.
func auditExport(ctx context.Context, env *Env, last, file string) error {
	if file == "" && env.Format.Structured() {
		return fault.Usage("audit export writes NDJSON; with --output %s, name a file for it: --file audit.ndjson", env.Format)
	}
	since, err := env.since(last)
	if err != nil {
		return err
	}
	cp, err := env.controlPlaneClient()
	if err != nil {
		return err
	}
	resp, err := cp.ExportAudit(ctx, &controlplane.ExportAuditParams{Since: since}, func(_ context.Context, req *http.Request) error {
		req.Header.Set("Accept", "application/x-ndjson")
		return nil
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	var trailer struct {
		Kind  string `json:"kind"`
		Count int64  `json:"count"`
	}
	if json.Unmarshal(lines[len(lines)-1], &trailer) != nil || trailer.Kind != "trailer" {
		return fault.New("export_truncated", "the export ends before its trailer; nothing was written").WithHint("try again, or export less: --last 7d")
	}
	if file == "" {
		_, err := env.data.Write(data) // its lines are signed as they are
		return err
	}
	if err := writeWhole(file, data); err != nil {
		return err
	}
	return env.done(map[string]any{"file": file, "entries": trailer.Count, "bytes": len(data)}, "%d entries written to %s", trailer.Count, file)
}

// writeWhole replaces a file in one step, so that Ctrl-C leaves the old one or the new one.
func writeWhole(file string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".mlp-*")
	if err != nil {
		return fault.New("unwritable", "cannot write %s: %v", file, err)
	}
	defer os.Remove(tmp.Name()) // a no-op once renamed
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return fault.New("unwritable", "cannot write %s: %v", file, err)
	}
	return nil
}
