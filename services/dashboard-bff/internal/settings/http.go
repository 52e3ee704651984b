package settings

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// Get serves GET /api/config. It reads the table itself, so that the ETag is that of the state which If-Match is
// compared with.
func (s *Settings) Get(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	rows, err := store.New(s.cfg.Pool).ListConfigValues(c.Request().Context())
	if err != nil {
		return err
	}
	return s.answer(c, rows)
}

func (s *Settings) answer(c echo.Context, rows []store.ConfigValue) error {
	entries := s.list(rows)
	out := make(api.Config, len(entries))
	for _, e := range entries {
		if out[e.key] = nil; e.value != "" {
			out[e.key] = &e.value
		}
	}
	c.Response().Header().Set("ETag", etag(entries))
	return c.JSON(http.StatusOK, out)
}

// Keys serves GET /api/config/keys.
func (s *Settings) Keys(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	rows, err := store.New(s.cfg.Pool).ListConfigValues(c.Request().Context())
	if err != nil {
		return err
	}
	entries := s.list(rows)
	out := make([]api.ConfigKey, 0, len(entries))
	for _, e := range entries {
		k := api.ConfigKey{
			Key: e.key, IsSecret: e.isSecret(), HasValue: e.value != "", Type: e.kind, Description: e.description, Source: e.source, UpdatedAt: e.at,
		}
		if e.by != "" {
			k.UpdatedBy = &e.by
		}
		out = append(out, k)
	}
	return c.JSON(http.StatusOK, out)
}

// Put serves PUT /api/config.
func (s *Settings) Put(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	who := caller.From(c)
	if !slices.Contains(s.cfg.OperatorTenants, who.Tenant) {
		return fault.OperatorTenantRequired.New("The configuration is that of all tenants; only a tenant of DASHBOARD_OPERATOR_TENANTS may change it.")
	}
	var body map[string]json.RawMessage
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	for key := range body {
		if d, ok := define(key); ok && d.isSecret() {
			if err := s.cfg.StepUp(c); err != nil {
				return err
			}
			break
		}
	}
	changes, err := s.parseChanges(body)
	if err != nil {
		return err
	}
	rows, err := s.apply(c.Request().Context(), who, changes, c.Request().Header.Get("If-Match"))
	if err != nil {
		return err
	}
	return s.answer(c, rows)
}
