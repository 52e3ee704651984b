// Package sites keeps web pages out of a server that listens on loopback, whatever credential a browser includes: a
// page of another site, and one whose own name was made to resolve to this machine (DNS rebinding).
package sites

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Guard hands requests on that name this server by localhost, an address or one of hosts, and that no
// page of another site sent to change something; deny answers the others.
func Guard(next http.Handler, hosts []string, deny func(w http.ResponseWriter, r *http.Request, reason string)) http.Handler {
	csrf := http.NewCrossOriginProtection()
	csrf.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deny(w, r, "Pages of other sites may not change anything here.")
	}))
	inner := csrf.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hostAllowed(r.Host, hosts) {
			deny(w, r, fmt.Sprintf("The host %q is not served here.", r.Host))
			return
		}
		inner.ServeHTTP(w, r)
	})
}

func hostAllowed(hostport string, hosts []string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") {
		return true
	}
	return slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) })
}
