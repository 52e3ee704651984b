package caller

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/limit"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// recordTime limits the time to record a refusal: the response waits for it.
const recordTime = 2 * time.Second

// AccessDeps holds what access control depends on.
type AccessDeps struct {
	Callers *Callers
	Store   *store.Store
	Rate    *limit.Rate
	Refused func(code string) // counts a refusal
	Now     func() time.Time
	Log     *slog.Logger
}

// Access decides which requests reach a handler.
type Access struct{ AccessDeps }

// NewAccess returns the access control, or an error that names the missing parts.
func NewAccess(d AccessDeps) (*Access, error) {
	if err := service.RequireParts("access", d); err != nil {
		return nil, err
	}
	return &Access{d}, nil
}

// Chain returns the middleware of every route that needs a key: key, then rate limit; keys for alerts are refused. A
// refusal for a missing key or missing rights is recorded.
func (a *Access) Chain() []echo.MiddlewareFunc {
	return append(a.chain(), refuse("This key sends alerts, and may do nothing else.", guard.Alerts))
}

// AlertChain is Chain for the route that receives alerts, to which readonly callers may not send.
func (a *Access) AlertChain() []echo.MiddlewareFunc {
	return append(a.chain(), refuse("Readonly callers send no alerts.", guard.Readonly))
}

func (a *Access) chain() []echo.MiddlewareFunc {
	return []echo.MiddlewareFunc{a.recordRefusals, a.Callers.Middleware, a.limitRate}
}

// refuse rejects the callers of a role.
func refuse(why string, role guard.Role) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if by, _ := FromContext(c.Request().Context()); by.Role == role {
				return fault.NotPermitted(why)
			}
			return next(c)
		}
	}
}

// recordRefusals counts requests without an accepted key per address, and records refused access.
func (a *Access) recordRefusals(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		if err == nil || c.Response().Committed {
			return err
		}
		p := problem.From(err)
		if p.Status() != 401 && p.Status() != 403 {
			return err
		}
		if _, known := FromContext(c.Request().Context()); !known {
			// Over the limit nothing is recorded either: guessing keys must not fill the audit log.
			if late := a.checkRate("address:" + subscriberNetwork(c.RealIP())); late != nil {
				return late
			}
		}
		if !Recorded(c) {
			a.recordRefusal(c, p)
		}
		return err
	}
}

// limitRate limits the request rate of each caller.
func (a *Access) limitRate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		by, _ := FromContext(c.Request().Context())
		if late := a.checkRate("principal:" + by.LimitKey()); late != nil {
			return late
		}
		return next(c)
	}
}

// checkRate returns the 429 for a key over its rate, or nil.
func (a *Access) checkRate(key string) error {
	wait := a.Rate.Take(key)
	if wait == 0 {
		return nil
	}
	return problem.RateLimited.New(fmt.Sprintf("More than %d requests in a minute; wait as long as Retry-After says.", a.Rate.PerMinute())).
		After(wait).WithHeader("X-RateLimit-Limit", strconv.Itoa(a.Rate.PerMinute()))
}

// subscriberNetwork returns the network of one subscriber: for IPv6 the first 64 bits, because a subscriber can vary
// the rest.
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

// recordRefusal writes the audit record. The refusal stands even if that fails.
func (a *Access) recordRefusal(c echo.Context, p *problem.Error) {
	w := Who(c)
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
	a.Refused(p.Kind.Code)
}
