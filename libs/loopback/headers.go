package loopback

import (
	"strings"

	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

const lockedDown = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// securityHeaders is the fields that confine a browser.
func securityHeaders(policy string) httpd.Header {
	return httpd.Header{
		{Name: "Cache-Control", Value: "no-store"},
		{Name: "X-Content-Type-Options", Value: "nosniff"},
		{Name: "X-Frame-Options", Value: "DENY"},
		{Name: "Referrer-Policy", Value: "no-referrer"},
		{Name: "Cross-Origin-Resource-Policy", Value: "same-origin"},
		{Name: "Cross-Origin-Opener-Policy", Value: "same-origin"},
		{Name: "Permissions-Policy", Value: "camera=(), microphone=(), geolocation=(), payment=()"},
		{Name: "Content-Security-Policy", Value: policy},
	}
}

// BaseHeaders are the fields of every answer that is no page: those that confine a
// browser, then [ServiceHeaders].
func BaseHeaders(server, version string) httpd.Header {
	return append(securityHeaders(lockedDown), ServiceHeaders(server, version)...)
}

// ServiceHeaders returns the fields that identify the server: a name and a version
// of its interface, as in "svc-control-tower/0.1", and the version of the build.
func ServiceHeaders(server, version string) httpd.Header {
	name, _, _ := strings.Cut(server, "/")
	return httpd.Header{
		{Name: "Server", Value: server},
		{Name: "X-SVC-Service", Value: name},
		{Name: "X-SVC-Service-Version", Value: version},
	}
}

// PageHeaders returns the fields of a page whose style and script elements carry
// the nonce; they replace those of [BaseHeaders] that confine a browser.
func PageHeaders(nonce string) httpd.Header {
	return securityHeaders(lockedDown + "; style-src 'nonce-" + nonce + "'; script-src 'nonce-" + nonce +
		"'; connect-src 'self'; img-src 'self' data: blob:")
}

// NewNonce makes a nonce for one page.
func NewNonce() string { return newSecret() }

// ValidName reports whether s may name a service or a build in a field: 1 to 128
// visible ASCII characters.
func ValidName(s string) bool {
	for _, c := range []byte(s) {
		if c < '!' || c > '~' {
			return false
		}
	}
	return 0 < len(s) && len(s) <= 128
}
