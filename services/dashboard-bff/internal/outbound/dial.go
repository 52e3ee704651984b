// Package outbound decides where the dashboard may connect to: the hosts that an operator lists, and of their addresses
// none that is a trap.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// ErrForbiddenAddress means that a service's name leads to an address that the dashboard never connects to.
var ErrForbiddenAddress = errors.New("address refused")

// Resolver finds the addresses of a host; [net.Resolver] does.
type Resolver interface {
	// LookupNetIP gives the addresses of host; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Guard dials checked addresses only. The name is resolved here, once, and the connection goes to exactly the address
// that was checked: a name that resolves to another address a moment later gains nothing.
type Guard struct {
	Resolver Resolver
	Dialer   net.Dialer
}

// Dial opens a connection for [http.Transport].
func (g *Guard) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, g.Dialer.Timeout)
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
			failure = errors.Join(failure, fmt.Errorf("%s is %s: %w", a, why, ErrForbiddenAddress))
			continue
		}
		conn, err := g.Dialer.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
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

func (g *Guard) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	found, err := g.Resolver.LookupNetIP(ctx, "ip", host)
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
