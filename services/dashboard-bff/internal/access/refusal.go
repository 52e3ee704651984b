package access

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

func roleRequired(who caller.Caller, need caller.Role) error {
	return fault.RoleRequired.Errorf("This needs the role %s; %s is %s.", need, who.Subject, who.Role).
		With(map[string]any{"required_role": need})
}

func operatorTenantRequired(who caller.Caller) error {
	return fault.OperatorTenantRequired.Errorf("This changes what all tenants share; only callers of an operator tenant may, and %s belongs to %s.", who.Subject, who.Tenant)
}

const (
	// refusalsPerMinute limits the audit facts of one person's refusals: a script that insists must not fill the ledger.
	refusalsPerMinute = 30
	// recordTimeout limits the writing of a fact that a refusal waits for.
	recordTimeout = 2 * time.Second
)

// refuse records that a caller was refused and returns the refusal. It stands even if the record fails.
func (g *Guard) refuse(c echo.Context, who caller.Caller, action string, refusal error) error {
	ctx := c.Request().Context()
	verdict := g.refusals.allow(who.Tenant+"\x00"+who.Subject, refusalsPerMinute, time.Minute)
	if !verdict.ok {
		g.cfg.Log.WarnContext(ctx, "refusal not recorded: too many of one caller", slog.String("sub", who.Subject))
		return refusal
	}
	var p *problem.Error
	details := map[string]any{"method": c.Request().Method}
	if errors.As(refusal, &p) {
		details["code"] = p.Kind.Code
	}
	if action != "" {
		details["step_up_action"] = action
	}
	fact := announce.Audit(ctx, who, "access.denied", "route:"+c.Path(), announce.Denied, details)
	g.RecordQuietly(ctx, fact)
	return refusal
}

// RecordQuietly is Record for facts of acts that stand even if the fact cannot be written.
func (g *Guard) RecordQuietly(ctx context.Context, facts ...outbox.Event) {
	if err := g.Record(ctx, facts...); err != nil {
		g.cfg.Log.ErrorContext(ctx, "an audit fact could not be written", slog.Any("err", err))
	}
}

// Count counts a refusal that a handler made, and returns it.
func (g *Guard) Count(refusal error) error {
	g.metrics.count(refusal)
	return refusal
}

// Record writes audit facts that belong to no other change, within 2 s, also when the request's sender is gone.
func (g *Guard) Record(ctx context.Context, facts ...outbox.Event) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return postgres.InTx(ctx, g.cfg.Pool, func(tx pgx.Tx) error { return announce.Insert(ctx, tx, facts...) })
}
