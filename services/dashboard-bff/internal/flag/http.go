package flag

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// List serves GET /api/v1/flags.
func (f *Flags) List(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	who := caller.From(c)
	out := api.CallerFlags{Flags: make(map[string]bool, len(definitions))}
	for _, d := range definitions {
		out.Flags[d.name] = f.evaluate(who, d).enabled
	}
	return c.JSON(http.StatusOK, out)
}

// ListDefinitions serves GET /api/v1/flags/admin.
func (f *Flags) ListDefinitions(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	who := caller.From(c)
	rows, err := store.New(f.cfg.Pool).ListTenantFlagOverrides(c.Request().Context(), who.Tenant)
	if err != nil {
		return err
	}
	byName := map[string]store.ListTenantFlagOverridesRow{}
	for _, r := range rows {
		byName[r.Name] = r
	}
	out := api.AdminFlags{Flags: make([]api.AdminFlag, 0, len(definitions)), Count: len(definitions)}
	for _, d := range definitions {
		v := api.AdminFlag{
			Name: d.name, Description: d.description, Default: d.standard, Tags: append([]string{}, d.tags...),
			Targeting: api.Targeting{Tenants: append([]string{}, d.tenants...), Roles: []string{}, Percentage: d.percentage},
		}
		for _, r := range d.roles {
			v.Targeting.Roles = append(v.Targeting.Roles, string(r))
		}
		if r, ok := byName[d.name]; ok {
			at := r.UpdatedAt.UTC()
			v.Override, v.UpdatedAt, v.UpdatedBy = &r.Enabled, &at, &r.UpdatedBy
		}
		v.Effective = d.evaluate(who, v.Override).enabled
		out.Flags = append(out.Flags, v)
	}
	return c.JSON(http.StatusOK, out)
}

// Set serves POST /api/v1/flags/:name. An unknown flag is answered, by the contract, and not refused.
func (f *Flags) Set(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	name, err := input.PathParam(c, "name")
	if err != nil {
		return err
	}
	var body struct {
		Enabled *bool `json:"enabled"`
	}
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	if body.Enabled == nil {
		return input.Invalid("must be true or false", "body", "enabled")
	}
	d, known := find(name)
	if known {
		if _, err := f.set(c.Request().Context(), caller.From(c), d, body.Enabled); err != nil {
			return err
		}
	}
	return c.JSON(http.StatusOK, api.FlagChange{Updated: known, Name: name, Enabled: *body.Enabled})
}

// Clear serves DELETE /api/v1/flags/:name and answers what holds without the override.
func (f *Flags) Clear(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	name, err := input.PathParam(c, "name")
	if err != nil {
		return err
	}
	d, known := find(name)
	if !known {
		return c.JSON(http.StatusOK, api.FlagChange{Name: name})
	}
	changed, err := f.set(c.Request().Context(), caller.From(c), d, nil)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.FlagChange{Updated: changed, Name: name, Enabled: d.standard})
}

// readContext reads the body of an OpenFeature client and discards it: the credential identifies the caller, and a
// context written by the caller could claim any identity.
func readContext(c echo.Context) error {
	var body struct {
		Context map[string]any `json:"context"`
	}
	return service.DecodeOptionalJSON(c, &body, true)
}

// EvaluateAll serves POST /ofrep/v1/evaluate/flags.
func (f *Flags) EvaluateAll(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	if err := readContext(c); err != nil {
		return err
	}
	who := caller.From(c)
	out := api.OFREPFlags{Flags: make([]api.OFREPFlag, 0, len(definitions))}
	for _, name := range names() {
		d, _ := find(name)
		out.Flags = append(out.Flags, f.view(who, d))
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	c.Response().Header().Set("ETag", tag)
	for candidate := range strings.SplitSeq(c.Request().Header.Get("If-None-Match"), ",") {
		if v := strings.TrimPrefix(strings.TrimSpace(candidate), "W/"); v == "*" || v == tag {
			return c.NoContent(http.StatusNotModified)
		}
	}
	return c.JSONBlob(http.StatusOK, raw)
}

// Evaluate serves POST /ofrep/v1/evaluate/flags/:key.
func (f *Flags) Evaluate(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	if err := readContext(c); err != nil {
		return err
	}
	key, err := input.PathParam(c, "key")
	if err != nil {
		return err
	}
	d, known := find(key)
	if !known {
		code, details := "FLAG_NOT_FOUND", "There is no such flag; POST /ofrep/v1/evaluate/flags answers all."
		return c.JSON(http.StatusNotFound, api.OFREPFlag{Key: key, ErrorCode: &code, ErrorDetails: &details})
	}
	return c.JSON(http.StatusOK, f.view(caller.From(c), d))
}

// view returns a flag for who in OpenFeature's form (OFREP).
func (f *Flags) view(who caller.Caller, d definition) api.OFREPFlag {
	e := f.evaluate(who, d)
	variant := "off"
	if e.enabled {
		variant = "on"
	}
	return api.OFREPFlag{Key: d.name, Value: &e.enabled, Reason: &e.reason, Variant: &variant}
}
