package accesstest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/access"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

// Provider is a fake of the identity providers with a fixed set of bearers.
type Provider struct {
	mu        sync.Mutex // guards the fields below
	bearers   map[string]caller.Caller
	refused   error // of Admit
	acrValues []string
	maxAge    time.Duration
	stepUp    bool
}

var _ access.Federation = (*Provider)(nil)

// Know makes a bearer valid.
func (p *Provider) Know(bearer string, who caller.Caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bearers == nil {
		p.bearers = map[string]caller.Caller{}
	}
	p.bearers[bearer] = who
}

// Forget makes a bearer invalid.
func (p *Provider) Forget(bearer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.bearers, bearer)
}

// DemandStepUp switches the provider's step-up on.
func (p *Provider) DemandStepUp(maxAge time.Duration, acrValues ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stepUp, p.maxAge, p.acrValues = true, maxAge, acrValues
}

// Distrust makes Admit refuse every session.
func (p *Provider) Distrust() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = fault.ProviderUntrusted.New("The provider of this session is no longer trusted; sign in again.")
}

// Enabled implements access.Federation.
func (*Provider) Enabled() bool { return true }

// Bearer implements access.Federation.
func (p *Provider) Bearer(_ context.Context, raw, _ string, _ func() error) (caller.Caller, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who, known := p.bearers[raw]
	if !known {
		return caller.Caller{}, fault.InvalidToken.New("Unknown token.").WithHeader("WWW-Authenticate", `Bearer error="invalid_token"`)
	}
	return who, nil
}

// Admit implements access.Federation.
func (p *Provider) Admit(context.Context, session.Data) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// Basis implements access.Federation.
func (p *Provider) Basis() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused != nil {
		return "distrusted"
	}
	return "trusted"
}

// StepUp implements access.Federation.
func (p *Provider) StepUp(provider string) (acrValues []string, maxAge time.Duration, loginURL string, required bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acrValues, p.maxAge, "/api/auth/sso/" + provider + "/login?step_up=true", p.stepUp
}

// AddSignIn adds POST /test/sign-in, which begins a browser session of the data in its body, as single sign-on does.
func (r *Replica) AddSignIn() {
	r.Server.Echo.POST("/test/sign-in", func(c echo.Context) error {
		var d session.Data
		if err := service.DecodeJSON(c, &d, true); err != nil {
			return err
		}
		if err := r.Sessions.Begin(c, d); err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	})
}

// Person returns a user authenticated by provider idp-a.
func (f *Fleet) Person(role caller.Role) session.Data {
	return session.Data{
		Subject: "idp-a:1001", Name: "Ada Lovelace", Tenant: Tenant, Role: role, Provider: "idp-a", ProviderSubject: "1001",
		ACR: "urn:x:mfa", AuthTime: f.Now().UTC().Truncate(time.Second), Claims: map[string]any{"groups": []any{"ops"}},
	}
}
