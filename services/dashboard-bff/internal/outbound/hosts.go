package outbound

import (
	"net"
	"net/url"
	"strings"
)

// ParseURL parses the address of a service. msg is what is wrong with it, without the address, which may be a secret;
// empty if nothing is.
func ParseURL(value string) (u *url.URL, msg string) {
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		return nil, "must be an http or https URL"
	case u.User != nil:
		return nil, "must hold no user and no password; secrets have keys of their own"
	}
	return u, ""
}

// Hosts are pairs host:port in lower case.
type Hosts map[string]bool

// Add takes host:port, or a host, which allows the default ports only: listing a machine's web server does not allow
// access to its database.
func (h Hosts) Add(entry string) {
	entry = strings.ToLower(strings.TrimSpace(entry))
	if entry == "" {
		return
	}
	if host, port, err := net.SplitHostPort(entry); err == nil {
		h[net.JoinHostPort(host, port)] = true
		return
	}
	for _, port := range defaultPorts {
		h[net.JoinHostPort(strings.Trim(entry, "[]"), port)] = true
	}
}

// Allow reports whether calls may go to the URL's host and port.
func (h Hosts) Allow(u *url.URL) bool { return h[HostPort(u)] }

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// HostPort returns where calls to the URL go.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = defaultPorts[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), port)
}
