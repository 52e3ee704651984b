package wire

import (
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/auth"
)

// CallerTenant returns the caller's tenant.
func CallerTenant(c echo.Context) string {
	p, _ := auth.FromContext(c.Request().Context())
	return p.Tenant
}
