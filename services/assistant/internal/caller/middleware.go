package caller

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service/listener"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
)

// roles are the scopes of delegations: each role includes the lesser ones.
var roles = auth.Rules{Scopes: map[string][]string{
	string(guard.Admin):    {string(guard.Operator)},
	string(guard.Operator): {string(guard.Readonly)},
	string(guard.Readonly): nil,
}}

// Middleware admits requests of known callers, and stores the caller in the context, where logs find the principal.
// Mount it on routes: a path without a route must return 404 to all callers.
func (c *Callers) Middleware(next echo.HandlerFunc) echo.HandlerFunc {
	delegated := c.delegated(next)
	return func(ec echo.Context) error {
		r := ec.Request()
		if c.open {
			if err := c.localOnly(r); err != nil {
				return err
			}
			return callNext(ec, Caller{Principal: Local, Role: guard.Admin}, next)
		}
		key, err := bearerKey(r.Header)
		if err != nil {
			return err
		}
		if delegated != nil && !strings.HasPrefix(key, keyPrefix) {
			return delegated(ec)
		}
		who, err := c.Identify(key)
		if err != nil {
			return err
		}
		listener.Keep(r.Context(), who.Principal)
		who.Behind = c.personBehind(r.Header.Get(onBehalfOf))
		return callNext(ec, who, next)
	}
}

// onBehalfOf is the header in which a service that calls with its own key names, by a delegation, the person it calls
// for: without it, all people behind the service would share the limits of one key, and the ledger would know only the
// key.
const onBehalfOf = "X-PLATFORM-On-Behalf-Of"

// personBehind returns the person named by a delegation, with the issuer; empty for an invalid one, whose sender is
// then counted by the key. The delegation is not consumed, since it permits nothing.
func (c *Callers) personBehind(delegation string) event.Person {
	if delegation == "" || c.delegation == nil {
		return event.Person{}
	}
	p, err := c.delegation.Authenticate("Bearer " + delegation)
	if err != nil {
		return event.Person{}
	}
	return event.Person{Name: p.Name, Tenant: p.Tenant, Via: p.Via}
}

func callNext(ec echo.Context, who Caller, next echo.HandlerFunc) error {
	r := ec.Request()
	ctx := WithCaller(r.Context(), who)
	if _, known := auth.FromContext(ctx); !known {
		ctx = auth.WithPrincipal(ctx, auth.Principal{Name: who.Principal})
	}
	ec.SetRequest(r.WithContext(ctx))
	return next(ec)
}

// delegated accepts delegations; nil if none is trusted. libs/auth consumes each token at the first request that may
// change something.
func (c *Callers) delegated(next echo.HandlerFunc) echo.HandlerFunc {
	if c.delegation == nil {
		return nil
	}
	accepted := c.delegation.Require(string(guard.Readonly))(func(ec echo.Context) error {
		p, _ := auth.FromContext(ec.Request().Context())
		if isReservedName(p.Name) {
			return passed{fault.BadKey("This delegation is for a name that no person can have here.")}
		}
		who := Caller{Principal: p.Name, Role: guard.Readonly, Via: p.Via}
		for _, role := range []guard.Role{guard.Operator, guard.Admin} {
			if p.Has(string(role)) {
				who.Role = role
			}
		}
		// next's own errors must not be taken for those of the delegation.
		if err := callNext(ec, who, next); err != nil {
			return passed{err}
		}
		return nil
	})
	return func(ec echo.Context) error {
		err := accepted(ec)
		if p, ok := err.(passed); ok {
			return p.error
		}
		return translateRefusal(err)
	}
}

// isReservedName reports whether a name is the principal of a caller without a person: a key's id, or the principal
// with auth off. A person with that name would own that caller's sessions.
func isReservedName(name string) bool {
	return keyID.MatchString(name) || strings.EqualFold(name, Local) || strings.EqualFold(name, "anonymous")
}

// passed marks an error that came from the next handler.
type passed struct{ error }

// translateRefusal maps the refusals of libs/auth to the assistant's codes; its 503 answers stay.
func translateRefusal(err error) error {
	if err == nil {
		return nil
	}
	p := problem.From(err)
	switch {
	case auth.InvalidCredential.Has(err), auth.MissingCredential.Has(err):
		return fault.BadKey(p.Detail).WithCause(err)
	case auth.InsufficientScope.Has(err):
		return fault.NotPermitted("This delegation names no role: its scopes must have one of admin, operator and readonly.").WithCause(err)
	}
	return err
}

// localOnly refuses web pages while authentication is off: a page that reached the address by DNS rebinding has its own
// name in Host, and one of another site has its own in Origin.
func (c *Callers) localOnly(r *http.Request) error {
	if !loopbackHost(r.Host) {
		return fault.Forbidden.New("Without keys the assistant answers on localhost only: call it as 127.0.0.1 or localhost, or configure keys.")
	}
	origins := r.Header.Values("Origin")
	switch {
	case len(origins) == 0:
		return nil
	case len(origins) == 1 && (ownOrigin(origins[0], r.Host) || slices.ContainsFunc(c.origins, func(o string) bool { return strings.EqualFold(o, origins[0]) })):
		return nil
	}
	return fault.Forbidden.New("Pages of this origin may not call the assistant while it has no keys; ASSISTANT_ALLOWED_ORIGINS names those that may.")
}

func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") || ip != nil && ip.IsLoopback()
}

func ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && strings.EqualFold(u.Host, host)
}
