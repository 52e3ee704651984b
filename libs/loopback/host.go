package loopback

import (
	"strings"

	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

// GoodHost reports whether the request names this machine: one Host field,
// 127.0.0.1 or localhost in any case, with a port or without. The authority of an
// absolute-form target must pass as well, since it takes the place of Host.
func GoodHost(r *httpd.Request) bool {
	host, ok := r.Header.Sole("Host")
	return ok && goodAuthority(host) && (!r.Absolute || goodAuthority(r.Authority))
}

func goodAuthority(s string) bool {
	name, port, found := strings.Cut(s, ":")
	// Folding takes the long s for an s; the length distinguishes them.
	local := len(name) == len("localhost") && strings.EqualFold(name, "localhost")
	return (local || name == "127.0.0.1") && (!found || goodPort(port))
}

// goodPort takes 1 to 65535 in its one spelling.
func goodPort(s string) bool {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || i == 5 {
			return false
		}
		n = n*10 + int(s[i]-'0')
	}
	return s != "" && s[0] != '0' && n <= 65535
}
