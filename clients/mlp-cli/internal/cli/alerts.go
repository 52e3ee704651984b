package cli

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// alertStates are the values of --state of alerts.
var alertStates = []string{"resolved", "all"}

func alertsCommand(env *Env) *cli.Command {
	return &cli.Command{Name: "alerts", Usage: "the alert inbox", Subcommands: []*cli.Command{
		{Name: "list", Usage: "alerts, worst first", Flags: append(append(watchFlags(), listFlags(0)...),
			&cli.StringFlag{Name: "state", Usage: "resolved or all (default: firing and acknowledged)"}),
			Action: func(c *cli.Context) error {
				if _, err := readArguments(c); err != nil {
					return err
				}
				if err := oneOf("--state", c.String("state"), alertStates...); err != nil {
					return err
				}
				o, err := env.readListOptions(c)
				if err != nil {
					return err
				}
				return env.maybeWatch(c, func() error { return alertsList(c.Context, env, c.String("state"), o) })
			}},
		{Name: "ack", Usage: "acknowledge an alert", ArgsUsage: "<alert>", Flags: []cli.Flag{
			reasonFlag(),
			dryRunFlag(),
		}, Action: func(c *cli.Context) error {
			a, err := readArguments(c, "alert")
			if err != nil {
				return err
			}
			if err := noReason(c, "the dashboard", "an acknowledgement"); err != nil {
				return err
			}
			return alertsAck(c.Context, env, a[0], c.Bool("dry-run"))
		}},
	}}
}

// shownAlert shows unknown values as null, where the dashboard omits them.
type shownAlert struct {
	dashboard.Alert
	AckedAt    any `json:"acked_at"`
	AckedBy    any `json:"acked_by"`
	ResolvedAt any `json:"resolved_at"`
	Since      any `json:"since"`
}

func (e *Env) alerts(ctx context.Context, state string) ([]dashboard.Alert, bool, error) {
	client, err := e.dashboardClient()
	if err != nil {
		return nil, false, err
	}
	params := &dashboard.ListAlertsParams{}
	if state != "" {
		params.State = new(dashboard.ListAlertsParamsState(state))
	}
	view, err := decode[dashboard.AlertView](client.ListAlerts(ctx, params))
	stale := view.Inbox.Stale != nil && *view.Inbox.Stale
	return view.Inbox.Alerts, stale, err
}

func alertsList(ctx context.Context, env *Env, state string, o listOptions) error {
	alerts, stale, err := env.alerts(ctx, state)
	if err != nil {
		return err
	}
	doc := []shownAlert{}
	g := output.Grid{Columns: []string{"ID", "Severity", "Title", "Source", "State", "Age", "Acked By"}, Spare: []string{"Source", "Acked By"}, Empty: "No alert is firing."}
	if state != "" {
		g.Empty = "No alerts."
	}
	for _, a := range alerts {
		doc = append(doc, shownAlert{a, a.AckedAt, a.AckedBy, a.ResolvedAt, a.Since})
		var since any
		if a.Since != nil {
			since = output.Age(*a.Since)
		}
		g.Rows = append(g.Rows, []any{a.Id, styledStatus(string(a.Severity)), a.Title, a.Source, styledStatus(string(a.State)), since, a.AckedBy})
	}
	g.Doc = doc
	if stale {
		env.Talk("the control plane does not answer; these are the alerts that were known last")
	}
	return env.printList(o, g, false)
}

func alertsAck(ctx context.Context, env *Env, id string, dryRun bool) error {
	alerts, _, err := env.alerts(ctx, "all")
	var found *dashboard.Alert
	for i := range alerts {
		if alerts[i].Id == id {
			found = &alerts[i]
		}
	}
	if err == nil && found == nil {
		f := fault.New("unknown_alert", "there is no alert %s", id)
		f.Service = "dashboard"
		err = f.WithHint("see the alerts: mlp alerts list")
	}
	if dryRun {
		check := Check{Name: "alert is firing"}
		would := map[string]any{"action": "acknowledge"}
		if err != nil {
			check.Detail = err.Error()
		} else {
			check.Pass, check.Detail = found.State == "firing", found.Title+" is "+string(found.State)
		}
		return env.DryRun(id, would, []Check{check})
	}
	if err != nil {
		return err
	}
	env.Talk("%s  %s", strings.ToUpper(string(found.Severity)), output.Clean(found.Title))
	yes, err := env.Confirm(ctx, "Acknowledge it?", false)
	if err != nil || !yes {
		return err
	}
	client, err := env.dashboardClient()
	if err != nil {
		return err
	}
	ack, err := decode[dashboard.Ack](client.AckAlert(ctx, id))
	if err != nil {
		return err
	}
	by := ""
	if ack.AckedBy != nil {
		by = " by " + *ack.AckedBy
	}
	return env.done(map[string]any{"id": id, "acked": ack.Acked, "acked_at": ack.AckedAt, "acked_by": ack.AckedBy}, "%s acknowledged%s", output.Clean(id), output.Clean(by))
}
