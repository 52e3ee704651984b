package route

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/api"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// serveHealth touches no dependency.
func serveHealth(c echo.Context) error {
	return c.JSON(http.StatusOK, api.Health{Status: "ok", Version: service.Version})
}

// namespaceTime leaves clients that wait 3 s time to read the answer.
const namespaceTime = 2500 * time.Millisecond

// namespaces lists what exists for callers, the protected ones too.
func (a *API) namespaces(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), namespaceTime)
	defer cancel()
	all, err := a.Cluster.Namespaces(ctx)
	if err != nil {
		return fault.ClusterUnavailable.New("The cluster does not tell its namespaces; try again later.").WithCause(err).After(5 * time.Second)
	}
	shown := slices.DeleteFunc(slices.Clone(all), func(ns string) bool { return !a.Policy.Visible(ns) })
	if len(shown) == 0 { // a cluster always has some, so this one has not told
		return fault.ClusterUnavailable.New("The cluster names no namespace that callers may see.").After(5 * time.Second)
	}
	slices.Sort(shown)
	return c.JSON(http.StatusOK, api.NamespaceList{Namespaces: slices.Compact(shown)})
}

// maxMint bounds the body of a request for a demo key, in bytes.
const maxMint = 16 << 10

// mint makes a demo key. It is handed out only once the ledger knows of it.
func (a *API) mint(c echo.Context) error {
	ctx := c.Request().Context()
	by, _ := caller.FromContext(ctx)
	if err := a.Callers.MayMint(by); err != nil {
		return err
	}
	if err := limitBody(c, maxMint); err != nil {
		return err
	}
	raw, err := service.ReadBody(c)
	if err != nil {
		return err
	}
	made, err := a.Callers.Mint(by, raw)
	if err != nil {
		return err
	}
	w, id, expiry := callerOf(c), caller.KeyID(made.APIKey), time.Unix(made.ExpiresAt, 0).UTC()
	err = a.Store.InTx(ctx, func(tx store.Tx) error {
		return tx.Emit(ctx, event.Facts(w, a.Now(), "demo_key_minted", "demo_key.minted", id, "key:"+id, event.OK,
			event.DemoKey{KeyID: id, Email: made.Email, ExpiresAt: expiry},
			map[string]any{"key_id": id, "email": made.Email, "expires_at": expiry, "status": http.StatusOK})...)
	})
	if err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, made)
}

// limitBody refuses a body of more bytes. The server does not, since it would before the caller is known.
func limitBody(c echo.Context, limit int64) error {
	r := c.Request()
	if r.ContentLength > limit {
		c.Response().Header().Set("Connection", "close") // rather than read the rest
		return problem.BodyTooLarge.New(fmt.Sprintf("The request body is larger than %d bytes.", limit))
	}
	r.Body = http.MaxBytesReader(c.Response().Writer, r.Body, limit)
	return nil
}

// clusterFault gives errors of a look at the cluster their answer.
func (a *API) clusterFault(err error) error {
	var known *problem.Error
	var refused *action.Refused
	var wrong *operation.Fault
	switch {
	case errors.As(err, &known), postgres.Unavailable(err):
		return err
	case errors.As(err, &refused):
		return fault.NotPermitted(refused.Reason)
	case errors.As(err, &wrong):
		return problem.Conflict.New("The cluster would not take this change now: " + wrong.Error()).WithCause(err)
	}
	return fault.ClusterUnavailable.New("The cluster could not be asked, so nothing was decided; try again.").WithCause(err).After(5 * time.Second)
}

// Errors writes errors as fault.Handler does, and answers 503 where the database cannot be reached.
func Errors(next echo.HTTPErrorHandler) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		var known *problem.Error
		if !errors.As(err, &known) && postgres.Unavailable(err) {
			err = fault.StoreUnavailable.New("The assistant's own store does not answer; try again later.").WithCause(err).After(5 * time.Second)
		}
		next(err, c)
	}
}
