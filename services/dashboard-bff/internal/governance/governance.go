// Package governance holds the view of controls, risk classes, model cards and the audit ledger.
package governance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/figure"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

const (
	pageLimit = 500
	// entriesShown are the newest entries of the ledger.
	entriesShown = 20
	// verifyBudget is for a ledger so long that its verification takes longer than a view waits, verifyPace keeps people
	// who look at the page from keeping the control plane busy.
	verifyBudget = time.Minute
	verifyPace   = 20
)

// genesis is the head of a ledger without entries.
var genesis = strings.Repeat("0", 64)

// Parts are the dependencies of Views.
type Parts struct {
	Pool    *compose.Pool
	Clients *upstream.Clients
}

// Views serve the route of governance.
type Views struct {
	Parts
	posture    compose.Source[compose.None, controlplane.Posture]
	compliance compose.Source[compose.None, []controlplane.Compliance]
	cards      compose.Source[compose.None, controlplane.ModelCardList]
	ledger     compose.Source[compose.None, controlplane.AuditEventList]
	verdict    compose.Source[compose.None, controlplane.AuditVerdict]
}

// New refuses a missing part.
func New(p Parts) (*Views, error) {
	if err := service.RequireParts("governance", p); err != nil {
		return nil, err
	}
	v := &Views{Parts: p}
	v.posture = compose.ControlPlaneSource("posture", "posture", v.readPosture)
	v.compliance = compose.ControlPlaneSource("compliance", "compliance", v.readCompliance)
	v.cards = compose.ControlPlaneSource("cards", "model cards", v.readCards)
	v.ledger = compose.ControlPlaneSource("audit", "newest entries", v.readLedger)
	v.verdict = compose.Source[compose.None, controlplane.AuditVerdict]{
		Name: "audit", Service: upstream.ControlPlane, Call: "verification", Fetch: v.verify,
		Budget: verifyBudget, Pace: verifyPace, // the control plane recomputes every entry
	}
	return v, nil
}

// Overview serves GET /api/v1/governance/overview.
func (v *Views) Overview(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	view := v.Pool.Begin(c)
	posture := compose.Ask(view, v.posture, compose.None{})
	compliance := compose.Ask(view, v.compliance, compose.None{})
	cards := compose.Ask(view, v.cards, compose.None{})
	ledger := compose.Ask(view, v.ledger, compose.None{})
	verdict := compose.Ask(view, v.verdict, compose.None{})
	var out api.GovernanceView
	if p, ok := posture.Get(); ok {
		out.Posture = postureView(p)
	}
	if rows, ok := compliance.Get(); ok {
		out.Compliance = complianceView(rows)
	}
	if l, ok := cards.Get(); ok {
		out.Cards = &api.GovernanceView_Cards{WithCard: l.WithCard, WithoutCard: l.WithoutCard, Coverage: figure.Round(l.Coverage, 4), Total: l.Total}
	}
	if l, ok := ledger.Get(); ok {
		out.Audit = ledgerView(l)
		if d, ok := verdict.Get(); ok { // without one nothing is said of the ledger
			checked := int(d.Checked)
			at := d.VerifiedAt.UTC()
			out.Audit.Verified, out.Audit.Checked, out.Audit.VerifiedAt = &d.Verified, &checked, &at
		}
	}
	return view.Answer(out)
}

func postureView(p controlplane.Posture) *api.GovernanceView_Posture {
	statement := fmt.Sprintf("%d of %d controls evidenced. Evidence coverage, not certification.", p.Satisfied, p.Total)
	out := &api.GovernanceView_Posture{Controls: make([]api.Control, len(p.Controls)), Satisfied: p.Satisfied, Total: p.Total, Statement: &statement}
	for i, c := range p.Controls {
		out.Controls[i] = api.Control{
			Control: c.Control, Function: string(c.Function), Title: c.Title, Status: api.ControlStatus(c.Status), Evidence: append([]string{}, c.Evidence...),
		}
	}
	return out
}

func complianceView(rows []controlplane.Compliance) *api.GovernanceView_Compliance {
	out := &api.GovernanceView_Compliance{Rows: make([]api.ComplianceRow, len(rows)), Count: len(rows)}
	for i, r := range rows {
		out.Rows[i] = api.ComplianceRow{
			Model: r.Model, Version: r.Version, RiskClass: string(r.RiskClass), TechnicalFile: r.TechnicalFile != nil, Provenance: r.Provenance != nil,
		}
	}
	return out
}

