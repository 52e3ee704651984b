package caller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
)

// Local is the principal of every caller while auth is off.
const Local = "local"

// Audience is the audience of delegations for this service.
const Audience = "assistant"

// Caller is a caller whose credential was accepted.
type Caller struct {
	Principal string // key id, person, or Local; the owner of sessions
	Role      guard.Role
	Via       string // the service that acts for this person; empty: the caller has its own key
	// Behind is the person on whose behalf a service calls with its own key, according to its delegation next to the key.
	// Limits count by it and facts name it; it grants nothing and owns nothing.
	Behind event.Person
}

// LimitKey returns the key for this caller's limits: the person behind it, else the principal.
func (c Caller) LimitKey() string {
	if c.Behind == (event.Person{}) {
		return c.Principal
	}
	return strings.Join([]string{c.Principal, c.Behind.Via, c.Behind.Tenant, c.Behind.Name}, "\x00")
}

// Config defines the callers.
type Config struct {
	// AdminKeys, OperatorKeys, ReadonlyKeys and AlertKeys are comma-separated lists; empty ones have no keys.
	AdminKeys, OperatorKeys, ReadonlyKeys, AlertKeys service.Secret
	// Backend is static, or hmac to accept demo keys as well; empty means static.
	Backend string
	// DemoSecret signs demo keys; without it there are none.
	DemoSecret service.Secret
	// DefaultHours and MaxHours are the default and maximum lifetime of demo keys; zero means 168 and 720.
	DefaultHours, MaxHours int
	// FourEyes refuses to start without authentication: two people must be distinguishable.
	FourEyes bool
	// Addr is the listen address; without authentication it must be loopback.
	Addr string
	// AllowedOrigins are the origins, besides the service's own, whose pages may call while authentication is off.
	AllowedOrigins []string
	// DelegationTrust is DELEGATION_TRUST_JSON; empty trusts no issuer.
	DelegationTrust service.Secret
	// Once remembers delegations that were used for a write; required with DelegationTrust.
	Once auth.Once
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

const (
	standardHours    = 168
	standardMaxHours = 720
	// mostHours keeps an expiry within the range of a clock.
	mostHours = 10 * 365 * 24
)

// Callers identifies callers. It is immutable and safe for concurrent use.
type Callers struct {
	lists      []list
	demo       *Demo // nil: no demo keys
	delegation *auth.Authenticator
	origins    []string
	open       bool
	now        func() time.Time

	defaultHours, maxHours int
	warnings               []string
}

// New reads the configuration. The error lists all configuration errors; it names entries by number and quotes no
// secret.
func New(cfg Config) (*Callers, error) {
	c := &Callers{lists: newLists(), origins: cfg.AllowedOrigins, now: cfg.Now}
	if c.now == nil {
		c.now = time.Now
	}
	var faults []error
	keys := 0
	for i, text := range []service.Secret{cfg.AdminKeys, cfg.OperatorKeys, cfg.ReadonlyKeys, cfg.AlertKeys} {
		bad, warnings := c.lists[i].read(text.Reveal())
		faults = append(faults, bad...)
		c.warnings = append(c.warnings, warnings...)
		keys += len(c.lists[i].digests)
	}
	faults = append(faults, c.readDemo(cfg)...)
	if cfg.DelegationTrust.Reveal() != "" {
		c.delegation = auth.Load("", "", roles).WithDelegation(auth.Delegation{
			Audience: Audience, Trust: cfg.DelegationTrust.Reveal(), Once: cfg.Once, Now: c.now,
		})
		if err := c.delegation.DelegationState(); err != nil {
			faults = append(faults, fmt.Errorf("DELEGATION_TRUST_JSON: %w", err))
		}
		if cfg.Once == nil {
			faults = append(faults, errors.New("DELEGATION_TRUST_JSON: there is nowhere to remember the delegations that were used"))
		}
	}
	c.open = keys == 0 && c.demo == nil && c.delegation == nil
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if c.open && cfg.FourEyes {
		faults = append(faults, errors.New("ASSISTANT_APPROVAL_POLICY=four-eyes needs keys: without them all callers are one"))
	}
	if err := service.RequireLoopbackIfOpen(cfg.Addr, !c.open); err != nil {
		faults = append(faults, err)
	}
	return c, errors.Join(faults...)
}

func (c *Callers) readDemo(cfg Config) (faults []error) {
	c.defaultHours, c.maxHours = cmp.Or(cfg.DefaultHours, standardHours), cmp.Or(cfg.MaxHours, standardMaxHours)
	if c.maxHours < 1 || c.maxHours > mostHours {
		faults = append(faults, fmt.Errorf("DEMO_KEY_MAX_TTL_HOURS must be 1 to %d", mostHours))
	}
	if c.defaultHours < 1 || c.defaultHours > c.maxHours {
		faults = append(faults, errors.New("DEMO_KEY_DEFAULT_TTL_HOURS must be at least 1 and at most DEMO_KEY_MAX_TTL_HOURS"))
	}
	secret := cfg.DemoSecret.Reveal()
	switch cmp.Or(cfg.Backend, "static") {
	case "static":
		return faults
	case "hmac":
	default:
		return append(faults, errors.New("AUTH_BACKEND must be static or hmac"))
	}
	if auth.Placeholder(secret) {
		return append(faults, errors.New("DEMO_KEY_HMAC_SECRET is a placeholder; set a random value"))
	}
	if secret == "" {
		c.warnings = append(c.warnings, "AUTH_BACKEND is hmac, but DEMO_KEY_HMAC_SECRET is not set: there are no demo keys")
		return faults
	}
	if len(secret) < shortKey {
		c.warnings = append(c.warnings, fmt.Sprintf("DEMO_KEY_HMAC_SECRET has %d characters; use at least %d", len(secret), shortKey))
	}
	if len(c.lists[0].digests) == 0 {
		c.warnings = append(c.warnings, "DEMO_KEY_HMAC_SECRET is set without an admin key: auth is on, but no key can mint demo keys")
	}
	c.demo = &Demo{secret: []byte(secret), now: c.now}
	return faults
}

// Warnings returns warnings about the configuration for the operator. They contain no secret.
func (c *Callers) Warnings() []string { return c.warnings }

// Identify returns the caller with a key. The error is a problem: 401.
func (c *Callers) Identify(key string) (Caller, error) {
	role := guard.Role("")
	for i := range c.lists {
		if l := &c.lists[i]; strings.HasPrefix(key, l.prefix) && l.has(key) {
			role = l.role
		}
	}
	if role == "" && c.demo != nil && c.demo.Valid(key) {
		role = guard.Readonly
	}
	if role == "" {
		return Caller{}, fault.BadKey("This key is not known here, or has expired.")
	}
	return Caller{Principal: KeyID(key), Role: role}, nil
}

// bearerKey returns the key of an Authorization header; the scheme is not case-sensitive.
func bearerKey(h http.Header) (string, error) {
	values := h.Values("Authorization")
	if len(values) == 0 {
		return "", fault.NoKey("Send a key in the header Authorization: Bearer <key>.")
	}
	if len(values) > 1 { // ambiguous, so none is accepted
		return "", fault.BadKey("Send one Authorization header.")
	}
	scheme, key, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	key = strings.TrimSpace(key)
	switch {
	case !strings.EqualFold(scheme, "Bearer"), key == "":
		return "", fault.NoKey("Send the key as Authorization: Bearer <key>.")
	case !isVisibleASCII(key):
		return "", fault.BadKey("This is no key: it has blanks or characters that a key cannot have.")
	}
	return key, nil
}

type contextKey struct{}

// WithCaller returns a context that carries the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// FromContext returns the caller; false outside of routes behind the Middleware.
func FromContext(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(contextKey{}).(Caller)
	return c, ok
}
