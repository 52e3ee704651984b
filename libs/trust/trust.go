package trust

import (
	"fmt"
	"strings"
	"time"
)

// Role is a person's role; an admin may do all that a viewer may.
type Role string

// The roles that a rule can give.
const (
	None   Role = ""
	Viewer Role = "viewer"
	Admin  Role = "admin"
)

// rank orders the roles; the strongest that any rule grants wins.
func (r Role) rank() int {
	switch r {
	case Admin:
		return 2
	case Viewer:
		return 1
	}
	return 0
}

// File is a trust file without faults. It does not change after Parse.
type File struct {
	Providers []Provider
	// SecretFiles are the files that secrets were read from, for callers that reload on a change.
	SecretFiles []string
}

// Provider is an identity provider and the rules for the people that it vouches for.
type Provider struct {
	Name        string // unique; a principal is <name>:<subject>
	Issuer      string // exact; tokens name it in iss
	DisplayName string
	// AllowInsecureHTTP permits http addresses off loopback, which anyone on the way can forge.
	AllowInsecureHTTP bool
	// Audience are the values of aud of which an access token needs one.
	Audience []string

	// The keys: from the discovery document, else from JWKSURI, else JWKS, a JSON Web Key Set.
	Discovery bool
	JWKSURI   string
	JWKS      []byte

	Algorithms []string      // the signature algorithms accepted
	Leeway     time.Duration // by which clocks may differ
	RequireTyp bool          // access tokens must have the type at+jwt of RFC 9068

	SubjectClaim  string
	UsernameClaim string
	EmailClaim    string

	// Tenant is that of all people of the provider, unless TenantClaim names it and TenantsAllowed has it.
	Tenant         string
	TenantClaim    string
	TenantsAllowed []string

	GroupClaims    []string
	RoleRules      []RoleRule
	ScopeRoles     map[string]Role // of access tokens alone
	DefaultRole    Role
	AssuranceClaim string
	// RoleAssurance are the assurance values of which a role needs one; an admin without any is a viewer.
	RoleAssurance map[Role][]string

	Introspection *Introspection // nil: opaque tokens are refused
	Dashboard     *Client        // nil: no single sign-on at the dashboard
	CLI           *Client        // nil: no login from the command line
	StepUp        *StepUp        // nil: no action needs a stronger sign-in
	// Deny lists subjects that are always refused.
	Deny []string
}

// Introspection configures how opaque access tokens are validated (RFC 7662).
type Introspection struct {
	ClientID     string
	ClientSecret Secret
	Endpoint     string // empty: that of the discovery document
}

// Client is a registration at the provider.
type Client struct {
	ClientID     string
	ClientSecret Secret // empty for a public client
	Scopes       []string
}

// StepUp lists a guarded action's requirements for a sign-in (RFC 9470).
type StepUp struct {
	ACRValues []string // empty: any level, as long as it is fresh
	MaxAge    time.Duration
}

// Fault is one thing wrong with a trust file.
type Fault struct {
	File string `json:"file"`
	Line int    `json:"line"` // counts from 1; 0 means the file as a whole
	Msg  string `json:"msg"`
}

func (f Fault) Error() string {
	if f.Line == 0 {
		return f.File + ": " + f.Msg
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Msg)
}

// Faults are all that is wrong with a trust file, in the order of its lines. As an error it is never empty.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}
