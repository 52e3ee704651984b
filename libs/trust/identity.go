package trust

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The reasons for which Identify admits no one. An error of Identify wraps one of them.
var (
	// ErrClaims means that a claim which a person cannot do without is absent, malformed or not allowed.
	ErrClaims = errors.New("claims do not identify a person")
	// ErrDenied means that the deny list names the subject.
	ErrDenied = errors.New("the account is on the deny list")
	// ErrNoRole means that no rule gives a role.
	ErrNoRole = errors.New("no rule gives a role")
)

// Identity is a person as the trust file sees them.
type Identity struct {
	Provider  string
	Subject   string // at the provider
	Principal string // <provider>:<subject>
	Name      string // for display; may be empty
	Tenant    string
	Role      Role
	// Reasons list the rules that gave or lowered the role, in the file's terms.
	Reasons []string
}

// maxSubject limits a subject; OpenID Connect allows 255 characters.
const maxSubject = 255

// Identify maps verified claims to a person. accessToken means that the claims come from an access token, whose scopes
// count too: the scopes of a sign-in are those the dashboard requested, not those the user was granted.
func (p *Provider) Identify(claims map[string]any, accessToken bool) (Identity, error) {
	id := Identity{Provider: p.Name, Subject: textOf(lookUp(claims, p.SubjectClaim))}
	if why := checkSubject(id.Subject); why != "" {
		return Identity{}, fmt.Errorf("%w: the claim %s %s", ErrClaims, p.SubjectClaim, why)
	}
	id.Principal = p.Name + ":" + id.Subject
	for _, claim := range []string{p.UsernameClaim, "name", p.EmailClaim} {
		if id.Name = displayName(textOf(lookUp(claims, claim))); id.Name != "" {
			break
		}
	}
	if slices.Contains(p.Deny, id.Subject) || slices.Contains(p.Deny, id.Principal) {
		return id, ErrDenied
	}
	var err error
	if id.Tenant, err = p.tenantOf(claims); err != nil {
		return id, err
	}
	id.Role, id.Reasons = p.roleOf(claims, accessToken)
	if id.Role == None {
		return id, fmt.Errorf("%w: %s", ErrNoRole, strings.Join(id.Reasons, "; "))
	}
	return id, nil
}

func checkSubject(s string) string {
	switch {
	case s == "":
		return "is absent or no text"
	case len(s) > maxSubject:
		return fmt.Sprintf("is longer than %d bytes", maxSubject)
	case !isVisible(s):
		return "has characters that cannot be seen"
	}
	return ""
}

// isVisible refuses characters that let one name look like another in a log or on a page.
func isVisible(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// maxName limits a display name, in bytes.
const maxName = 128

func displayName(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > maxName || !isVisible(s) {
		return ""
	}
	return s
}

func (p *Provider) tenantOf(claims map[string]any) (string, error) {
	if p.TenantClaim == "" {
		return p.Tenant, nil
	}
	found := ""
	for _, v := range textsOf(lookUp(claims, p.TenantClaim)) {
		v = strings.TrimPrefix(v, "/")
		if !slices.Contains(p.TenantsAllowed, v) || v == found {
			continue
		}
		if found != "" {
			return "", fmt.Errorf("%w: the claim %s has more than one tenant of tenants_allowed", ErrClaims, p.TenantClaim)
		}
		found = v
	}
	if found == "" {
		return "", fmt.Errorf("%w: the claim %s has no tenant of tenants_allowed", ErrClaims, p.TenantClaim)
	}
	return found, nil
}

// roleOf is the strongest role of groups, scopes and default for which the assurance suffices.
func (p *Provider) roleOf(claims map[string]any, accessToken bool) (Role, []string) {
	role, reasons := p.roleFromGroups(claims)
	if accessToken {
		scopes := scopesOf(claims)
		for _, scope := range scopes {
			if r := p.ScopeRoles[scope]; r != None {
				reasons = append(reasons, fmt.Sprintf("scope_roles: %q gives %s", scope, r))
				if r.rank() > role.rank() {
					role = r
				}
			}
		}
	}
	if p.DefaultRole.rank() > role.rank() {
		role = p.DefaultRole
		reasons = append(reasons, fmt.Sprintf("default_role gives %s", role))
	}
	if role == None && groupsByReference(claims) {
		reasons = append(reasons, "the provider sent the groups by reference (_claim_names), which is not followed; let it send fewer")
	}
	if role == None {
		return None, reasons
	}
	assured := textsOf(lookUp(claims, p.AssuranceClaim))
	for role != None {
		needed := p.RoleAssurance[role]
		if len(needed) == 0 || slices.ContainsFunc(needed, func(v string) bool { return slices.Contains(assured, v) }) {
			break
		}
		reasons = append(reasons, fmt.Sprintf("role_assurance: %s has none of %s for %s", p.AssuranceClaim, strings.Join(needed, ", "), role))
		role = map[Role]Role{Admin: Viewer}[role] // below viewer there is none
	}
	return role, reasons
}

// scopesOf reads scope, a list with spaces between (RFC 9068), and scp, a list, as some providers have it.
func scopesOf(claims map[string]any) []string {
	var scopes []string
	for _, claim := range []string{"scope", "scp"} {
		for _, s := range textsOf(claims[claim]) {
			for _, scope := range strings.Fields(s) {
				if !slices.Contains(scopes, scope) {
					scopes = append(scopes, scope)
				}
			}
		}
	}
	return scopes
}

// groupsByReference holds where a provider left groups out because there were too many (OpenID Connect Core 5.6.2).
func groupsByReference(claims map[string]any) bool {
	names, _ := claims["_claim_names"].(map[string]any)
	return len(names) > 0
}
