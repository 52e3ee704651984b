// Package diff shows what an approval is about: the changes of the model
// repository between the commit a model was last trained from and the one that
// was noticed.
package diff

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/approval"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge"
	"github.com/mlp-platform/platform/services/control-plane/internal/repoconfig"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// timeout bounds what one diff asks of the repository.
const timeout = 10 * time.Second

// maxBytes bounds the answer. frame is what it holds beside the files.
const (
	maxBytes = 1 << 20
	frame    = 1 << 10
)

// API serves the diff of an approval.
type API struct {
	Store *store.Store
	// Source is the model repository; nil: it is in no git repository.
	Source forge.Source
	Config *repoconfig.Service
	Log    *slog.Logger
}

// Get serves GET /approvals/{id}/diff.
func (a API) Get(c echo.Context) error {
	ctx := c.Request().Context()
	id, err := approval.PathID(c, fault.ApprovalNotFound)
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
	out, err := bound(d)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// compare asks again after a fetch: the commit may be newer than the last poll.
func (a API) compare(ctx context.Context, from, to string) (forge.Diff, error) {
	d, err := a.Source.Diff(ctx, from, to)
	if _, fetches := a.Source.(forge.Exporter); !fetches || !errors.Is(err, forge.ErrUnknown) {
		return d, err
	}
	if _, fetchErr := a.Source.Head(ctx, a.Config.Current().WatchBranch); fetchErr != nil {
		a.Log.InfoContext(ctx, "nothing fetched for a diff", slog.Any("err", fetchErr))
		return d, err
	}
	return a.Source.Diff(ctx, from, to)
}

// bound keeps the answer, as it will be encoded, within maxBytes: first patches
// are left out, then files.
func bound(d forge.Diff) (api.ApprovalDiff, error) {
	out := api.ApprovalDiff{FromCommit: wire.OptionalText(d.From), ToCommit: d.To, Files: []api.DiffFile{}, Truncated: d.Truncated}
	left := maxBytes - frame
	for _, f := range d.Files {
		row := api.DiffFile{
			Path: f.Path, Status: api.DiffFileStatus(f.Status), Additions: f.Additions, Deletions: f.Deletions, Patch: wire.OptionalText(f.Patch),
		}
		size, err := sizeOf(row)
		if err != nil {
			return out, err
		}
		if size > left && row.Patch != nil {
			row.Patch, out.Truncated = nil, true
			if size, err = sizeOf(row); err != nil {
				return out, err
			}
		}
		if size > left {
			out.Truncated = true
			break
		}
		left -= size
		out.Files = append(out.Files, row)
	}
	return out, nil
}

func sizeOf(f api.DiffFile) (int, error) {
	b, err := json.Marshal(f)
	return len(b) + 1, err // and a comma
}
