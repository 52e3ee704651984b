package proxy

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// auditTimeout limits the writing of one fact.
const auditTimeout = 5 * time.Second

// ActionBegin is the audit fact of a write that is about to be sent to a service which knows no person: it is all that
// names who did it if this process ends before the answer. Services that know the person keep facts of their own.
const ActionBegin = "proxy.begin"

// prepareAudit refuses a write that could not be recorded, before anything has happened.
func (x *exchange) prepareAudit() error {
	if isSafe(x.in.Method) {
		return nil
	}
	ctx, cancel := context.WithTimeout(x.in.Context(), auditTimeout)
	defer cancel()
	var err error
	if OperatorOnly(x.service) {
		err = x.insertFact(ctx, ActionBegin, announce.OK, x.auditDetails())
	} else {
		err = x.proxy.cfg.Pool.Ping(ctx)
	}
	if err != nil {
		return fault.StoreUnavailable.New("The database that records changes is away, so nothing was sent to " + string(x.service) + "; try again.").After(time.Second).WithCause(err)
	}
	return nil
}

// recordWrite writes the audit fact of a write that the service answered with status, 0 for no answer, before the
// caller learns of it. The query is left out: it may hold anything.
func (x *exchange) recordWrite(ctx context.Context, status int) error {
	if isSafe(x.in.Method) || x.recorded {
		return nil
	}
	x.recorded = true
	outcome := announce.OK
	if status == 0 || status >= http.StatusBadRequest {
		outcome = announce.Failed
	}
	details := x.auditDetails()
	if status != 0 {
		details["status"] = status
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout) // the caller may have left
	defer cancel()
	if err := x.insertFact(ctx, "proxy."+strings.ToLower(x.in.Method), outcome, details); err != nil {
		return fault.StoreUnavailable.New(string(x.service) + " has carried the request out, but the database that records changes went away meanwhile; look at the result before you repeat it.").WithCause(err)
	}
	return nil
}

// auditDetails returns the details common to all facts of this write.
func (x *exchange) auditDetails() map[string]any {
	details := map[string]any{"service": string(x.service), "method": x.in.Method, "path": x.path, "origin": "dashboard"}
	if x.origin.tools {
		details["origin"] = "tools"
	}
	return details
}

func (x *exchange) insertFact(ctx context.Context, action, outcome string, details map[string]any) error {
	event := announce.Audit(ctx, x.who, action, string(x.service)+x.path, outcome, details)
	return postgres.InTx(ctx, x.proxy.cfg.Pool, func(tx pgx.Tx) error { return announce.Insert(ctx, tx, event) })
}
