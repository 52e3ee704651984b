package cli

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// changes notes whether a command has changed anything in a service.
type changes struct{ made atomic.Bool }

func (c *changes) note() {
	if c != nil {
		c.made.Store(true)
	}
}

// recordTimeout is how long a command waits for its entry in the audit ledger, after all else is done.
const recordTimeout = 3 * time.Second

// recordChange enters a command's change into the audit ledger, as a fact of the source cli. The services record their
// own acts under their own names; only mlp knows that a command line requested them.
func (e *Env) recordChange(c *cli.Context, commandErr error) {
	if e.changes == nil || !e.changes.made.Load() || c.Bool("dry-run") {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context), recordTimeout) // a Ctrl-C does not undo the change
	defer cancel()
	cp, err := e.controlPlaneClient()
	if err != nil {
		return // unreachable: the change needed the same configuration
	}
	facts := map[string]string{"command": "mlp " + e.command}
	if reason := c.String("reason"); reason != "" {
		facts["reason"] = reason
	}
	outcome := controlplane.AuditOutcomeOk
	if commandErr != nil {
		outcome = controlplane.AuditOutcomeFailed
		facts["error"] = fault.From(commandErr).Code
	}
	details, err := json.Marshal(facts)
	if err != nil {
		return // unreachable: texts
	}
	raw := json.RawMessage(details)
	body := controlplane.AuditFactInput{Source: controlplane.AuditSourceCli, Action: strings.ReplaceAll(e.command, " ", "."),
		Target: changeTarget(c), Outcome: &outcome, Details: &raw}
	if err := discard(cp.RecordAuditEvent(ctx, body)); err != nil {
		e.Talk("note: the audit ledger has no entry of this command: %v", err)
	}
}

// changeTarget names what a command changed, a model as all services name it in the ledger.
func changeTarget(c *cli.Context) string {
	target := strings.Join(c.Args().Slice(), " ")
	switch {
	case c.Args().Present() && takesModel(c.Command):
		target = "model:" + strings.ToUpper(c.Args().First())
	case target == "" && c.String("model") != "":
		target = "model:" + strings.ToUpper(c.String("model"))
	case target == "":
		return "platform"
	}
	const most = 512 // bytes, of the ledger
	target = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, target)
	for len(target) > most {
		target = target[:strings.LastIndexFunc(target[:most], func(rune) bool { return true })]
	}
	return target
}
