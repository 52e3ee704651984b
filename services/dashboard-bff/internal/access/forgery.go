package access

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// provesOwnPage reports whether the dashboard's own page sent the request, by the first proof that holds. Browsers let
// no other page send the header, forge Sec-Fetch-Site or lie about Origin.
func (g *Guard) provesOwnPage(r *http.Request) bool {
	return onlyValue(r, "X-PLATFORM-CSRF") == "1" || onlyValue(r, "Sec-Fetch-Site") == "same-origin" || g.SameOrigin(r)
}

// onlyValue returns the value of a header that occurs once, else "".
func onlyValue(r *http.Request, name string) string {
	if values := r.Header.Values(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

// SameOrigin reports whether the header Origin is the dashboard's own origin: that of the public URL, else that of the
// request. It is also the check before a WebSocket is opened, which browsers let any page ask for.
func (g *Guard) SameOrigin(r *http.Request) bool {
	origin, err := url.Parse(onlyValue(r, "Origin")) // "null", of sandboxed pages, has no host
	if err != nil || origin.Host == "" || origin.User != nil || origin.Path != "" || origin.RawQuery != "" || origin.Fragment != "" {
		return false
	}
	own := g.public
	if own == nil {
		own = &url.URL{Scheme: "http", Host: r.Host}
		if r.TLS != nil {
			own.Scheme = "https"
		}
	}
	return normalizeOrigin(origin) == normalizeOrigin(own)
}

// normalizeOrigin returns scheme, host and port in canonical form.
func normalizeOrigin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), port)
}

func refuseForgery() error {
	return fault.CSRFRefused.New("A change with a session cookie must come from the dashboard's own page; send the header X-PLATFORM-CSRF: 1, or use a bearer token.")
}
