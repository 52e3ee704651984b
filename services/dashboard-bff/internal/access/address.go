package access

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// proxies are the senders whose X-Forwarded-For is believed.
type proxies []netip.Prefix

func parseProxies(list []string) (proxies, error) {
	var out proxies
	for _, text := range list {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, err := netip.ParseAddr(text)
			if err != nil {
				return nil, fmt.Errorf("DASHBOARD_TRUSTED_PROXIES: %q is no address and no prefix such as 10.0.0.0/8", text)
			}
			address = address.Unmap().WithZone("")
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

// CheckProxies refuses a list of trusted proxies that cannot be read.
func CheckProxies(list []string) error {
	_, err := parseProxies(list)
	return err
}

func (p proxies) contain(address netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// Address returns the client's address: the TCP peer, or, if that is a trusted proxy, the rightmost entry of
// X-Forwarded-For that is not one. The client can forge all entries to the left of it.
func (g *Guard) Address(r *http.Request) netip.Addr {
	address := parseAddress(r.RemoteAddr)
	if !address.IsValid() || !g.proxies.contain(address) {
		return address
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop := parseAddress(strings.TrimSpace(hops[i]))
		if !hop.IsValid() { // written by no proxy of ours: the last one known is all there is
			return address
		}
		if address = hop; !g.proxies.contain(hop) {
			return address
		}
	}
	return address
}

// parseAddress reads an address with or without a port; IPv4 in IPv6 becomes IPv4.
func parseAddress(text string) netip.Addr {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap().WithZone("")
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		return netip.Addr{}
	}
	return address.Unmap().WithZone("")
}

// subscriberOf returns the network of one subscriber: for IPv6 the first 64 bits, because a subscriber can vary the
// rest.
func subscriberOf(address netip.Addr) string {
	switch {
	case !address.IsValid():
		return "unknown"
	case address.Is4():
		return address.String()
	}
	return netip.PrefixFrom(address, 64).Masked().String()
}
