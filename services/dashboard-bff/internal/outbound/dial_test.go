package outbound

import (
	"net/netip"
	"testing"
)

func TestNeverDialsForbiddenAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"169.254.169.254": "link-local", "169.254.170.2": "link-local", "fe80::1": "link-local", "fe80::1%eth0": "link-local", "224.0.0.1": "multicast", "ff02::1": "multicast",
		"255.255.255.255": "multicast", "0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified", "::ffff:169.254.169.254": "link-local", "::ffff:0.0.0.0": "unspecified",
		"100.100.100.200": "a cloud metadata address", "168.63.129.16": "a cloud metadata address", "192.0.0.192": "a cloud metadata address", "fd00:ec2::254": "a cloud metadata address",
		"64:ff9b::a9fe:a9fe": "link-local", "2002:a9fe:a9fe::1": "link-local", "::169.254.169.254": "link-local", "64:ff9b::7f00:1": "loopback, though the configured host is not",
		"127.0.0.1": "loopback, though the configured host is not", "127.8.8.8": "loopback, though the configured host is not", "::1": "loopback, though the configured host is not",
		"::ffff:127.0.0.1": "loopback, though the configured host is not",
		"10.0.0.1":         "", "192.168.1.1": "", "172.16.0.1": "", "100.64.0.1": "", "fd12::1": "", "8.8.8.8": "", "2001:db8::1": "",
	} {
		if got := forbidden(netip.MustParseAddr(address), false); got != want {
			t.Errorf("%s: %q; want %q", address, got, want)
		}
	}
	if got := forbidden(netip.MustParseAddr("127.0.0.1"), true); got != "" {
		t.Errorf("loopback for a configured loopback host: %q; want it allowed", got)
	}
}

func TestLoopbackOnlyIfTheConfiguredHostIsLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST.": true, "tracker.localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true,
		"tracker": false, "localhost.evil.example": false, "10.0.0.1": false, "0.0.0.0": false,
	} {
		if got := namesLoopback(host); got != want {
			t.Errorf("%s: %v; want %v", host, got, want)
		}
	}
}
