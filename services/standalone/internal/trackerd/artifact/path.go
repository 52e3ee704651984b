package artifact

import (
	"net/url"
	"path"
	"strings"
	"unicode/utf8"
)

// Bounds of a path: what common file systems take.
const (
	maxPath    = 1024
	maxElement = 255
)

// checkPath refuses what is not a plain path below the root, also when a client
// or proxy has escaped it more often than once.
func checkPath(p string) error {
	for range 3 {
		if !plain(p) {
			return ErrPath
		}
		q, err := url.PathUnescape(p)
		if err != nil || q == p {
			return nil // a per cent sign that escapes nothing is an ordinary character
		}
		p = q
	}
	return ErrPath
}

func plain(p string) bool {
	if p == "" || len(p) > maxPath || !utf8.ValidString(p) || path.IsAbs(p) || p != path.Clean(p) || p == "." {
		return false
	}
	for e := range strings.SplitSeq(p, "/") {
		if e == ".." || len(e) > maxElement {
			return false
		}
	}
	return !strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
}
