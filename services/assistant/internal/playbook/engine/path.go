package engine

import "strings"

// leastSegment is how long a part of a path has to be to tell which service it is for.
const leastSegment = 4

// ServesPath reports whether a service has a name that a path tells of: /api/orders is for orders, order-service and shop-order.
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

// plainLetters is a name in small letters without what separates its words.
func plainLetters(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}

// OtherForPath is the one of some services that a path tells of, where it tells of none of those it leads to.
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
