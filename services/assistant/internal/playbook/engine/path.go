package engine

import "strings"

// leastSegment is the minimum length of a path segment that can identify a service.
const leastSegment = 4

// ServesPath reports whether a path contains the name of a service: /api/orders matches orders, order-service and
// shop-order.
func ServesPath(service, path string) bool {
	own := plainLetters(service)
	for segment := range strings.SplitSeq(path, "/") {
		word := strings.TrimSuffix(strings.TrimSuffix(plainLetters(segment), "service"), "s")
		if len(word) >= leastSegment && strings.Contains(own, word) {
			return true
		}
	}
	return false
}

// plainLetters lower-cases a name and removes the separators between its words.
func plainLetters(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}

// OtherForPath returns the only one of services that a path names, provided the path names none of those it leads to.
func OtherForPath(path string, leadsTo, services []string) (string, bool) {
	other := ""
	for _, service := range leadsTo {
		if ServesPath(service, path) {
			return "", false
		}
	}
	for _, service := range services {
		if !ServesPath(service, path) {
			continue
		}
		if other != "" {
			return "", false
		}
		other = service
	}
	return other, other != ""
}
