package caller

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
)

// list is one of the lists of keys.
type list struct {
	role     guard.Role
	prefix   string
	variable string
	digests  [][sha256.Size]byte
}

const (
	// keyPrefix is the prefix of all keys and of no delegation.
	keyPrefix = "ki-"
	// readOnlyPrefix is also the prefix of demo keys.
	readOnlyPrefix = keyPrefix + "ro-"
)

// shortKey is the length of a key's secret part below which a warning names it.
const shortKey = 16

func newLists() []list {
	return []list{
		{role: guard.Admin, prefix: keyPrefix + "admin-", variable: "ASSISTANT_ADMIN_KEYS"},
		{role: guard.Operator, prefix: keyPrefix + "op-", variable: "ASSISTANT_OPERATOR_KEYS"},
		{role: guard.Readonly, prefix: readOnlyPrefix, variable: "ASSISTANT_READONLY_KEYS"},
		{role: guard.Alerts, prefix: keyPrefix + "alert-", variable: "ASSISTANT_ALERT_KEYS"},
	}
}

// read parses a comma-separated list. Faults and warnings refer to an entry by number, since it is secret.
func (l *list) read(text string) (faults []error, warnings []string) {
	n := 0
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		n++
		secret, own := strings.CutPrefix(entry, l.prefix)
		why := ""
		switch {
		case !own:
			why = "does not begin with " + l.prefix
		case secret == "":
			why = "is the bare prefix"
		case auth.Placeholder(entry), auth.Placeholder(secret):
			why = "is a placeholder; set a random value"
		case !isVisibleASCII(entry):
			why = "has blanks or characters that no header can carry"
		}
		if why != "" {
			faults = append(faults, fmt.Errorf("%s: entry %d %s", l.variable, n, why))
			continue
		}
		if len(secret) < shortKey {
			warnings = append(warnings, fmt.Sprintf("%s: entry %d has %d characters after its prefix; use at least %d", l.variable, n, len(secret), shortKey))
		}
		l.digests = append(l.digests, sha256.Sum256([]byte(entry)))
	}
	return faults, warnings
}

// has compares digests with every entry, so that the time reveals neither how much of a key is right nor which entry
// matched.
func (l *list) has(key string) bool {
	sum := sha256.Sum256([]byte(key))
	found := 0
	for i := range l.digests {
		found |= subtle.ConstantTimeCompare(sum[:], l.digests[i][:])
	}
	return found == 1
}

// isVisibleASCII reports whether s is ASCII without blanks and controls.
func isVisibleASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

var keyID = regexp.MustCompile(`^[0-9A-Fa-f]{16}$`)

// KeyID returns the id under which a key's holder is known and logged.
func KeyID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}
