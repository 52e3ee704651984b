package auth

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Names that the platform itself uses. A person or a program with one of them could be taken for the platform, which
// separation of duties exempts, or for an unknown person.
var (
	reservedNames    = []string{LegacyPrincipal, "external", "unknown"}
	reservedPrefixes = []string{systemPrefix, "tracker:", "forge:", "modelrepo:"}
)

// systemPrefix starts the names of the platform's own components.
const systemPrefix = "system:"

// NormalizeName returns a principal's name as it is stored and compared: in Unicode's NFC, without space
// around it. One name that is typed on two systems may arrive as different bytes.
func NormalizeName(name string) string { return norm.NFC.String(strings.TrimSpace(name)) }

// FoldName returns what two names have in common if they could be taken for the same person: case does not
// matter.
func FoldName(name string) string { return norm.NFC.String(cases.Fold().String(NormalizeName(name))) }

// SameName reports whether two names belong to one principal.
func SameName(a, b string) bool { return FoldName(a) == FoldName(b) }

// Reserved reports whether no credential, delegation or forge identity may have the name.
func Reserved(name string) bool {
	name = FoldName(name)
	return slices.Contains(reservedNames, name) ||
		slices.ContainsFunc(reservedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// System reports whether the name is that of one of the platform's own components.
func System(name string) bool { return strings.HasPrefix(name, systemPrefix) }

// checkNames refuses reserved names, and two names that differ in case alone.
func checkNames(entries []entry) error {
	seen := map[string]string{}
	for i, e := range entries {
		if Reserved(e.principal) {
			return fmt.Errorf("entry %d: the principal %q is a name reserved for the platform; choose another", i+1, e.principal)
		}
		folded := FoldName(e.principal)
		if other, ok := seen[folded]; ok && other != e.principal {
			return fmt.Errorf("entry %d: the principals %q and %q differ only in case; they would be taken for one person", i+1, other, e.principal)
		}
		seen[folded] = e.principal
	}
	return nil
}
