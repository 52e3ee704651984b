package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The aliases of the platform.
const (
	Production = "Production"
	Canary     = "Canary"
	Staging    = "Staging"
)

// Aliases in the order they are listed.
var Aliases = []string{Production, Canary, Staging}

// CanonicalAlias is the alias as the platform writes it, from any case.
func CanonicalAlias(s string) (string, bool) {
	for _, a := range Aliases {
		if len(s) == len(a) && strings.EqualFold(s, a) {
			return a, true
		}
	}
	return "", false
}

// ParseAliases reads PRELOAD_ALIASES: a comma-separated list, "all" or "none".
func ParseAliases(s string) ([]string, error) {
	var out []string
	if strings.EqualFold(strings.TrimSpace(s), "none") {
		return out, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if strings.EqualFold(part, "all") {
			return Aliases, nil
		}
		a, ok := CanonicalAlias(part)
		if !ok {
			return nil, fmt.Errorf("PRELOAD_ALIASES has %q; it must be all, none, or a list of %s", part, strings.Join(Aliases, ", "))
		}
		out = append(out, a)
	}
	return out, nil
}

// UpperName is a model's name on the platform, TrackerName its name in the tracker.
func UpperName(s string) string { return strings.ToUpper(s) }

// TrackerName is the inverse of UpperName for the names this platform gives.
func TrackerName(s string) string { return strings.ToLower(s) }

// appendString appends s as JSON.
func appendString(dst []byte, s string) []byte {
	b, _ := json.Marshal(s) // strings always have a JSON form
	return append(dst, b...)
}
