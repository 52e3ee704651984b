package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// errForbiddenAddress means that a service's name leads to an address that the proxy never connects to.
var errForbiddenAddress = errors.New("address refused")

// resolver finds the addresses of a host; [net.Resolver] does.
type resolver interface {
	// LookupNetIP gives the addresses of host; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// guard dials checked addresses only. The name is resolved here, once, and the connection goes to exactly the address
// that was checked: a name that resolves to another address a moment later gains nothing.
type guard struct {
	resolver resolver
	dialer   net.Dialer
}

// dial opens a connection for [http.Transport].
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, g.dialer.Timeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, err := g.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	loopback := namesLoopback(host)
	var failure error
	for _, a := range addresses {
		if why := forbidden(a, loopback); why != "" {
			failure = errors.Join(failure, fmt.Errorf("%s is %s: %w", a, why, errForbiddenAddress))
			continue
		}
		conn, err := g.dialer.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		failure = errors.Join(failure, err)
	}
	if failure == nil {
		failure = fmt.Errorf("%s has no address", host)
	}
	return nil, failure
}

func (g *guard) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	found, err := g.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found, nil
}

// namesLoopback reports whether a configured host is itself loopback, so that the operator meant a loopback address.
func namesLoopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

var (
	// metadata are the addresses of cloud metadata services that are not link-local.
	metadata = []netip.Addr{
		netip.MustParseAddr("100.100.100.200"),  // Alibaba Cloud
		netip.MustParseAddr("168.63.129.16"),    // Azure
		netip.MustParseAddr("192.0.0.192"),      // Oracle Cloud
		netip.MustParseAddr("fd00:ec2::254"),    // AWS
		netip.MustParseAddr("fd20:ce::254"),     // Google Cloud
		netip.MustParseAddr("fd00:42::42"),      // Scaleway
		netip.MustParseAddr("fd00:a9fe:a9fe::"), // OpenStack
	}
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.MustParseAddr("255.255.255.255")
	// embeddings are prefixes of IPv6 addresses that embed an IPv4 address at a byte offset.
	embeddings = []struct {
		prefix netip.Prefix
		offset int
	}{
		{netip.MustParsePrefix("64:ff9b::/96"), 12}, // NAT64
		{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
		{netip.MustParsePrefix("2002::/16"), 2}, // 6to4
		{netip.MustParsePrefix("::/96"), 12},    // IPv4-compatible
		{netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
	}
)

// forbidden returns why connections to an address are refused, "" if they are allowed.
func forbidden(a netip.Addr, loopback bool) string {
	a = a.Unmap()
	for i := range metadata {
		if a.WithZone("") == metadata[i] {
			return "a cloud metadata address"
		}
	}
	switch {
	case !a.IsValid() || a.IsUnspecified() || thisNetwork.Contains(a):
		return "unspecified"
	case a.IsLoopback():
		if !loopback {
			return "loopback, though the configured host is not"
		}
		return ""
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a.IsMulticast() || a == broadcast:
		return "multicast"
	}
	if a.Is6() {
		for _, e := range embeddings {
			if e.prefix.Contains(a.WithZone("")) {
				raw := a.As16()
				return forbidden(netip.AddrFrom4([4]byte(raw[e.offset:e.offset+4])), loopback)
			}
		}
	}
	return ""
}

// timeouts of calls to services.
type timeouts struct {
	connect time.Duration // the name's resolution and TLS included
	header  time.Duration // from the end of the request to the first byte of the answer
	idle    time.Duration // between two bytes of a body, either way
}

var defaultTimeouts = timeouts{connect: 2 * time.Second, header: 30 * time.Second, idle: time.Minute}

// newTransport connects to services. It follows no redirect, knows no environment's proxy, which would resolve names
// out of the guard's sight, and leaves bodies as they are.
func newTransport(r resolver, t timeouts) *http.Transport {
	g := &guard{resolver: r, dialer: net.Dialer{Timeout: t.connect, KeepAlive: 30 * time.Second}}
	return &http.Transport{
		DialContext: g.dial, TLSHandshakeTimeout: t.connect, ResponseHeaderTimeout: t.header,
		ExpectContinueTimeout: time.Second, IdleConnTimeout: time.Minute, MaxIdleConns: 256, MaxIdleConnsPerHost: 64,
		MaxResponseHeaderBytes: 256 << 10, DisableCompression: true, ForceAttemptHTTP2: true,
	}
}
