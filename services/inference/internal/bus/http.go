package bus

import (
	"cmp"
	"net/http"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/busbridge"
	"github.com/mlp-platform/platform/libs/service"
)

// Health is GET /health: 503 while the bridge is not connected to the bus.
func (b *Bridge) Health(c echo.Context) error {
	h := api.Health{Status: api.Ok, Mode: api.Mode(b.cfg.Mode), Connected: b.cfg.Conn.IsConnected(), Models: b.models.size()}
	code := http.StatusOK
	switch {
	case !h.Connected:
		h.Status, code = api.Down, http.StatusServiceUnavailable
	case b.models.lastFault() != "" || b.models.models.Load() == nil:
		h.Status = api.Degraded
	}
	return c.JSON(code, h)
}

// Stats is GET /stats.
func (b *Bridge) Stats(c echo.Context) error {
	s := b.stats.snapshot()
	s.Mode = api.Mode(b.cfg.Mode)
	if fault := cmp.Or(b.connectionFault(), b.models.lastFault()); fault != "" {
		s.BridgeError = &fault
	}
	return c.JSON(http.StatusOK, s)
}

// connectionFault returns why messages do not reach the bridge; empty if they do.
func (b *Bridge) connectionFault() string {
	switch {
	case b.cfg.Conn.IsConnected():
		return ""
	case b.cfg.Conn.LastError() != nil:
		return "not connected to the bus: " + b.cfg.Conn.LastError().Error()
	}
	return "not connected to the bus"
}

// CheckModels is the readiness of the directory: a bridge that has never read it cannot resolve UUIDs.
func (b *Bridge) CheckModels() service.Check {
	switch fault := b.models.lastFault(); {
	case b.models.models.Load() == nil && fault == "":
		return service.Check{Status: service.Fail, Detail: "the models on the bus are being read"}
	case b.models.models.Load() == nil:
		return service.Check{Status: service.Fail, Detail: fault}
	case fault != "":
		return service.Check{Status: service.Warn, Detail: fault}
	}
	return service.Check{Status: service.OK}
}
