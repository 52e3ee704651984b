package artifact

import (
	"net/url"
	"path"
	"strings"
	"unicode/utf8"
)

// Limits of a path, as in common file systems.
const (
	maxPath    = 1024
	maxElement = 255
)

// checkPath refuses anything but a plain path below the root, even if a client or proxy has escaped it more than once.
func checkPath(p string) error {
	if !validPath(p) {
		return ErrPath
	}
	// Each element separately, so that one which cannot be unescaped hides no other.
	for e := range strings.SplitSeq(p, "/") {
		for n := 0; ; n++ {
			q, err := url.PathUnescape(e)
			if err != nil || q == e {
				break // a per cent sign that escapes nothing is an ordinary character
			}
			if n == 3 || !validPath(q) {
				return ErrPath
			}
			e = q
		}
	}
	return nil
}

func validPath(p string) bool {
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
