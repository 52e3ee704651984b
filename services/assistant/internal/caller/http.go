package caller

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/limit"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// maxPath limits the path in an audit record, in bytes; a path can be as long as a header.
const maxPath = 512

// recordedKey marks a request whose refusal has already been recorded.
const recordedKey = "refusal recorded"

// maxMint limits the body of a request for a demo key, in bytes.
const maxMint = 16 << 10

// Who returns the caller of a request behind Middleware, as the audit log names them.
func Who(c echo.Context) event.Who {
	by, _ := FromContext(c.Request().Context())
	return event.Who{
		Principal: by.Principal, Behind: by.Behind, Role: by.Role, RequestID: service.RequestID(c.Request().Context()),
		Address: c.RealIP(), Method: c.Request().Method, Path: shortenPath(c.Request().URL.Path),
	}
}

func shortenPath(path string) string {
	if len(path) > maxPath {
		path = path[:maxPath]
	}
	return store.Text(path)
}

// MarkRecorded marks the refusal of this request as recorded in the audit log; Recorded reads the mark.
func MarkRecorded(c echo.Context) { c.Set(recordedKey, true) }

// Recorded reports whether MarkRecorded was called.
func Recorded(c echo.Context) bool { return c.Get(recordedKey) != nil }

// MintHandler creates demo keys. A key is returned only after it is recorded in the audit log.
func (c *Callers) MintHandler(db *store.Store, now func() time.Time) echo.HandlerFunc {
	return func(ec echo.Context) error { return c.serveMint(ec, db, now()) }
}

func (c *Callers) serveMint(ec echo.Context, db *store.Store, now time.Time) error {
	ctx := ec.Request().Context()
	by, _ := FromContext(ctx)
	if err := c.MayMint(by); err != nil {
		return err
	}
	if err := limit.Body(ec, maxMint); err != nil {
		return err
	}
	raw, err := service.ReadBody(ec)
	if err != nil {
		return err
	}
	made, err := c.Mint(by, raw)
	if err != nil {
		return err
	}
	w, id, expiry := Who(ec), KeyID(made.APIKey), time.Unix(made.ExpiresAt, 0).UTC()
	err = db.InTx(ctx, func(tx store.Tx) error {
		return tx.Emit(ctx, event.Facts(w, now, "demo_key_minted", "demo_key.minted", id, "key:"+id, event.OK,
			event.DemoKey{KeyID: id, Email: made.Email, ExpiresAt: expiry},
			map[string]any{"key_id": id, "email": made.Email, "expires_at": expiry, "status": http.StatusOK})...)
	})
	if err != nil {
		return err
	}
	ec.Response().Header().Set("Cache-Control", "no-store")
	return ec.JSON(http.StatusOK, made)
}
