package trust

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Match selects how a rule's value is compared with a group.
type Match string

// The kinds of comparison.
const (
	Exact Match = "exact"
	Glob  Match = "glob"  // * and ? within a segment, ** across the slashes between
	Regex Match = "regex" // RE2, over the whole of the group
)

// Form is the notation of a group claim's values.
type Form string

// The forms of groups.
const (
	Raw         Form = "raw"
	RDN         Form = "rdn"         // a distinguished name, of which the first part names the group
	Entitlement Form = "entitlement" // urn:…:group:NAME[:role=ROLE]#AUTHORITY (AARC-G069)
)

// RoleRule grants a role to the members of a group.
type RoleRule struct {
	Value string
	Role  Role
	Match Match
	Claim string // empty: every group claim
	As    Form

	pattern *regexp.Regexp // of glob and regex
}

// defaultRules are for a provider whose operator can name groups after the roles.
func defaultRules() []RoleRule {
	var rules []RoleRule
	for _, r := range []RoleRule{
		{Value: "platform-admin", Role: Admin}, {Value: "platform-admins", Role: Admin},
		{Value: "platform-viewer", Role: Viewer}, {Value: "platform-viewers", Role: Viewer},
	} {
		r.Match, r.As = Exact, Raw
		rules = append(rules, r)
	}
	return rules
}

// defaultGroupClaims are the claims in which providers put groups and roles.
var defaultGroupClaims = []string{"groups", "roles", "realm_access.roles", "entitlements"}

func (r *reader) readRoles(o *object, p *Provider) {
	p.GroupClaims = o.texts("group_claims", slices.Clone(defaultGroupClaims))
	p.RoleRules = defaultRules()
	if items, ok := o.items("role_rules"); ok {
		p.RoleRules = nil
		for i, n := range items {
			if rule := r.object(n, o.path("role_rules["+itoa(i)+"]")); rule != nil {
				p.RoleRules = append(p.RoleRules, r.readRule(rule))
			}
		}
	}
	if scopes := o.object("scope_roles"); scopes != nil {
		p.ScopeRoles = map[string]Role{}
		for _, scope := range scopes.keys {
			if strings.ContainsAny(scope, " \t") || checkText(scope) != "" {
				scopes.fault(scope, "is no scope: a scope has no spaces")
			}
			p.ScopeRoles[scope] = scopes.role(scope)
		}
		scopes.finish()
	}
	if o.has("default_role") {
		if p.DefaultRole = o.role("default_role"); p.DefaultRole == Admin {
			o.fault("default_role", "must not be admin: everyone at the provider would be one")
		}
	} else {
		o.asked = append(o.asked, "default_role")
	}
	p.AssuranceClaim = o.text("assurance_claim", "eduperson_assurance")
	if assurance := o.object("role_assurance"); assurance != nil {
		p.RoleAssurance = map[Role][]string{}
		for _, role := range []Role{Admin, Viewer} {
			values := assurance.textOrTexts(string(role))
			if assurance.has(string(role)) {
				p.RoleAssurance[role] = values
				if len(values) == 0 && isSequence(assurance.nodes[string(role)]) {
					assurance.fault(string(role), "is an empty list, so no one could have the role; omit the key to require no assurance")
				}
			} else {
				assurance.asked = append(assurance.asked, string(role))
			}
		}
		assurance.finish()
	}
}

// role reads admin or viewer.
func (o *object) role(key string) Role {
	r := Role(o.required(key))
	if r != Admin && r != Viewer && r != None {
		o.fault(key, "is %q; it must be admin or viewer", string(r))
	}
	return r
}

// oneOf reads a value from a list; the first is the default.
func (o *object) oneOf(key string, words ...string) string {
	w := o.text(key, words[0])
	if !slices.Contains(words, w) {
		o.fault(key, "is %q; it must be %s", w, strings.Join(words, ", "))
		return words[0]
	}
	return w
}

