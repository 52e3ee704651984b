package repoconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// The keys of the document.
const (
	keyAuto     = "auto_retrain"
	keyInterval = "poll_interval_seconds"
	keyBranch   = "watch_branch"
	keyScope    = "stale_scope"
	keyGate     = "gate"
)

// Get serves GET /modelrepo/config.
func (s *Service) Get(c echo.Context) error {
	now, err := s.Read(c.Request().Context(), s.store.Queries)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, toModelrepoConfig(now))
}

// Put serves PUT /modelrepo/config: any of the keys; others are ignored.
func (s *Service) Put(c echo.Context) error {
	var body map[string]json.RawMessage
	if err := wire.DecodeOpen(c, &body); err != nil {
		return err
	}
	ctx := c.Request().Context()
	p, _ := auth.FromContext(ctx)
	after, waits, err := s.Change(ctx, p, func(to *Settings) error { return applyKeys(body, to) })
	switch {
	case err != nil:
		return err
	case waits != nil:
		return guarded.Accepted(c, *waits)
	}
	return c.JSON(http.StatusOK, toModelrepoConfig(after))
}

// applyKeys sets the known keys of body in to; the error names every invalid one.
func applyKeys(body map[string]json.RawMessage, to *Settings) error {
	var faults []problem.Field
	bad := func(key, msg string) { faults = append(faults, problem.Field{Loc: []string{"body", key}, Msg: msg}) }
	unread := map[string]bool{}
	for _, f := range []struct {
		key, want string
		into      any
	}{
		{keyAuto, "true or false", &to.AutoRetrain}, {keyInterval, "a whole number", &to.PollIntervalSeconds},
		{keyBranch, "a string", &to.WatchBranch}, {keyScope, "a string", &to.StaleScope}, {keyGate, "a string", &to.Gate},
	} {
		raw, given := body[f.key]
		// encoding/json would leave the value unchanged on null.
		if given && (string(raw) == "null" || json.Unmarshal(raw, f.into) != nil) {
			unread[f.key] = true
			bad(f.key, fmt.Sprintf("must be %s", f.want))
		}
	}
	found := to.Check()
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if !unread[key] {
			bad(key, found[key])
		}
	}
	return fault.InvalidAll(faults)
}

func toModelrepoConfig(s Settings) api.ModelrepoConfig {
	return api.ModelrepoConfig{
		AutoRetrain: s.AutoRetrain, PollIntervalSeconds: s.PollIntervalSeconds, WatchBranch: s.WatchBranch,
		StaleScope: api.ModelrepoConfigStaleScope(s.StaleScope), Gate: api.ModelrepoConfigGate(s.Gate),
	}
}
