package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service/listener"
)

// The answers of this package.
var (
	Misconfigured     = problem.Kind{Code: "auth_misconfigured", Status: http.StatusServiceUnavailable, Title: "Credentials misconfigured"}
	NotConfigured     = problem.Kind{Code: "auth_not_configured", Status: http.StatusServiceUnavailable, Title: "No credentials configured"}
	MissingCredential = problem.Kind{Code: "missing_credential", Status: http.StatusUnauthorized, Title: "Credential required"}
	InvalidCredential = problem.Kind{Code: "invalid_credential", Status: http.StatusUnauthorized, Title: "Credential not valid"}
	InsufficientScope = problem.Kind{Code: "insufficient_scope", Status: http.StatusForbidden, Title: "Scope missing"}
)

// LegacyPrincipal and LegacyTenant identify the holder of the one legacy token.
const (
	LegacyPrincipal = "legacy"
	LegacyTenant    = "default"
)

// PlatformTenant is that of the platform's own services, such as inference at the control plane: they see what belongs
// to the models of every tenant.
const PlatformTenant = "platform"

// Principal is a caller whose credential was accepted.
type Principal struct {
	Name   string
	Tenant string
	Scopes []string // with everything they imply, sorted
	Legacy bool     // came by the legacy token: operator-wide
	Via    string   // the service that acts for this person; empty: by a credential of their own

	unsettled error // why scopes may be missing that the caller holds; nil: none are
}

// Has reports whether the principal holds the scope, directly or by implication.
func (p Principal) Has(scope string) bool { return slices.Contains(p.Scopes, scope) }

// Rules are the scopes a service knows.
type Rules struct {
	// Scopes maps each scope to those it implies; every known scope is a key.
	// The legacy token holds them all.
	Scopes map[string][]string
	// Reads are the scopes whose routes change nothing, whatever their method: a delegation may be reused for them.
	Reads []string
}

// expand adds the implied scopes; an unknown scope is an error.
func (r Rules) expand(scopes []string) ([]string, error) {
	var out []string
	queue := slices.Clone(scopes)
	for len(queue) > 0 {
		scope := queue[0]
		queue = queue[1:]
		if slices.Contains(out, scope) {
			continue
		}
		implied, known := r.Scopes[scope]
		if !known {
			return nil, fmt.Errorf("unknown scope %q", scope)
		}
		out = append(out, scope)
		queue = append(queue, implied...)
	}
	slices.Sort(out)
	return out, nil
}

type digest = [sha256.Size]byte

type credential struct {
	digest    digest
	principal Principal
}

// Authenticator knows the credentials of one service. It does not change after
// Load and is safe for concurrent use.
type Authenticator struct {
	rules        Rules
	credentials  []credential
	delegation   *delegation                        // nil: none is trusted
	fault        error                              // why no bearer is accepted
	limit        func(Principal) (Principal, error) // nil: callers have the scopes of their credentials
	placeholders []string
	warnings     []string
}

// Load reads the legacy token and the credential map; both may be empty. It never fails: State and every answer report
// a fault, so that health stays readable while credentials are repaired.
func Load(legacy, credentialsJSON string, rules Rules) *Authenticator {
	a := &Authenticator{rules: rules}
	if legacy != "" {
		scopes, err := rules.expand(slices.Collect(maps.Keys(rules.Scopes)))
		if err != nil {
			a.fault = fmt.Errorf("legacy token: %w", err)
			return a
		}
		a.add(legacy, "the legacy token", Principal{Name: LegacyPrincipal, Tenant: LegacyTenant, Scopes: scopes, Legacy: true})
	}
	if strings.TrimSpace(credentialsJSON) == "" {
		return a
	}
	entries, err := parseCredentials(credentialsJSON)
	if err == nil {
		err = checkNames(entries)
	}
	if err != nil {
		a.fault = err
		return a
	}
	for i, e := range entries {
		where := fmt.Sprintf("entry %d", i+1)
		scopes, err := rules.expand(e.scopes)
		if err != nil {
			a.fault = fmt.Errorf("%s (%s): %w", where, e.principal, err)
			return a
		}
		if legacy != "" && e.secret == legacy {
			a.fault = fmt.Errorf("%s (%s) reuses the legacy token", where, e.principal)
			return a
		}
		a.add(e.secret, fmt.Sprintf("the secret of %s (%s)", e.principal, where),
			Principal{Name: e.principal, Tenant: e.tenant, Scopes: scopes})
	}
	return a
}

