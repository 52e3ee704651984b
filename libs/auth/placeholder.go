package auth

import (
	"slices"
	"strings"
)

// Values that documentation puts where a secret belongs.
var (
	placeholderWords = []string{"example", "todo", "none", "null"}
	placeholderParts = []string{
		"changeme", "change-me", "change_me", "changethis", "placeholder",
		"your-token", "yourtoken", "replace-me", "replaceme",
	}
)

// Placeholder reports whether a secret was never set to a real value. An empty one
// is not a placeholder but absent.
func Placeholder(secret string) bool {
	s := strings.ToLower(strings.TrimSpace(secret))
	return slices.Contains(placeholderWords, s) ||
		slices.ContainsFunc(placeholderParts, func(part string) bool { return strings.Contains(s, part) })
}
