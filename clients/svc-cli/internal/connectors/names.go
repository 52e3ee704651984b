package connectors

import (
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// checkNames checks the name of every key, at any depth, before any value: a name
// that indicates a secret is a worse fault than any other in the profile. The one
// place for a reference to a secret is the object auth of a profile itself.
func checkNames(rd *closed.Reader, v canon.Value, path string, inAuth bool) {
	switch v := v.(type) {
	case canon.Array:
		for i, e := range v {
			checkNames(rd, e, canon.Element(path, i), false)
		}
	case *canon.Object:
		for key, e := range v.All() {
			at := canon.Pointer(path, key)
			lower := strings.ToLower(key)
			switch {
			case !isFieldName(key):
				// The name itself is kept out of the fault: it may be anything.
				rd.Fail(InvalidFieldName, path, "a name of this object is none of a field: a letter, digit or _, then up to 127 of those and .-")
			case inAuth && key == "secret_ref":
			case strings.HasSuffix(lower, "secret_ref"):
				rd.Fail(SecretRefOutsideAuth, at, "a secret is referred to in auth.secret_ref only")
			case spine.IsCredentialKey(key):
				rd.Fail(InlineSecretForbidden, at, "a field of this name may hold a secret; name a variable of the environment in auth.secret_ref instead")
			}
			if !rd.OK() {
				return
			}
			checkNames(rd, e, at, key == "auth" && isProfilePath(path))
		}
	}
}

// isProfilePath reports whether path is that of a profile: the document or an
// element of the array that is the document.
func isProfilePath(path string) bool {
	return path == "" || strings.Trim(path[1:], "0123456789") == ""
}

func isFieldName(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '.' || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}
