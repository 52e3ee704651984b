package route

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// recordTime limits the writing of one refusal: its answer waits for it.
const recordTime = 2 * time.Second

// watch counts requests without an accepted key against their address, and records refused access.
func (a *API) watch(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		if err == nil || c.Response().Committed {
			return err
		}
		p := problem.From(err)
		if p.Status() != 401 && p.Status() != 403 {
			return err
		}
		if _, known := caller.FromContext(c.Request().Context()); !known {
			// Over the limit nothing is recorded either: whoever guesses keys must not fill the ledger.
			if late := a.late("address:" + subscriberNetwork(c.RealIP())); late != nil {
				return late
			}
		}
		if !caller.Recorded(c) {
			a.recordRefusal(c, p)
		}
		return err
	}
}

// limited limits how often a caller may ask.
func (a *API) limited(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		by, _ := caller.FromContext(c.Request().Context())
		if late := a.late("principal:" + by.Principal); late != nil {
			return late
		}
		return next(c)
	}
}

// late is the 429 of a key that has used up its rate, or nil.
func (a *API) late(key string) error {
	wait := a.Rate.Take(key)
	if wait == 0 {
		return nil
	}
	return problem.RateLimited.New(fmt.Sprintf("More than %d requests in a minute; wait as long as Retry-After says.", a.Rate.PerMinute())).
		After(wait).WithHeader("X-RateLimit-Limit", strconv.Itoa(a.Rate.PerMinute()))
}

// subscriberNetwork is the address that one subscriber has: of IPv6 the first 64 bits, since the rest is theirs to vary.
func subscriberNetwork(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return "unknown"
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return "unknown"
	}
	return prefix.String()
}

// recordRefusal tells the ledger. The refusal stands whether or not that succeeds.
func (a *API) recordRefusal(c echo.Context, p *problem.Error) {
	w := caller.Who(c)
	if w.Principal == "" {
		w.Principal = "anonymous"
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), recordTime)
	defer cancel()
	now := a.Now()
	err := a.Store.InTx(ctx, func(tx store.Tx) error {
		return tx.Emit(ctx, event.Facts(w, now, "access_denied", "access.denied", w.Principal, "route:"+c.Path(), event.Denied,
			event.Access{Method: w.Method, Path: w.Path, Status: p.Status(), Code: p.Kind.Code, Address: w.Address},
			map[string]any{"status": p.Status(), "code": p.Kind.Code})...)
	})
	if err != nil {
		a.Log.WarnContext(ctx, "a refusal could not be recorded", slog.Any("err", err))
	}
	a.Metrics.Refused(p.Kind.Code)
}
