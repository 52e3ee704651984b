package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// place is an address under which a service is known: its internal one, or the published one.
type place struct {
	origin  string // as originText writes it
	base    string // escaped path, without final slash
	service upstream.Service
}

// linkMap translates links of one service into links of this origin.
type linkMap struct {
	own    upstream.Service
	scheme string // of the service, for links that begin with //
	base   string // escaped path of the service's address
	places []place
	prefix string // prefix on this origin of a link from the root
}

// newLinks gathers where services are. Those of the service itself come first: where two share an address, it means
// itself. The same addresses give the same map, which is made once.
func (x *exchange) newLinks() *linkMap {
	p := x.proxy
	var texts [2 * len(proxied)]string // internal and published address of each service
	var key strings.Builder
	key.WriteString(string(x.service))
	for i, s := range proxied {
		if s == upstream.ControlPlane && x.origin.tools {
			continue
		}
		texts[2*i], _ = p.cfg.Upstreams.Address(s) // without an address there is nothing to translate
		texts[2*i+1] = p.cfg.PublicAddress(s)
		key.WriteString("\x00" + texts[2*i] + "\x00" + texts[2*i+1])
	}
	return p.links.get(key.String(), func() *linkMap {
		l := newLinkMap(x.service, x.target.Scheme, x.target.EscapedPath())
		add := func(i int) {
			for _, text := range texts[2*i : 2*i+2] {
				if u, err := parseAddress(proxied[i], text); text != "" && err == nil {
					l.places = append(l.places, place{originText(u), u.EscapedPath(), proxied[i]})
				}
			}
		}
		own := slices.Index(proxied[:], x.service)
		add(own)
		for i := range proxied {
			if i != own {
				add(i)
			}
		}
		return l
	})
}

func newLinkMap(own upstream.Service, scheme, base string, places ...place) *linkMap {
	return &linkMap{own, scheme, base, places, root + string(own)}
}

// cache keeps values derived from addresses. They change when an admin changes them, so it is small, and cleared when
// it is full.
type cache[T any] struct {
	mu   sync.Mutex // guards made
	made map[string]T
}

const cacheSize = 256

func (c *cache[T]) get(key string, create func() T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.made[key]; ok {
		return v
	}
	if c.made == nil || len(c.made) >= cacheSize {
		c.made = make(map[string]T)
	}
	v := create()
	c.made[key] = v
	return v
}

// translate returns a link's form on this origin. External, relative and already translated links are unchanged:
// foreign is true for external ones alone.
func (l *linkMap) translate(link string) (translated string, foreign bool) {
	clean := cleanLink(link)
	switch {
	case strings.HasPrefix(clean, "//"):
		if mapped, ok := l.fromOrigin(l.scheme + ":" + clean); ok {
			return mapped, false
		}
		return link, true
	case strings.HasPrefix(clean, "/"):
		return l.fromRoot(clean), false
	case hasScheme(clean):
		if mapped, ok := l.fromOrigin(clean); ok {
			return mapped, false
		}
		return link, true
	}
	return link, false
}

// fromRoot translates a link that begins with one slash.
func (l *linkMap) fromRoot(link string) string {
	path, _ := cutPath(link)
	if isProxied(path) {
		return link
	}
	if l.base != "" && hasBase(path, l.base) {
		link = strings.TrimPrefix(link, l.base)
	}
	if !strings.HasPrefix(link, "/") {
		link = "/" + link // of the base alone, maybe with a query
	}
	return l.prefix + link
}

// isPlainRoot reports whether a link, as written in a page, becomes one of this origin by adding the prefix alone.
// Most links of a page do; translate handles the rest.
func (l *linkMap) isPlainRoot(link string) bool {
	if link == "" || link[0] != '/' || l.base != "" || strings.HasPrefix(link, root) {
		return false
	}
	if len(link) > 1 && (link[1] == '/' || link[1] == '\\') {
		return false
	}
	for i := range len(link) {
		if link[i] <= ' ' || link[i] == '&' {
			return false
		}
	}
	return true
}

// isProxied reports whether a path is translated already.
func isProxied(path string) bool {
	if !strings.HasPrefix(path, root) {
		return false
	}
	for _, s := range proxied {
		if hasBase(path, prefix(s)) {
			return true
		}
	}
	return false
}

// fromOrigin translates an absolute link to a service.
func (l *linkMap) fromOrigin(link string) (string, bool) {
	origin, rest := cutOrigin(link)
	if origin == "" {
		return "", false
	}
	path, _ := cutPath(rest)
	for _, at := range l.places {
		if sameOrigin(origin, at.origin) && (at.base == "" || hasBase(path, at.base)) {
			rest = strings.TrimPrefix(rest, at.base)
			if !strings.HasPrefix(rest, "/") {
				rest = "/" + rest
			}
			return prefix(at.service) + rest, true
		}
	}
	return "", false
}

