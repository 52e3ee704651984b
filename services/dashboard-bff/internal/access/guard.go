// Package access decides who may send a request. A guard makes the checks of all routes in one order: limits of the
// sender's address, credential, proof that the dashboard's own page sent it, role, tenant, limits of the person,
// step-up. Nothing of the request has had any effect before the last one passed.
package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/listener"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

// Config of New.
type Config struct {
	Tokens     *session.Tokens
	Sessions   *session.Manager
	Federation Federation `part:"optional"` // nil: no identity provider
	Limits     *Limits
	Pool       *pgxpool.Pool // for audit facts
	Log        *slog.Logger
	Registry   prometheus.Registerer
	Now        func() time.Time

	// PublicURL is the origin that browsers use. TrustedProxies are the addresses and prefixes whose X-Forwarded-For
	// is believed.
	PublicURL      string
	TrustedProxies []string
	// OperatorTenants may write what all tenants share.
	OperatorTenants []string
	// StepUpActions are the actions that need a step-up. EnforceStepUp asks it of password sessions as well, whose
	// login then may be StepUpMaxAge old.
	StepUpActions []string
	EnforceStepUp bool
	StepUpMaxAge  time.Duration
}

// Guard makes the checks. It is safe for concurrent use.
type Guard struct {
	cfg       Config
	public    *url.URL // nil: the request's own origin
	proxies   proxies
	operators map[string]bool
	stepUp    map[string]bool
	refusals  *localLimits // bounds the audit facts of refusals
	metrics   metrics
}

// New refuses a missing part, a public URL or a proxy that cannot be read, and an unknown step-up action.
func New(cfg Config) (*Guard, error) {
	if err := service.RequireParts("access.Guard", cfg); err != nil {
		return nil, err
	}
	g := &Guard{cfg: cfg, operators: setOf(cfg.OperatorTenants), stepUp: setOf(cfg.StepUpActions), refusals: newLocalLimits(cfg.Now)}
	var err error
	if g.proxies, err = parseProxies(cfg.TrustedProxies); err != nil {
		return nil, err
	}
	if cfg.PublicURL != "" {
		if g.public, err = url.Parse(cfg.PublicURL); err != nil || g.public.Host == "" {
			return nil, fmt.Errorf("DASHBOARD_PUBLIC_URL %q is no URL of an origin", cfg.PublicURL)
		}
	}
	if err := CheckStepUpActions(cfg.StepUpActions); err != nil {
		return nil, err
	}
	g.metrics = newMetrics(cfg.Registry)
	return g, nil
}

func setOf(list []string) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, v := range list {
		out[v] = true
	}
	return out
}

// rules are a route's requirements beyond a role.
type rules struct {
	role     caller.Role
	bucket   Bucket
	operator func(echo.Context) bool
	stepUps  []func(echo.Context) (actions []string)
}

// Option adds a check to a route.
type Option func(*rules)

// Limit counts the route's requests in a bucket. Without it, requests that may change something count as Writes.
func Limit(b Bucket) Option { return func(r *rules) { r.bucket = b } }

// StepUp requires a step-up if the action is a sensitive one.
func StepUp(action string) Option {
	return StepUpAll(func(echo.Context) []string { return []string{action} })
}

// StepUpAll is StepUp for routes whose actions depend on the request; all of them must be met. fn must leave the
// body readable.
func StepUpAll(fn func(echo.Context) (actions []string)) Option {
	return func(r *rules) { r.stepUps = append(r.stepUps, fn) }
}

// OperatorTenant lets only callers of the tenants pass that may change what all share.
func OperatorTenant() Option { return OperatorTenantIf(func(echo.Context) bool { return true }) }

// OperatorTenantIf is OperatorTenant for requests that fn selects.
func OperatorTenantIf(fn func(echo.Context) bool) Option {
	return func(r *rules) { r.operator = fn }
}

// Public limits a route that needs no credential by the sender's address.
func (g *Guard) Public(b Bucket) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if b == Login && !isJSON(c.Request()) {
				return next(c) // refused for its form, and not counted: a page of another site can make a browser send such a request
			}
			err := g.cfg.Limits.checkAddress(c.Request().Context(), b, g.Address(c.Request()))
			if g.metrics.count(err); err != nil {
				return err
			}
			return next(c)
		}
	}
}

// isJSON reports whether a request declares a JSON body, which a browser sends to another site only with that site's
// consent (CORS).
func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// Require admits callers with a role, checked in the order of the package comment, and stores them for caller.From.
func (g *Guard) Require(role caller.Role, opts ...Option) echo.MiddlewareFunc {
	r := rules{role: role}
	for _, o := range opts {
		o(&r)
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := g.check(c, r); err != nil {
				return err
			}
			return next(c)
		}
	}
}

func (g *Guard) check(c echo.Context, r rules) (err error) {
	defer func() { g.metrics.count(err) }()
	ctx := c.Request().Context()
	if r.bucket.perAddress() {
		if err := g.cfg.Limits.checkAddress(ctx, r.bucket, g.Address(c.Request())); err != nil {
			return err
		}
	}
	who, byCookie, err := g.identify(c)
	if err != nil {
		return err
	}
	listener.Keep(ctx, who.Tenant+"/"+who.Subject)
	if byCookie && !isSafe(c.Request().Method) && !g.provesOwnPage(c.Request()) {
		return refuseForgery()
	}
	if !who.Role.Covers(r.role) {
		return g.refuse(c, who, "", roleRequired(who, r.role))
	}
	if r.operator != nil && !g.operators[who.Tenant] && r.operator(c) {
		return g.refuse(c, who, "", operatorTenantRequired(who))
	}
	bucket := r.bucket
	if bucket == "" && !isSafe(c.Request().Method) {
		bucket = Writes
	}
	if bucket != "" && !bucket.perAddress() {
		if err := g.cfg.Limits.checkPrincipal(ctx, bucket, who); err != nil {
			return err
		}
	}
	for _, stepUp := range r.stepUps {
		for _, action := range stepUp(c) {
			if err := g.CheckStepUp(who, action); err != nil {
				return g.refuse(c, who, action, err)
			}
		}
	}
	caller.Set(c, who)
	return nil
}

// isSafe reports whether the method is one of the served safe methods of RFC 9110 section 9.2.1.
func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// federated reports whether any identity provider is configured.
func (g *Guard) federated() bool { return g.cfg.Federation != nil && g.cfg.Federation.Enabled() }

// credentialKey finds in a request's context what Watch judges again.
type credentialKey struct{}

// credential is the part of a caller's credential that can be revoked before it expires.
type credential struct {
	data         session.Data // of a browser session
	bearer, hint string       // of an identity provider
}

func withCredential(ctx context.Context, one credential) context.Context {
	return context.WithValue(ctx, credentialKey{}, one)
}

func credentialOf(ctx context.Context) (credential, bool) {
	one, ok := ctx.Value(credentialKey{}).(credential)
	return one, ok
}

var errNoCredential = errors.New("the request carries no credential")