func (r *reader) readRule(o *object) RoleRule {
	rule := RoleRule{
		Value: o.required("value"), Role: o.role("role"), Claim: o.text("claim", ""),
		Match: Match(o.oneOf("match", string(Exact), string(Glob), string(Regex))),
		As:    Form(o.oneOf("as", string(Raw), string(RDN), string(Entitlement))),
	}
	o.finish()
	if rule.Value == "" {
		return rule
	}
	if rule.Match != Regex && strings.TrimPrefix(rule.Value, "/") == "" {
		o.fault("value", "names no group")
	}
	var err error
	switch rule.Match {
	case Glob:
		if strings.ContainsAny(rule.Value, `[]{}\`) {
			o.fault("value", "has one of [ ] { } \\, which a glob here does not know; use match: regex")
			return rule
		}
		rule.pattern, err = compileGlob(strings.TrimPrefix(rule.Value, "/"))
	case Regex:
		rule.pattern, err = compileAnchored(rule.Value)
	}
	if err != nil {
		o.fault("value", "is no regular expression of RE2: %s", err)
	}
	return rule
}

// compileAnchored compiles expr alone first: a)|(b would be valid between the anchors, and escape them.
func compileAnchored(expr string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(expr); err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + expr + `)\z`)
}

// compileGlob converts a glob into an expression, whose time is linear in the length of the input.
func compileGlob(glob string) (*regexp.Regexp, error) {
	var b strings.Builder
	for i := 0; i < len(glob); {
		switch {
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString(`(?s:.*)`)
			for i < len(glob) && glob[i] == '*' {
				i++
			}
		case glob[i] == '*':
			b.WriteString(`[^/]*`)
			i++
		case glob[i] == '?':
			b.WriteString(`[^/]`)
			i++
		default:
			end := i + 1
			for end < len(glob) && glob[end] != '*' && glob[end] != '?' {
				end++
			}
			b.WriteString(regexp.QuoteMeta(glob[i:end]))
			i = end
		}
	}
	return compileAnchored(b.String())
}

// matches reports whether a value of a group claim names the rule's group. A group matches as a whole: the last segment
// of /ops/admin alone is a different group of the same name.
func (r *RoleRule) matches(value string) bool {
	return slices.ContainsFunc(r.groupNames(value), func(name string) bool {
		bare := strings.TrimPrefix(name, "/")
		switch r.Match {
		case Exact:
			return bare == strings.TrimPrefix(r.Value, "/")
		case Glob:
			return r.pattern.MatchString(bare)
		case Regex: // written with the slash or without
			return r.pattern.MatchString(name) || r.pattern.MatchString(bare)
		}
		return false
	})
}

// groupNames are the names that a value has in the rule's form; none if it is not written so.
func (r *RoleRule) groupNames(value string) []string {
	switch r.As {
	case RDN:
		if name, ok := firstRDN(value); ok {
			return []string{name}
		}
		return nil
	case Entitlement:
		return entitlementGroups(value)
	}
	return []string{value}
}

// describe returns the rule in the file's terms, for the audit ledger.
func (r *RoleRule) describe(index int, claim string) string {
	return fmt.Sprintf("role_rules[%d]: %s %s %q gives %s", index, claim, r.Match, r.Value, r.Role)
}

// roleFromGroups is the strongest role that the rules give, and which rules gave it.
func (p *Provider) roleFromGroups(claims map[string]any) (Role, []string) {
	best, reasons := None, []string(nil)
	values := map[string][]string{}
	for i := range p.RoleRules {
		rule := &p.RoleRules[i]
		names := p.GroupClaims
		if rule.Claim != "" {
			names = []string{rule.Claim}
		}
		for _, claim := range names {
			if _, read := values[claim]; !read {
				values[claim] = textsOf(lookUp(claims, claim))
			}
			if slices.ContainsFunc(values[claim], rule.matches) {
				reasons = append(reasons, rule.describe(i, claim))
				if rule.Role.rank() > best.rank() {
					best = rule.Role
				}
				break
			}
		}
	}
	return best, reasons
}
