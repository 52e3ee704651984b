// Package identity maps accounts of a forge to principals. Only an account that the forge vouches for counts: the
// sender of an authenticated delivery. The author that a commit names is free text, so it identifies no one.
package identity

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
)

// The sources of identities.
const (
	ForgeA = "forge-a"
	ForgeB = "forge-b"
	// Local is any account that may write to the model repository on this machine; the repository has no accounts.
	Local = "local"
)

// maxLogin limits an account's name, in bytes.
const maxLogin = 255

// Identity is an account that a source vouches for. The zero value is an unknown account.
type Identity struct {
	Source string
	// Login is the account's name; empty for Local.
	Login string
}

func (i Identity) key() string {
	if i.Source == Local {
		return Local
	}
	return i.Source + ":" + auth.FoldName(i.Login)
}

// String returns an account as the ledger shows it; empty if unknown.
func (i Identity) String() string {
	switch {
	case i.Source == Local:
		return Local
	case i.Source == "" || i.Login == "":
		return ""
	}
	return i.Source + ":" + i.Login
}

// Map maps accounts to principals.
type Map struct{ principals map[string]string }

// Parse reads MODELREPO_IDENTITIES_JSON: {"forge-a:<user name>": "<principal>", "forge-b:<login>": …, "local": …}.
// Accounts are compared without case. Empty text maps no accounts.
func Parse(text string) (Map, error) {
	m := Map{principals: map[string]string{}}
	if strings.TrimSpace(text) == "" {
		return m, nil
	}
	var raw map[string]string
	if err := service.ParseForeignJSON([]byte(text), &raw, false); err != nil {
		return m, fmt.Errorf("must be a JSON object of strings: %s", problem.From(err).Detail)
	}
	var faults []error
	for _, account := range slices.Sorted(maps.Keys(raw)) {
		source, login, _ := strings.Cut(account, ":")
		id := Identity{source, strings.TrimSpace(login)}
		name := auth.NormalizeName(raw[account])
		switch key := id.key(); {
		case account != Local && (source != ForgeA && source != ForgeB || id.Login == "" || len(id.Login) > maxLogin):
			faults = append(faults, fmt.Errorf("%q: must be forge-a:<user name>, forge-b:<login> or local", account))
		case m.principals[key] != "":
			faults = append(faults, fmt.Errorf("%q: appears twice; case is ignored", account))
		case name == "":
			faults = append(faults, fmt.Errorf("%q: names no principal", account))
		case name == auth.LegacyPrincipal && account != Local:
			faults = append(faults, fmt.Errorf("%q: %q is exempt from the separation of duties, so only %q may map to it; name the person's own principal", account, name, Local))
		case name != auth.LegacyPrincipal && auth.Reserved(name):
			faults = append(faults, fmt.Errorf("%q: %q is a name of the platform's own", account, name))
		default:
			m.principals[key] = name
		}
	}
	return m, errors.Join(faults...)
}

// FromMap restores a map from the result of Entries. A forge account that an earlier version allowed to map to the
// legacy principal becomes unknown.
func FromMap(entries map[string]string) Map {
	kept := maps.Clone(entries)
	maps.DeleteFunc(kept, func(account, name string) bool { return name == auth.LegacyPrincipal && account != Local })
	return Map{principals: kept}
}

// Entries returns the principals by account.
func (m Map) Entries() map[string]string { return m.principals }

// Principal returns the principal of an account; known is false for one that is not mapped.
func (m Map) Principal(i Identity) (name string, known bool) {
	if i.String() == "" {
		return "", false
	}
	name, known = m.principals[i.key()]
	return name, known
}
