package access

import (
	"strings"

	"github.com/labstack/echo/v4"
)

// policy allows the UI's own files only: no inline script or style, nothing from elsewhere, no frame around it.
const policy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// permissions switches off browser features that a page of numbers does not need.
const permissions = "accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), " +
	"magnetometer=(), microphone=(), midi=(), payment=(), picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), usb=(), xr-spatial-tracking=()"

// AddHeaders sets the security headers of every response. Handlers may replace those of their own pages, as the API
// references do. publicURL determines whether browsers use https.
func AddHeaders(e *echo.Echo, publicURL string) {
	https := strings.HasPrefix(strings.ToLower(publicURL), "https://")
	// Before routing: these are on answers too that the server gives before any other middleware runs.
	e.Pre(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			h := c.Response().Header()
			h.Set("Cross-Origin-Opener-Policy", "same-origin")
			h.Set("Cross-Origin-Resource-Policy", "same-origin")
			h.Set("Permissions-Policy", permissions)
			if https {
				h.Set("Strict-Transport-Security", "max-age=31536000")
			}
			return next(c)
		}
	})
	// After the server's own, whose stricter values would leave no page working.
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			h := c.Response().Header()
			h.Set("Content-Security-Policy", policy)
			if path := c.Request().URL.Path; strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/ofrep/") {
				h.Set("Cache-Control", "private, no-cache")
			}
			return next(c)
		}
	})
}

// NoStore marks answers that hold a token: no cache may keep them.
func NoStore(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set("Cache-Control", "no-store")
		return next(c)
	}
}
