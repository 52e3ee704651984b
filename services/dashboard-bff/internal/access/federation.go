package access

import (
	"context"
	"time"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

// Federation judges the credentials of identity providers. Its methods may be called at once from many goroutines.
type Federation interface {
	// Enabled reports whether any provider is configured; a password login is break-glass then. A trust file with a
	// fault counts: its providers are configured, only not believed.
	Enabled() bool
	// Bearer verifies an access token. providerHint is the header X-PLATFORM-IDP, for tokens that do not name their
	// issuer. The error is a problem: 401, 403 no_role, 502 or 503. SessionID of the caller is a digest of the token.
	// mayAsk, unless nil, is called before a provider is asked about an opaque token; its error is the answer.
	Bearer(ctx context.Context, raw, providerHint string, mayAsk func() error) (caller.Caller, error)
	// Admit returns the 401 to answer if the provider of a browser session is no longer trusted or its person is
	// denied. It is called on each request and each second of a stream, so it answers from memory.
	Admit(ctx context.Context, d session.Data) error
	// Basis is a mark of the trust file that Bearer and Admit judge by, the same on all replicas; empty while it has a
	// fault.
	Basis() string
	// StepUp returns the provider's requirements for sensitive actions: one of acrValues, if there are any, and a
	// sign-in no older than maxAge. loginURL is where a person steps up. required is false for a provider without such
	// a rule.
	StepUp(provider string) (acrValues []string, maxAge time.Duration, loginURL string, required bool)
}
