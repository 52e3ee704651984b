package chain

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
)

// Vouch is the statement of the key By, with its signature, that another key is genuine.
type Vouch struct {
	By        string `json:"by"`
	Signature []byte `json:"signature"` // base64 in JSON
}

func vouchText(public ed25519.PublicKey, createdAt string) []byte {
	return fmt.Appendf(nil, "platform-audit-key/v1\n%s\n%s\n%s\n", KeyID(public), base64.StdEncoding.EncodeToString(public), createdAt)
}

// VouchFor signs a public key created at createdAt, in the format of Time.
func VouchFor(key ed25519.PrivateKey, public ed25519.PublicKey, createdAt string) Vouch {
	return Vouch{KeyID(key.Public().(ed25519.PublicKey)), ed25519.Sign(key, vouchText(public, createdAt))}
}

// Reach adds to k the keys that one of k vouches for, directly or through others. A key without such a voucher is never
// trusted, wherever it is stored.
func (k Keys) Reach(keys []BundleKey) Keys {
	out := maps.Clone(k)
	for more := true; more; {
		more = false
		for _, c := range keys {
			if _, have := out[c.KeyID]; !have && c.genuine() && out.vouches(c) {
				out[c.KeyID], more = c.PublicKey, true
			}
		}
	}
	return out
}

func (k Keys) vouches(c BundleKey) bool {
	for _, v := range c.Vouches {
		if by, ok := k[v.By]; ok && ed25519.Verify(by, vouchText(c.PublicKey, c.CreatedAt), v.Signature) {
			return true
		}
	}
	return false
}

// Has reports whether k contains exactly this key.
func (k Keys) Has(public ed25519.PublicKey) bool {
	mine, ok := k[KeyID(public)]
	return ok && mine.Equal(public)
}

// ParseKeys parses comma-separated public keys in hex or base64.
func ParseKeys(list string) (Keys, error) {
	out := Keys{}
	for text := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		public, err := ParsePublic(text)
		if err != nil {
			return nil, err
		}
		out[KeyID(public)] = public
	}
	return out, nil
}
