package mlops

import (
	"slices"
	"strconv"
	"strings"
)

// The platform's aliases, in order of precedence for a model's version.
const (
	production = "Production"
	canary     = "Canary"
	staging    = "Staging"
)

var ladder = []string{production, canary, staging}

// modelName returns the platform's spelling of a model's name: names are case-insensitive.
func modelName(s string) string { return strings.ToUpper(s) }

// aliasName returns the canonical spelling of a platform alias in any case; other aliases are unchanged.
func aliasName(s string) string {
	if i := slices.IndexFunc(ladder, func(a string) bool { return strings.EqualFold(a, s) }); i >= 0 {
		return ladder[i]
	}
	return s
}

// versionNumber returns 0 if s is not a version number.
func versionNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// nullableVersion returns nil for no version.
func nullableVersion(s *string) *int {
	if s == nil {
		return nil
	}
	if n := versionNumber(*s); n > 0 {
		return &n
	}
	return nil
}
