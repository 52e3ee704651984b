package gatewayapi

import "strings"

// MatchesHost reports whether a host matches a pattern, which may begin with a wildcard. A wildcard matches one or more
// labels; an empty pattern matches every host.
func MatchesHost(pattern, host string) bool {
	pattern, host = strings.ToLower(pattern), strings.ToLower(host)
	if suffix, wild := strings.CutPrefix(pattern, "*."); wild {
		return strings.HasSuffix(host, "."+suffix)
	}
	return pattern == "" || pattern == host
}

// Intersects reports whether two patterns have a host in common.
func Intersects(a, b string) bool {
	return MatchesHost(a, b) || MatchesHost(b, a) || strings.EqualFold(a, b)
}
