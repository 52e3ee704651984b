// Package caller is who sent a request: the person, the tenant and the role that access has verified.
package caller

import (
	"slices"
	"time"

	"github.com/labstack/echo/v4"
)

// Role is a permission level; an admin may do all that a viewer may.
type Role string

// The two roles of the contract.
const (
	Viewer Role = "viewer"
	Admin  Role = "admin"
)

// Covers reports whether a caller of this role passes a check for need.
func (r Role) Covers(need Role) bool { return r == Admin || r == need }

// Method is how a caller proved who they are.
type Method string

// The values of auth_method.
const (
	Password  Method = "password"
	SSO       Method = "sso"
	IDPBearer Method = "idp-bearer"
)

// Caller is a verified sender of a request. The zero value is no one.
type Caller struct {
	Subject  string // the principal: local:admin, or <provider>:<subject>
	Name     string // for display; may be empty
	Tenant   string
	Role     Role
	Method   Method
	Provider string // of single sign-on or bearer; empty for passwords
	// ACR is the assurance level that the provider asserted, AuthTime when the person proved it.
	ACR      string
	AuthTime time.Time
	// SessionID identifies the session in logs, limits and derived keys: the jti of a password token, the id
	// of an SSO session, a digest of a bearer. It is no credential.
	SessionID string
	ExpiresAt time.Time
	// Basis identifies what admitted the caller: the password, or the trust file. It changes with them, so that
	// whatever outlives the request can detect that it was admitted under an older one. It is no credential.
	Basis string
	// BreakGlass marks a password login although providers are configured.
	BreakGlass bool
}

// viewerCapabilities and adminCapabilities describe a role to the UI; the guards decide.
var (
	viewerCapabilities = []string{"alert.ack", "comment.write", "copilot.ask", "search", "snapshot.create", "view"}
	adminCapabilities  = []string{
		"approval.decide", "assistant.decide", "audit.read", "config.write", "drift.manage", "flag.write", "model.promote",
		"proxy.write", "retrain.trigger", "secret.write", "traffic.manage",
	}
)

// Capabilities lists what the role allows, sorted.
func (c Caller) Capabilities() []string {
	all := slices.Clone(viewerCapabilities)
	if c.Role == Admin {
		all = append(all, adminCapabilities...)
	}
	slices.Sort(all)
	return all
}

const contextKey = "dashboard.caller"

// Set records the verified caller of a request; access does, and tests of handlers.
func Set(c echo.Context, who Caller) { c.Set(contextKey, who) }

// From returns the caller of a request behind a guard; the zero Caller on public routes.
func From(c echo.Context) Caller {
	who, _ := c.Get(contextKey).(Caller)
	return who
}
