package idp

import "testing"

func TestConnectionsToTheMachinesFabricAreRefused(t *testing.T) {
	t.Parallel()
	for address, allowed := range map[string]bool{
		"169.254.169.254:80": false, "[fe80::1]:443": false, "[::ffff:169.254.169.254]:80": false, "0.0.0.0:80": false, "[::]:80": false,
		"224.0.0.1:80": false, "100.100.100.200:80": false, "[fd00:ec2::254]:80": false, "192.0.0.192:80": false, "no address": false,
		"127.0.0.1:8080": true, "10.1.2.3:443": true, "203.0.113.7:443": true, "[2001:db8::1]:443": true,
	} {
		if err := refuseFabric("tcp", address, nil); (err == nil) != allowed {
			t.Errorf("%s: got %v, want allowed %v", address, err, allowed)
		}
	}
}
