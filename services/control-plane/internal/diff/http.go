package diff

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Get serves GET /approvals/{id}/diff.
func (a API) Get(c echo.Context) error {
	ctx := c.Request().Context()
	id, err := wire.PathID(c, fault.ApprovalNotFound)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	row, err := a.Store.GetApproval(ctx, store.GetApprovalParams{ID: id, Tenant: p.Tenant})
	switch {
	case store.None(err):
		return fault.ApprovalNotFound.New("There is no such approval in your tenant; GET /approvals lists them.")
	case err != nil:
		return err
	case a.Source == nil:
		return fault.DiffUnavailable.New("The control plane reads the models from no git repository, so nothing can be compared.")
	}
	from, err := a.Store.LastTrainedCommit(ctx, row.Approval.ModelID)
	if err != nil && !store.None(err) {
		return err
	}
	begin := ""
	if from != nil {
		begin = *from
	}
	asked, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	d, err := a.compare(asked, begin, row.Approval.CommitSha)
	switch {
	case errors.Is(err, forge.ErrUnknown):
		return fault.DiffUnavailable.New("The model repository does not know the commit of the record, or the one the model was last trained from.").WithCause(err)
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fault.ModelRepoUnreachable.New("The model repository does not answer; try again later.").WithCause(err).After(5 * time.Second)
	}
	out, err := limitSize(d)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}