// cleanLink reads a link as browsers do: without blanks around it, without tabs and line breaks, and with the
// backslashes before its path as slashes.
func cleanLink(link string) string {
	if isClean(link) {
		return link
	}
	link = strings.TrimFunc(link, func(r rune) bool { return r <= ' ' })
	if strings.ContainsAny(link, "\t\n\r") {
		link = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(link)
	}
	if i := strings.IndexFunc(link, func(r rune) bool { return r != '/' && r != '\\' }); i != 0 {
		if i < 0 {
			i = len(link)
		}
		link = strings.ReplaceAll(link[:i], `\`, "/") + link[i:]
	}
	return link
}

// isClean is true for most links: no blank or control character, and no backslash before the path.
func isClean(link string) bool {
	slashes := true // up to here
	for i := range len(link) {
		c := link[i]
		if c <= ' ' || slashes && c == '\\' {
			return false
		}
		slashes = slashes && c == '/'
	}
	return true
}

// hasScheme reports whether a link begins with a scheme of RFC 3986.
func hasScheme(link string) bool {
	for i := range len(link) {
		c := link[i]
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			return true
		default:
			return false
		}
	}
	return false
}

// cutOrigin cuts an absolute link of http or ws after its host; origin is in the form of originText, with http for ws.
func cutOrigin(link string) (origin, rest string) {
	scheme, after, ok := strings.Cut(link, "://")
	if !ok {
		return "", ""
	}
	scheme = strings.ToLower(scheme)
	switch scheme {
	case "ws":
		scheme = "http"
	case "wss":
		scheme = "https"
	case "http", "https":
	default:
		return "", ""
	}
	end := strings.IndexAny(after, `/?#\`)
	if end < 0 {
		end = len(after)
	}
	if end == 0 || strings.Contains(after[:end], "@") {
		return "", ""
	}
	return originText(&url.URL{Scheme: scheme, Host: after[:end]}), after[end:]
}

// cutPath cuts a link after its path.
func cutPath(link string) (path, rest string) {
	for i := range len(link) {
		if link[i] == '?' || link[i] == '#' {
			return link[:i], link[i:]
		}
	}
	return link, ""
}

// hasBase reports whether path is base or below it.
func hasBase(path, base string) bool {
	rest, ok := strings.CutPrefix(path, base)
	return ok && (rest == "" || rest[0] == '/')
}

// sameOrigin compares two origins, treating all names of the local machine as one: a service on loopback rarely knows
// under which of them the dashboard calls it.
func sameOrigin(a, b string) bool { return a == b || foldLoopback(a) == foldLoopback(b) }

func foldLoopback(origin string) string {
	for _, name := range []string{"://127.0.0.1", "://[::1]", "://0.0.0.0"} {
		if i := strings.Index(origin, name); i >= 0 {
			if rest := origin[i+len(name):]; rest == "" || rest[0] == ':' {
				return origin[:i] + "://localhost" + rest
			}
		}
	}
	return origin
}

// rewriteLocation translates the links in headers. A redirect to an external address is refused: the browser would
// follow it with the caller's data.
func (x *exchange) rewriteLocation(res *http.Response) error {
	h := res.Header
	if h.Get("Location") != "" || h.Get("Content-Location") != "" || h.Get("Link") != "" || h.Get("Refresh") != "" {
		x.links = x.newLinks()
	}
	if location := h.Get("Location"); location != "" {
		translated, foreign := x.links.translate(x.resolve(location))
		redirects := res.StatusCode >= 300 && res.StatusCode < 400
		switch {
		case foreign && redirects:
			return fault.UpstreamRedirect.New(string(x.service) + " redirects to another site, which the proxy does not follow or pass on; correct " + string(x.service) + "_url, or open that site yourself.")
		case foreign:
			h.Del("Location")
		default:
			h.Set("Location", translated)
		}
	}
	if location := h.Get("Content-Location"); location != "" {
		translated, foreign := x.links.translate(x.resolve(location))
		if h.Set("Content-Location", translated); foreign {
			h.Del("Content-Location")
		}
	}
	if links := h["Link"]; len(links) > 0 {
		h.Set("Link", rewriteLinkHeader(strings.Join(links, ", "), x.links))
	}
	if refresh := h.Get("Refresh"); refresh != "" {
		h.Set("Refresh", rewriteRefresh(refresh, x.links))
	}
	return nil
}

// resolve makes a link of a header absolute, as its reader would.
func (x *exchange) resolve(link string) string {
	at := x.upstreamURL()
	u, err := at.Parse(cleanLink(link))
	if err != nil {
		return link
	}
	return u.String()
}

// rewriteLinkHeader translates the targets of a Link header (RFC 8288): the text within <>, outside of quotes.
func rewriteLinkHeader(value string, links *linkMap) string {
	var out strings.Builder
	quoted := false
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case quoted && c == '\\' && i+1 < len(value):
			out.WriteByte(c)
			i++
			out.WriteByte(value[i])
			continue
		case c == '"':
			quoted = !quoted
		case c == '<' && !quoted:
			if end := strings.IndexByte(value[i:], '>'); end > 0 {
				translated, _ := links.translate(value[i+1 : i+end])
				out.WriteString("<" + translated + ">")
				i += end
				continue
			}
		}
		out.WriteByte(c)
	}
	return out.String()
}

// rewriteRefresh translates the link of a Refresh header or a meta refresh: "5; url=/x".
func rewriteRefresh(value string, links *linkMap) string {
	i := strings.IndexAny(value, ";,")
	if i < 0 {
		return value
	}
	head, link := value[:i+1], strings.TrimLeft(value[i+1:], " \t\n\f\r")
	if len(link) >= 3 && strings.EqualFold(link[:3], "url") {
		if after, ok := strings.CutPrefix(strings.TrimLeft(link[3:], " \t\n\f\r"), "="); ok {
			link = strings.TrimLeft(after, " \t\n\f\r")
		}
	}
	if link == "" {
		return value
	}
	if quote := link[0]; quote == '"' || quote == '\'' {
		link = link[1:]
		if end := strings.IndexByte(link, quote); end >= 0 {
			link = link[:end]
		}
	}
	translated, _ := links.translate(link)
	if translated == link {
		return value
	}
	return head + " url=" + translated
}