// ledgerView returns the newest entries and the hash of the very newest, which covers all before it.
func ledgerView(l controlplane.AuditEventList) *api.GovernanceView_Audit {
	out := &api.GovernanceView_Audit{Count: int(l.Count), HeadDigest: genesis, Entries: make([]api.LedgerEntry, len(l.Items))}
	for i, e := range l.Items {
		outcome := string(e.Outcome)
		out.Entries[i] = api.LedgerEntry{Seq: e.Seq, Hash: e.Hash, PrevHash: e.PrevHash, Actor: &e.Actor, Action: &e.Action, Target: &e.Target, Outcome: &outcome, Run: runOf(e.Details)}
		if at, err := time.Parse(time.RFC3339, e.Ts); err == nil {
			out.Entries[i].Ts = &at
		}
	}
	if len(l.Items) > 0 {
		out.HeadDigest = l.Items[0].Hash
	}
	return out
}

func (v *Views) readPosture(ctx context.Context, who caller.Caller, _ compose.None) (controlplane.Posture, error) {
	client, err := v.Clients.ControlPlane(who)
	if err != nil {
		return controlplane.Posture{}, err
	}
	return wire.Decode[controlplane.Posture](client.Posture(ctx))
}

func (v *Views) readCompliance(ctx context.Context, who caller.Caller, _ compose.None) ([]controlplane.Compliance, error) {
	client, err := v.Clients.ControlPlane(who)
	if err != nil {
		return nil, err
	}
	limit := pageLimit
	all, err := compose.ReadPages(ctx, func(ctx context.Context, cursor *string) ([]controlplane.Compliance, *string, error) {
		page, err := wire.Decode[controlplane.ComplianceList](client.ListCompliance(ctx, &controlplane.ListComplianceParams{Limit: &limit, Cursor: cursor}))
		return page.Items, page.NextCursor, err
	})
	return slices.DeleteFunc(all, func(r controlplane.Compliance) bool { return !upstream.VisibleTo(who, r.Tenant) }), err
}

// readCards reads how many models have a card; the cards themselves, with all their text, are not wanted.
func (v *Views) readCards(ctx context.Context, who caller.Caller, _ compose.None) (controlplane.ModelCardList, error) {
	client, err := v.Clients.ControlPlane(who)
	if err != nil {
		return controlplane.ModelCardList{}, err
	}
	limit := 1
	return wire.Decode[controlplane.ModelCardList](client.ListModelCards(ctx, &controlplane.ListModelCardsParams{Limit: &limit}))
}

// readLedger reads the newest entries of the tenant's ledger. A ledger of another tenant is not this one's.
func (v *Views) readLedger(ctx context.Context, who caller.Caller, _ compose.None) (controlplane.AuditEventList, error) {
	client, err := v.Clients.ControlPlane(who)
	if err != nil {
		return controlplane.AuditEventList{}, err
	}
	limit := entriesShown
	l, err := wire.Decode[controlplane.AuditEventList](client.ListAuditEvents(ctx, &controlplane.ListAuditEventsParams{Limit: &limit}))
	if err != nil {
		return l, err
	}
	return l, checkTenant(l, who)
}

func checkTenant(l controlplane.AuditEventList, who caller.Caller) error {
	for _, e := range l.Items {
		if e.Tenant != who.Tenant {
			return fmt.Errorf("the control plane answered with the ledger of tenant %q, not of %q", e.Tenant, who.Tenant)
		}
	}
	return nil
}

// verify has the control plane verify the tenant's whole ledger, after checking whose ledger it is: a verdict does not
// name it.
func (v *Views) verify(ctx context.Context, who caller.Caller, _ compose.None) (controlplane.AuditVerdict, error) {
	client, err := v.Clients.ControlPlane(who)
	if err != nil {
		return controlplane.AuditVerdict{}, err
	}
	if _, err := v.readLedger(ctx, who, compose.None{}); err != nil {
		return controlplane.AuditVerdict{}, err
	}
	return wire.Decode[controlplane.AuditVerdict](client.VerifyAudit(ctx, &controlplane.VerifyAuditParams{}))
}

// runOf returns the training run that the details of a fact name; nil without one.
func runOf(details json.RawMessage) *string {
	var d struct {
		Run string `json:"flow_run_id"`
	}
	if json.Unmarshal(details, &d) != nil || d.Run == "" { // details with another type of it name none
		return nil
	}
	return &d.Run
}
