package poller

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

const (
	target   = "modelrepo"
	noSource = "no model repository can be polled: set GITLAB_URL and GITLAB_PROJECT_ID, MODELREPO_GIT_URL, or let MODELREPO_DIR be the root of a git repository"
)

// Sync serves POST /modelrepo/sync: one poll, even if polling is off.
func (s *Service) Sync(c echo.Context) error {
	ctx := c.Request().Context()
	if s.Source == nil {
		return s.synced(c, found{}, errors.New(noSource))
	}
	// The poll finishes even if the caller has gone: others wait for its lock.
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), CloneTimeout+recordTimeout)
	defer cancel()
	p, _ := auth.FromContext(ctx)
	out, err := s.poll(work, p.Name)
	var away *awayError
	switch {
	case errors.Is(err, errBusy):
		return fault.SyncInProgress.New("The model repository is being polled; check again in a few seconds.").After(2 * time.Second)
	case errors.Is(err, coord.ErrUnavailable):
		return fault.CoordinatorUnavailable.New("The coordinator that keeps polls apart does not answer; try again later.").WithCause(err).After(5 * time.Second)
	case err != nil && !errors.As(err, &away):
		return err
	}
	return s.synced(c, out, err)
}

func (s *Service) synced(c echo.Context, out found, cause error) error {
	ctx := c.Request().Context()
	body := api.SyncResult{NewCommit: out.New, CommitSha: wire.OptionalText(out.SHA)}
	details, outcome := map[string]any{"new_commit": out.New, "commit_sha": out.SHA}, event.OK
	if out.New {
		marked := append([]string{}, out.Marked...)
		body.ModelsMarkedStale = &marked
	}
	if cause != nil {
		body.Error = wire.OptionalText(cause.Error())
		details["error"], outcome = cause.Error(), event.Failed
	}
	if err := s.audit(ctx, "modelrepo.synced", outcome, details); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, body)
}

func (s *Service) audit(ctx context.Context, action, outcome string, details map[string]any) error {
	p, _ := auth.FromContext(ctx)
	return s.Store.InTx(ctx, func(tx store.Tx) error {
		return tx.Emit(ctx, event.Shared(p.Tenant, p.Name, action, target, outcome, details))
	})
}

// Reload serves POST /admin/reload: this replica reads the repository again immediately, the others within a second.
func (s *Service) Reload(c echo.Context) error {
	ctx := c.Request().Context()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.turn:
	}
	defer func() { s.turn <- struct{}{} }()
	before := s.Registry.Head()
	err := s.Registry.Reload(ctx)
	var refused *registry.Refused
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	out := api.ReloadResult{RegistryReloaded: err == nil, Models: []string{}, Errors: []string{}}
	for _, m := range s.Registry.Models() {
		out.Models = append(out.Models, m.ID())
	}
	faults := s.Registry.Repo().Faults
	outcome := event.OK
	if refused != nil {
		faults, outcome = refused.Faults, event.Failed
		if len(faults) == 0 {
			out.Errors = append(out.Errors, refused.Reason)
		}
	}
	for _, f := range faults {
		out.Errors = append(out.Errors, f.Error())
	}
	p, _ := auth.FromContext(ctx)
	if err := s.Store.InTx(ctx, func(tx store.Tx) error {
		if _, err := tx.RereadModelrepo(ctx); err != nil {
			return err
		}
		return tx.Emit(ctx, event.Shared(p.Tenant, p.Name, "registry.reloaded", target, outcome, map[string]any{
			"old": before, "new": s.Registry.Head(), "models": len(out.Models), "errors": len(out.Errors),
		}))
	}); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}