// WithSystem is the authenticator that also knows the platform's own components, named system:…, by a map of the
// same layout. Only a process that runs several services itself has one; no environment variable holds it. A fault
// is the caller's error.
func (a *Authenticator) WithSystem(credentialsJSON string) (*Authenticator, error) {
	with := *a
	if credentialsJSON == "" || a.fault != nil {
		return &with, nil
	}
	entries, err := parseCredentials(credentialsJSON)
	if err != nil {
		return nil, err
	}
	with.credentials, with.placeholders, with.warnings = slices.Clone(a.credentials), slices.Clone(a.placeholders), slices.Clone(a.warnings)
	for i, e := range entries {
		if !System(e.principal) {
			return nil, fmt.Errorf("entry %d: %q is no component of the platform", i+1, e.principal)
		}
		scopes, err := a.rules.expand(e.scopes)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		with.add(e.secret, "the secret of "+e.principal, Principal{Name: e.principal, Tenant: e.tenant, Scopes: scopes})
	}
	return &with, nil
}

// shortSecret is the length below which Warnings names a secret.
const shortSecret = 16

func (a *Authenticator) add(secret, name string, p Principal) {
	if Placeholder(secret) {
		a.placeholders = append(a.placeholders, name)
	}
	if len(secret) < shortSecret {
		a.warnings = append(a.warnings, fmt.Sprintf("%s has %d characters; use at least %d", name, len(secret), shortSecret))
	}
	a.credentials = append(a.credentials, credential{sha256.Sum256([]byte(secret)), p})
}

// Configured reports whether any credential was given, or any delegation is taken,
// be it faulty.
func (a *Authenticator) Configured() bool {
	return a.fault != nil || len(a.credentials) > 0 || a.delegation != nil
}

// State is the fault for which every bearer is refused, or nil.
func (a *Authenticator) State() error {
	if a.fault == nil {
		return nil
	}
	return fmt.Errorf("credentials: %w", a.fault)
}

// Warnings name weak secrets by their principal.
func (a *Authenticator) Warnings() []string { return a.warnings }

// CheckPlaceholders is an error when a secret is one that documentation uses; a
// service must not start then.
func (a *Authenticator) CheckPlaceholders() error {
	if len(a.placeholders) == 0 {
		return nil
	}
	return fmt.Errorf("%s: a placeholder; set a random value of at least %d characters", strings.Join(a.placeholders, ", "), shortSecret)
}

// Authenticate reads the value of an Authorization header. The error is a
// problem of this package. It does not spend a delegation; Require does.
func (a *Authenticator) Authenticate(header string) (Principal, error) {
	p, _, err := a.identify(header)
	return p, err
}

// WithLimit returns an authenticator that reduces each caller's scopes by limit. Its error answers a caller who lacks a
// scope: it is not yet known whether they hold it.
func (a *Authenticator) WithLimit(limit func(Principal) (Principal, error)) *Authenticator {
	with := *a
	with.limit = limit
	return &with
}

// Grants returns the scopes of each principal with a credential, and those that each issuer of delegations may pass on,
// with everything they imply. The legacy token is left out: it holds them all.
func (a *Authenticator) Grants() (principals, issuers map[string][]string) {
	principals, issuers = map[string][]string{}, map[string][]string{}
	for _, c := range a.credentials {
		if p := c.principal; !p.Legacy && !System(p.Name) {
			merged := append(slices.Clone(principals[p.Name]), p.Scopes...)
			slices.Sort(merged)
			principals[p.Name] = slices.Compact(merged)
		}
	}
	if a.delegation != nil {
		for name, is := range a.delegation.issuers {
			issuers[name] = slices.Clone(is.scopes)
		}
	}
	return principals, issuers
}

