package pyfunc

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// newClient calls scoring servers. It goes to the address that was checked, never through a proxy, and follows no
// redirect: a server must not send the service elsewhere.
func newClient(connections int) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialChecked, MaxIdleConnsPerHost: connections, IdleConnTimeout: 60 * time.Second,
			TLSHandshakeTimeout: 5 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// dialChecked judges each address that a name resolves to at the moment of the connection.
func dialChecked(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	loopback := namesLoopback(host)
	d := net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second, Control: func(_, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		if why := forbiddenAddress(to.Addr(), loopback); why != "" {
			return &forbiddenError{why}
		}
		return nil
	}}
	return d.DialContext(ctx, network, address)
}

// forbiddenError explains why an address is refused, without the address.
type forbiddenError struct{ why string }

func (e *forbiddenError) Error() string { return "its name leads to " + e.why }

// describeFailure explains why a server was not reached, without the error's text: network errors contain addresses,
// and GET /health is public.
func describeFailure(err error) string {
	var forbidden *forbiddenError
	var name *net.DNSError
	var timeout net.Error
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &forbidden):
		return forbidden.Error()
	case errors.As(err, &name):
		return "its name is not found"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was reset"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, syscall.ETIMEDOUT):
		return "the connection timed out"
	case errors.As(err, &certificate), errors.As(err, &plain):
		return "TLS failed"
	}
	return "the connection failed"
}

// forbiddenHost judges a host that is an address; a name is judged when it is resolved.
func forbiddenHost(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		return forbiddenAddress(a, namesLoopback(host))
	}
	return ""
}

// metadataV6 is where some clouds serve their credentials over IPv6; over IPv4 that is link-local.
var metadataV6 = netip.MustParseAddr("fd00:ec2::254")

// forbiddenAddress is why an address is refused; empty if it is not. Private networks are where scoring servers are;
// loopback is meant only where the operator has written it.
func forbiddenAddress(a netip.Addr, loopback bool) string {
	switch a = a.Unmap().WithZone(""); {
	case a.IsLinkLocalUnicast(), a.IsLinkLocalMulticast(), a == metadataV6:
		return "a link-local address, where clouds serve credentials"
	case a.IsUnspecified(), a.IsMulticast():
		return "no address of one host"
	case a.IsLoopback() && !loopback:
		return "loopback, which the URL does not name"
	}
	return ""
}

func namesLoopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
