package trust

import (
	"cmp"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// nameRule matches a valid name of a provider or a tenant.
var nameRule = lazyPattern(`^[a-z0-9][a-z0-9_-]{0,62}$`)

const nameHint = "must match [a-z0-9][a-z0-9_-]{0,62}"

// Names that mean something else: principals of password sessions, and facts that every tenant may read.
const (
	localProvider  = "local"
	platformTenant = "platform"
)

// algorithms are all that a provider may sign by. HS needs a shared secret, and none is no signature.
var algorithms = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
}

// defaultScopes are the scopes that the dashboard requests at sign-in.
var defaultScopes = []string{"openid", "profile", "email"}

// Load reads and checks the trust file at path. The error of a faulty file is Faults. The second result is the file's
// content, for a later comparison.
func Load(path string, env Environment) (*File, []byte, error) {
	src, err := env.readFile(path, MaxFile)
	if err != nil {
		return nil, nil, Faults{{File: path, Msg: "cannot be read: " + withoutPath(err).Error()}}
	}
	f, err := Parse(path, src, env)
	return f, src, err
}

// Parse checks src whole and reports all faults together, as Faults. name is that of the file in messages.
func Parse(name string, src []byte, env Environment) (*File, error) {
	d := &document{name: name}
	r := reader{document: d, env: env, file: &File{}}
	if body := d.parse(src); body != nil {
		r.readFile(body)
	}
	if len(d.faults) > 0 {
		slices.SortStableFunc(d.faults, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
		return nil, d.faults
	}
	return r.file, nil
}

type reader struct {
	*document
	env  Environment
	file *File
}

func (r *reader) readFile(body ast.Node) {
	o := r.object(body, "")
	if o == nil {
		return
	}
	if !o.has("version") {
		o.fault("version", "is missing; write version: 1")
	}
	o.number("version", 1, 1, 1)
	if !o.has("providers") {
		o.fault("providers", "is missing; an empty list means that no provider is trusted")
	}
	items, _ := o.items("providers")
	type place struct{ name, issuer int }
	places := make([]place, len(items))
	for i, n := range items {
		p := r.object(n, "providers["+itoa(i)+"]")
		if p == nil {
			continue
		}
		provider := r.readProvider(p)
		places[i] = place{p.lines["name"], p.lines["issuer"]}
		for j, other := range r.file.Providers {
			if other.Name == provider.Name && provider.Name != "" {
				p.fault("name", "repeats the name of line %d", places[j].name)
			}
			if other.Issuer == provider.Issuer && provider.Issuer != "" {
				p.fault("issuer", "repeats the issuer of line %d; a token would match both", places[j].issuer)
			}
		}
		r.file.Providers = append(r.file.Providers, provider)
	}
	o.finish()
}

func (r *reader) readProvider(o *object) Provider {
	p := Provider{Name: o.required("name")}
	switch {
	case p.Name == "":
	case !nameRule().MatchString(p.Name):
		o.fault("name", nameHint)
	case p.Name == localProvider:
		o.fault("name", "must not be local, the name of password sessions")
	}
	p.AllowInsecureHTTP = o.flag("allow_insecure_http")
	p.Issuer = o.required("issuer")
	if p.Issuer != "" {
		r.checkAddress(o, "issuer", p.Issuer, p.AllowInsecureHTTP)
	}
	p.DisplayName = o.text("display_name", p.Name)
	p.Audience = r.requiredTexts(o, "audience")

	r.readKeys(o, &p)
	p.Algorithms = o.texts("algorithms", []string{"RS256", "PS256", "ES256"})
	for _, a := range p.Algorithms {
		if !slices.Contains(algorithms, a) {
			o.fault("algorithms", "has %q; allowed are %s", a, strings.Join(algorithms, ", "))
		}
	}
	if len(p.Algorithms) == 0 {
		o.fault("algorithms", "is empty")
	}
	p.Leeway = time.Duration(o.number("leeway_s", 60, 0, 300)) * time.Second
	p.RequireTyp = o.flag("require_typ")

	p.SubjectClaim = o.text("subject_claim", "sub")
	p.UsernameClaim = o.text("username_claim", "preferred_username")
	p.EmailClaim = o.text("email_claim", "email")
	r.readTenant(o, &p)
	r.readRoles(o, &p)
	p.Deny = o.texts("deny", nil)

	p.Introspection = r.readIntrospection(o.object("introspection"), p.AllowInsecureHTTP)
	if clients := o.object("clients"); clients != nil {
		p.Dashboard = r.readClient(clients.object("dashboard"), true)
		p.CLI = r.readClient(clients.object("cli"), false)
		clients.finish()
	}
	if p.Dashboard != nil && !p.Discovery {
		o.fault("clients", "has a dashboard client, which needs discovery: true to know where people sign in")
	}
	if i := p.Introspection; i != nil && i.Endpoint == "" && !p.Discovery {
		o.fault("introspection", "needs an endpoint, since there is no discovery document to name it")
	}
	if s := o.object("step_up"); s != nil {
		p.StepUp = &StepUp{ACRValues: s.texts("acr_values", nil), MaxAge: time.Duration(s.number("max_age_s", 900, 1, 86400)) * time.Second}
		for _, v := range p.StepUp.ACRValues {
			if strings.ContainsAny(v, ` "\`) { // the parameter is a list with spaces between, and a quoted string of a header
				s.fault("acr_values", "has %q; a value must not have spaces, quotes or backslashes", v)
			}
		}
		s.finish()
	}
	o.finish()
	return p
}

func (r *reader) requiredTexts(o *object, key string) []string {
	values := o.textOrTexts(key)
	switch {
	case !o.has(key):
		o.fault(key, "is missing")
	case len(values) == 0 && isSequence(o.nodes[key]):
		o.fault(key, "is an empty list")
	}
	return values
}

func isSequence(n ast.Node) bool { _, ok := n.(*ast.SequenceNode); return ok }

// readKeys reads the one source of the provider's keys.
func (r *reader) readKeys(o *object, p *Provider) {
	p.Discovery = o.flag("discovery")
	p.JWKSURI = o.text("jwks_uri", "")
	if p.JWKSURI != "" {
		r.checkAddress(o, "jwks_uri", p.JWKSURI, p.AllowInsecureHTTP)
	}
	if n, ok := o.value("jwks"); ok {
		raw, err := readJWKS(n)
		if err != nil {
			o.fault("jwks", "%s", err)
		}
		p.JWKS = raw
	}
	sources := 0
	for _, there := range []bool{p.Discovery, o.has("jwks_uri"), o.has("jwks")} {
		if there {
			sources++
		}
	}
	switch {
	case sources > 1:
		o.fault("discovery", "is one of three sources of keys; give only one of discovery: true, jwks_uri and jwks")
	case sources == 0 && o.has("discovery"):
		o.fault("discovery", "is false, so jwks_uri or jwks must name the keys")
	case sources == 0:
		p.Discovery = true
	}
}

// checkAddress refuses a URL that this provider must not be reached by.
func (r *reader) checkAddress(o *object, key, value string, insecure bool) {
	if why := CheckAddress(value, insecure); why != "" {
		o.fault(key, "%s", why)
	}
}

// CheckAddress returns what is wrong with the address of a provider, or "": it must be https, or http where no one can
// intercept it, without user, query or fragment.
func CheckAddress(value string, allowInsecureHTTP bool) string {
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || u.Hostname() == "":
		return "is no URL such as https://idp.example.org"
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(value, "#"):
		return "must not have a user, a query or a fragment"
	case u.Scheme == "https":
		return ""
	case u.Scheme != "http":
		return "must begin with https://"
	case allowInsecureHTTP || isLoopback(u.Hostname()):
		return ""
	}
	return "is http, which anyone on the way can change; use https, or allow_insecure_http: true in a test network"
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (r *reader) readTenant(o *object, p *Provider) {
	p.TenantClaim = o.text("tenant_claim", "")
	p.TenantsAllowed = o.texts("tenants_allowed", nil)
	if p.TenantClaim == "" {
		p.Tenant = o.text("tenant", p.Name)
		if o.has("tenants_allowed") {
			o.fault("tenants_allowed", "needs tenant_claim, whose values it lists")
		}
	} else {
		o.asked = append(o.asked, "tenant")
		if o.has("tenant") {
			o.fault("tenant", "and tenant_claim exclude each other; give one of them")
		}
		if len(p.TenantsAllowed) == 0 {
			o.fault("tenant_claim", "needs tenants_allowed, the values that are believed")
		}
	}
	for key, names := range map[string][]string{"tenant": {p.Tenant}, "tenants_allowed": p.TenantsAllowed} {
		for _, name := range names {
			switch {
			case name == "" || name == p.Name: // absent, or reported as the provider's name
			case !nameRule().MatchString(name):
				o.fault(key, "has %q; a tenant %s", name, nameHint)
			}
			if name == platformTenant {
				o.fault(key, "must not be platform, whose facts every tenant may read; give the provider a tenant")
			}
		}
	}
}

func (r *reader) readIntrospection(o *object, insecure bool) *Introspection {
	if o == nil {
		return nil
	}
	i := &Introspection{ClientID: o.required("client_id"), ClientSecret: r.readSecret(o, true), Endpoint: o.text("endpoint", "")}
	if i.Endpoint != "" {
		r.checkAddress(o, "endpoint", i.Endpoint, insecure)
	}
	o.finish()
	return i
}

// readClient reads a registration; only a confidential one, of a server, can keep a secret.
func (r *reader) readClient(o *object, confidential bool) *Client {
	if o == nil {
		return nil
	}
	c := &Client{ClientID: o.required("client_id"), Scopes: slices.Clone(defaultScopes)}
	if confidential {
		c.ClientSecret = r.readSecret(o, false)
	}
	if o.has("scopes") {
		c.Scopes = nil
		for _, s := range o.textOrTexts("scopes") {
			c.Scopes = append(c.Scopes, strings.Fields(s)...)
		}
		if !slices.Contains(c.Scopes, "openid") {
			o.fault("scopes", "must have openid, without which the provider says nothing of who signed in")
		}
	} else {
		o.asked = append(o.asked, "scopes")
	}
	o.finish()
	return c
}

func (r *reader) readSecret(o *object, required bool) Secret {
	const key = "client_secret_ref"
	if required && !o.has(key) {
		o.fault(key, "is missing")
	}
	ref := o.text(key, "")
	if ref == "" {
		return ""
	}
	secret, path, err := r.env.resolve(ref)
	if path != "" && !slices.Contains(r.file.SecretFiles, path) {
		r.file.SecretFiles = append(r.file.SecretFiles, path)
	}
	if err != nil {
		o.fault(key, "cannot be used: %s", err)
	}
	return secret
}
