// Package upstream calls the services behind the dashboard on behalf of the caller.
package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

// ErrNotConfigured means that the service has no address.
var ErrNotConfigured = errors.New("no address is configured for this service")

// Service is a service behind the dashboard, as the contract calls it.
type Service string

// The services. Those up to ControlPlane can be proxied.
const (
	Tracker          Service = "tracker"
	Orchestrator     Service = "orchestrator"
	Serving          Service = "serving"
	ServingDashboard Service = "serving_dashboard"
	MetricsStore     Service = "metrics_store"
	Dashboards       Service = "dashboards"
	ControlPlane     Service = "control_plane"
	Bus              Service = "bus"
	Assistant        Service = "assistant"
)

// Settings are the current values of the configuration keys, such as tracker_url.
type Settings interface {
	// Value is the stored value of a key, else that of the environment; empty without either. It answers from
	// memory and may be called at once from many goroutines.
	Value(key string) string
}

// Clients make calls to the services.
type Clients struct {
	settings  Settings
	assistant string
	delegator *auth.Delegator // nil: the configured tokens are used
	serving   service.Secret
	tokens    map[Service]Token
	local     string // the tenant that the configured tokens act for; empty: any
	audit     AuditFunc
	reads     readLog
	http      http.RoundTripper
}

// Config of New; only Settings is required.
type Config struct {
	Settings     Settings
	AssistantURL string
	Delegator    *auth.Delegator
	ServingToken service.Secret
	// LocalTenant is the one tenant that control_plane_token and ServingToken may act for; empty: any.
	LocalTenant string
	// Tokens are the credentials of services that know no callers.
	Tokens map[Service]Token
	// Audit records who used a configured token. Without it no delegation is replaced by a token.
	Audit AuditFunc
}

// Token is a credential together with the one address that it is sent to: an address that is stored later must not
// receive the secret of this one.
type Token struct {
	Address string
	Secret  service.Secret
}

// New returns clients that read addresses from settings at each call.
func New(cfg Config) (*Clients, error) {
	if cfg.Settings == nil {
		return nil, errors.New("upstream: Settings is missing")
	}
	return &Clients{
		settings: cfg.Settings, assistant: strings.TrimSuffix(cfg.AssistantURL, "/"), delegator: cfg.Delegator, serving: cfg.ServingToken,
		local: cfg.LocalTenant, tokens: cfg.Tokens, audit: cfg.Audit, http: service.HTTPClient(0).Transport,
	}, nil
}

// Address returns the base URL of a service without a final slash; ErrNotConfigured without one.
func (c *Clients) Address(s Service) (string, error) {
	address := c.assistant
	if s != Assistant {
		address = c.settings.Value(string(s) + "_url")
	}
	if address == "" && s == ServingDashboard {
		return c.Address(Serving)
	}
	if address == "" {
		return "", fmt.Errorf("%s: %w", s, ErrNotConfigured)
	}
	return strings.TrimSuffix(address, "/"), nil
}

// Bearer returns the credential for a call to s in the name of who; empty for services that take none, and for tenants
// that the configured token does not act for.
func (c *Clients) Bearer(s Service, who caller.Caller) (string, error) {
	s = c.Resolve(s)
	if audience := audiences[s]; audience != "" {
		if c.delegator == nil {
			return c.token(s, who), nil
		}
		return c.delegator.Mint(audience, auth.Person{Name: who.Subject, Tenant: who.Tenant, Scopes: scopes(who.Role)})
	}
	if s == Dashboards {
		return c.settings.Value("dashboards_api_key"), nil
	}
	if t, ok := c.tokens[s]; ok && c.settings.Value(string(s)+"_url") == t.Address {
		return t.Secret.Reveal(), nil
	}
	return "", nil
}

// Resolve returns the service that answers for s: the serving runtime where its dashboard has no address configured.
func (c *Clients) Resolve(s Service) Service {
	if s == ServingDashboard && c.settings.Value(string(s)+"_url") == "" {
		return Serving
	}
	return s
}

// audiences are the names that delegations are minted for.
var audiences = map[Service]string{ControlPlane: "control-plane", Serving: "inference"}

// token returns the configured credential of a service that takes delegations, if it may act for who.
func (c *Clients) token(s Service, who caller.Caller) string {
	if c.local != "" && who.Tenant != c.local {
		return ""
	}
	switch s {
	case ControlPlane:
		return c.settings.Value("control_plane_token")
	case Serving:
		return c.serving.Reveal()
	}
	return ""
}

// scopes a role has at the services; each ignores those it does not know.
func scopes(r caller.Role) []string {
	if r == caller.Admin {
		return []string{"read", "write", "predict", "admin"}
	}
	return []string{"read", "predict"}
}

// client returns a client for calls to s for who. It sets no deadline: callers do.
func (c *Clients) client(s Service, who caller.Caller) *http.Client {
	return &http.Client{Transport: c.Authorize(s, who, c.http), CheckRedirect: service.HTTPClient(0).CheckRedirect}
}

// ControlPlane returns a client that acts for who.
func (c *Clients) ControlPlane(who caller.Caller) (*controlplane.Client, error) {
	address, err := c.Address(ControlPlane)
	if err != nil {
		return nil, err
	}
	return controlplane.NewClient(address, controlplane.WithHTTPClient(c.client(ControlPlane, who)))
}

// Inference returns a client that acts for who.
func (c *Clients) Inference(who caller.Caller) (*inference.Client, error) {
	address, err := c.Address(Serving)
	if err != nil {
		return nil, err
	}
	return inference.NewClient(address, inference.WithHTTPClient(c.client(Serving, who)))
}

// Tracker returns a client of the model registry, which has no per-caller access.
func (c *Clients) Tracker() (*tracker.Client, error) {
	address, err := c.Address(Tracker)
	if err != nil {
		return nil, err
	}
	return tracker.New(address, c.client(Tracker, caller.Caller{})), nil
}
