package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/mlp-platform/platform/libs/service"
)

// Headers of this package, in the form that net/http stores.
const (
	headerRewrite        = "X-Platform-Rewrite"
	headerUpstreamStatus = "X-Upstream-Status"
)

// hiddenFromUpstream are request headers that carry the caller's credentials or claims that a service might believe. Those
// of hop-by-hop are removed by [httputil.ReverseProxy].
var hiddenFromUpstream = makeSet(
	"Cookie", "Cookie2", "Authorization", "Proxy-Authorization", "Forwarded", "X-Real-Ip", "True-Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip",
	// One method in the request line and another in a header would be judged by the first and carried out as the second.
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "X-Original-Method",
	// Some frameworks route by these instead of by the request line.
	"X-Original-Url", "X-Rewrite-Url", "X-Original-Uri", "X-Script-Name",
	// Authenticating proxies name the person in these.
	"Remote-User", "X-Remote-User", "Remote-Groups", "X-Remote-Groups", "Remote-Email", "X-User", "X-Authenticated-User",
	// What the transport cannot vouch for.
	"Accept-Encoding", "Origin", "Referer", "Service-Worker",
)

// hiddenPrefixes are those of whole families.
var hiddenPrefixes = []string{"X-Platform-", "Sec-Fetch-", "X-Forwarded-", "X-Webauth-", "X-Auth-Request-", "X-Amzn-Oidc-", "X-Goog-"}

// hiddenFromBrowser are response headers by which a service would act on the dashboard's origin instead of on its own, and
// those that the proxy sets itself.
var hiddenFromBrowser = makeSet(
	"Set-Cookie", "Set-Cookie2", "Content-Security-Policy", "Content-Security-Policy-Report-Only", "X-Content-Security-Policy", "X-Webkit-Csp",
	"Strict-Transport-Security", "Public-Key-Pins", "Public-Key-Pins-Report-Only", "Expect-Ct", "Clear-Site-Data", "Alt-Svc", "Service-Worker-Allowed",
	"Nel", "Report-To", "Reporting-Endpoints", "Timing-Allow-Origin", "Origin-Agent-Cluster", "Accept-Ch", "Critical-Ch",
	"Cross-Origin-Opener-Policy", "Cross-Origin-Opener-Policy-Report-Only", "Cross-Origin-Embedder-Policy", "Cross-Origin-Embedder-Policy-Report-Only",
	"Cross-Origin-Resource-Policy", "Document-Policy", "Permissions-Policy", "Feature-Policy", "Referrer-Policy", "X-Frame-Options", "X-Content-Type-Options",
	"X-Xss-Protection", "X-Permitted-Cross-Domain-Policies", "Speculation-Rules", "Www-Authenticate", "Proxy-Authenticate", "Authentication-Info",
	"X-Request-Id", "Traceparent", "Tracestate", headerRewrite, headerUpstreamStatus, "X-Accel-Buffering", "X-Accel-Redirect", "X-Sendfile", "X-Dns-Prefetch-Control",
)

const hiddenCORS = "Access-Control-"

func makeSet(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[http.CanonicalHeaderKey(n)] = true
	}
	return set
}

// isHiddenFromUpstream reports whether a service never gets the header.
func isHiddenFromUpstream(name string) bool {
	if hiddenFromUpstream[name] {
		return true
	}
	for _, p := range hiddenPrefixes {
		if len(name) >= len(p) && strings.EqualFold(name[:len(p)], p) {
			return true
		}
	}
	// The same name to servers that make variables of headers, where - and _ are one.
	return strings.Contains(name, "_")
}

// cleanRequest sets the headers of a forwarded request: the caller's except for the hidden ones, and the caller's
// identity.
func (x *exchange) cleanRequest(h http.Header) {
	own, referer := h.Get("Origin"), h.Get("Referer")
	for name := range h {
		if isHiddenFromUpstream(name) {
			delete(h, name)
		}
	}
	if !x.socket {
		h.Del("Upgrade")
		h.Del("Connection")
	}
	public := x.origin.url
	h.Set("X-Forwarded-For", x.clientIP)
	h.Set("X-Forwarded-Proto", public.Scheme)
	h.Set("X-Forwarded-Host", public.Host)
	h.Set("X-Forwarded-Prefix", prefix(x.service))
	ctx := x.in.Context()
	if id := service.RequestID(ctx); id != "" {
		h.Set("X-Request-Id", id)
		if t := service.Traceparent(ctx); t != "" {
			h.Set("Traceparent", t)
		} else {
			h.Del("Traceparent") // one that cannot be read
		}
	}
	// A tool compares Origin and Referer with its own address, as far as it knows it; the proxy has compared the
	// browser's with the public one.
	if own != "" && own == x.origin.text {
		h.Set("Origin", x.target.Scheme+"://"+x.target.Host)
	}
	if path, ok := strings.CutPrefix(referer, x.origin.text+prefix(x.service)+"/"); ok {
		h.Set("Referer", x.target.Scheme+"://"+x.target.Host+x.target.EscapedPath()+"/"+path)
	}
	if x.acceptsGzip {
		h.Set("Accept-Encoding", "gzip")
	} else {
		h.Set("Accept-Encoding", "identity")
	}
}

// cleanResponse removes what must not reach the browser.
func cleanResponse(h http.Header) {
	for name := range h {
		if hiddenFromBrowser[name] || len(name) >= len(hiddenCORS) && strings.EqualFold(name[:len(hiddenCORS)], hiddenCORS) {
			delete(h, name)
		}
	}
	keepPrivate(h)
}

// keepPrivate marks answers as private: they are for callers with the role, not for everybody.
func keepPrivate(h http.Header) {
	values := h["Cache-Control"]
	if len(values) == 0 {
		h.Set("Cache-Control", "private, no-cache")
		return
	}
	kept := []string{"private"}
	for directive := range strings.SplitSeq(strings.Join(values, ","), ",") {
		directive = strings.TrimSpace(directive)
		name, _, _ := strings.Cut(strings.ToLower(directive), "=")
		switch name {
		case "", "public", "private", "s-maxage", "proxy-revalidate":
		default:
			kept = append(kept, directive)
		}
	}
	h.Set("Cache-Control", strings.Join(kept, ", "))
}

// acceptsGzip reports whether the caller reads gzip.
func acceptsGzip(h http.Header) bool {
	for offer := range strings.SplitSeq(strings.Join(h["Accept-Encoding"], ","), ",") {
		coding, parameters, _ := strings.Cut(strings.TrimSpace(offer), ";")
		coding = strings.ToLower(strings.TrimSpace(coding))
		if coding != "gzip" && coding != "x-gzip" && coding != "*" {
			continue
		}
		q := strings.ReplaceAll(strings.ToLower(parameters), " ", "")
		if rest, ok := strings.CutPrefix(q, "q=0"); ok && strings.Trim(rest, ".0") == "" {
			if coding == "*" {
				continue
			}
			return false
		}
		return true
	}
	return false
}

// originText returns scheme and host of a URL in lower case, without the scheme's default port.
func originText(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "http", "ws":
		host = strings.TrimSuffix(host, ":80")
	case "https", "wss":
		host = strings.TrimSuffix(host, ":443")
	}
	return scheme + "://" + host
}