// identify also returns the claims, if the bearer is a delegation.
func (a *Authenticator) identify(header string) (Principal, *claims, error) {
	p, c, err := a.recognize(header)
	if err == nil && a.limit != nil {
		var unsettled error
		p, unsettled = a.limit(p)
		p.unsettled = unsettled
	}
	return p, c, err
}

// recognize is identify before anything is withheld.
func (a *Authenticator) recognize(header string) (Principal, *claims, error) {
	switch {
	case a.fault != nil:
		return Principal{}, nil, Misconfigured.New("The service's credentials are faulty, so it accepts none; its operator finds the reason in its health and log.").
			WithCause(a.State())
	case !a.Configured():
		return Principal{}, nil, NotConfigured.New("The service has no credentials, so this route is closed; its operator must configure them.")
	}
	secret, ok := parseBearer(header)
	if !ok {
		return Principal{}, nil, MissingCredential.New("Send the header Authorization: Bearer <secret>.").WithHeader("WWW-Authenticate", "Bearer")
	}
	sum := sha256.Sum256([]byte(secret))
	// Digests are compared with all credentials, in constant time each, so that the time reveals neither how much of a
	// secret is right nor which one matched.
	found := -1
	for i := range a.credentials {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], a.credentials[i].digest[:]), i, found)
	}
	if found >= 0 {
		return a.credentials[found].principal, nil, nil
	}
	if d := a.delegation; d != nil && looksDelegated(secret) {
		if d.fault != nil {
			return Principal{}, nil, Misconfigured.New("The service's list of trusted issuers is faulty, so it accepts no delegation; its operator finds the reason in its health and log.").
				WithCause(a.DelegationState())
		}
		p, c, err := d.verify(secret, a.rules)
		if err != nil {
			return Principal{}, nil, invalidCredential("This delegation is not valid here: it is expired, made for another service, or not by an issuer that may make it.").
				WithCause(fmt.Errorf("delegation: %w", err))
		}
		return p, c, nil
	}
	return Principal{}, nil, invalidCredential("This bearer secret is not known here.")
}

func invalidCredential(why string) *problem.Error {
	return InvalidCredential.New(why).WithHeader("WWW-Authenticate", "Bearer")
}

// parseBearer extracts the token of RFC 6750 section 2.1; the scheme ignores case (RFC 9110 section 11.1).
func parseBearer(header string) (string, bool) {
	scheme, token, ok := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// Require admits a request whose bearer holds the scope, or one of the others, and puts the principal into its context.
func (a *Authenticator) Require(scope string, or ...string) echo.MiddlewareFunc {
	scopes := append([]string{scope}, or...)
	needed := strings.Join(scopes, " or ")
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := c.Request()
			header := ""
			switch values := r.Header["Authorization"]; len(values) {
			case 0:
			case 1:
				header = values[0]
			default: // ambiguous, so none is used
				return invalidCredential("Send one Authorization header.")
			}
			p, claims, err := a.identify(header)
			if err != nil {
				return err
			}
			listener.Keep(r.Context(), p.Tenant+"/"+p.Name)
			c.SetRequest(r.WithContext(WithPrincipal(r.Context(), p)))
			if !slices.ContainsFunc(scopes, p.Has) {
				if p.unsettled != nil {
					return p.unsettled
				}
				return InsufficientScope.New(fmt.Sprintf("This route needs the scope %s; %s holds %s.", needed, p.Name, joinScopes(p.Scopes))).
					With(map[string]any{"required_scope": needed})
			}
			if claims != nil && !isSafeMethod(r.Method) && !slices.Contains(a.rules.Reads, scope) {
				if err := a.delegation.spend(r.Context(), claims); err != nil {
					return err
				}
			}
			return next(c)
		}
	}
}

// isSafeMethod methods change nothing (RFC 9110 section 9.2.1).
func isSafeMethod(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

func joinScopes(scopes []string) string {
	if len(scopes) == 0 {
		return "none"
	}
	return strings.Join(scopes, ", ")
}

type contextKey struct{}

// FromContext is the principal that Require found.
func FromContext(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(contextKey{}).(*Principal)
	if !ok {
		return Principal{}, false
	}
	return *p, true
}

// WithPrincipal returns a context that carries p.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, &p)
}
