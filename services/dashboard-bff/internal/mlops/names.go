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

// modelName is the platform's name of a model: names equal but for case are one model.
func modelName(s string) string { return strings.ToUpper(s) }

// aliasName is one of the platform's aliases as it is written, from any case; others stay as they are.
func aliasName(s string) string {
	if i := slices.IndexFunc(ladder, func(a string) bool { return strings.EqualFold(a, s) }); i >= 0 {
		return ladder[i]
	}
	return s
}

// versionNumber is 0 for what is no version number.
func versionNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// nullableVersion is nil for no version.
func nullableVersion(s *string) *int {
	if s == nil {
		return nil
	}
	if n := versionNumber(*s); n > 0 {
		return &n
	}
	return nil
}
