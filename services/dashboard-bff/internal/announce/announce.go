// Package announce holds the dashboard's events and the audit facts of its callers.
package announce

import (
	"context"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

// Source names this service in the audit ledger.
const Source = "dashboard"

// Outcomes of an audit fact.
const (
	OK     = "ok"
	Denied = "denied"
	Failed = "failed"
)

// FlagChanged is the data of event.flag_changed.
type FlagChanged struct {
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
}

// Mention is the data of event.mention. Entity is "<type>/<id>".
type Mention struct {
	User      string `json:"user"`
	Entity    string `json:"entity"`
	By        string `json:"by"`
	CommentID string `json:"comment_id"`
}

// Notice is the data of event.notice; Object is the comment, approval record or alert.
type Notice struct {
	Kind   string `json:"kind"`
	Object string `json:"object"`
}

// Acked is the data of alert.acked.
type Acked struct {
	ID    string `json:"id"`
	Actor string `json:"actor"`
}

// ConfigChanged is the data of event.config_changed.
type ConfigChanged struct {
	Scope string   `json:"scope"`
	Keys  []string `json:"keys"`
}

// Events are all that this service publishes.
var Events = outbox.NewCatalogue(
	outbox.AuditDeclaration,
	declareEvent("event", "flag_changed", FlagChanged{}, "an admin overrode a flag for the tenant, or dropped the override"),
	declareEvent("event", "mention", Mention{}, "a comment mentions a person"),
	declareEvent("event", "notice", Notice{}, "inboxes have changed: a notice was added or has ended"),
	declareEvent("alert", "acked", Acked{}, "an alert was acknowledged"),
	outbox.Declaration{
		Namespace: "event", Name: "config_changed", Data: ConfigChanged{}, Platform: true, // one configuration for all tenants
		When: "settings changed; keys names them",
	},
)

func declareEvent(namespace, name string, data any, when string) outbox.Declaration {
	return outbox.Declaration{Namespace: namespace, Name: name, Data: data, When: when}
}

// Insert adds events to the transaction that they describe.
func Insert(ctx context.Context, tx pgx.Tx, events ...outbox.Event) error {
	if err := Events.Check(events...); err != nil {
		return err
	}
	return outbox.Insert(ctx, tx, events...)
}

// sessionMark is how much of a session's id is disclosed: enough to distinguish sessions, too little to find one.
const sessionMark = 8

// Audit returns the fact of one act of who; details never hold a secret. It names the password session, since all
// people of one role share a principal.
func Audit(ctx context.Context, who caller.Caller, action, target, outcome string, details map[string]any) outbox.Event {
	if who.Method == caller.Password && len(who.SessionID) >= sessionMark {
		details = maps.Clone(details)
		if details == nil {
			details = map[string]any{}
		}
		details["session"] = who.SessionID[:sessionMark]
	}
	return outbox.Audit(outbox.AuditFact{
		Tenant: who.Tenant, Actor: who.Subject, Action: action, Target: target, Outcome: outcome, Source: Source,
		Details: details, RequestID: service.RequestID(ctx),
	})
}
