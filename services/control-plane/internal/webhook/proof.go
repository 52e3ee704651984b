package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/service"
)

// tolerance limits the clock difference of a signed delivery, and for how long a recorded one could be sent again.
const tolerance = 300 * time.Second

// Headers that carry a proof.
var (
	tokenHeaders     = []string{"X-Forge-A-Token", "X-Gitlab-Token"}
	signatureHeaders = []string{"X-Forge-B-Signature-256", "X-Hub-Signature-256"}
)

// Headers of a signed delivery of forge A.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// signingPrefix begins a signing token.
const signingPrefix = "whsec_"

// SigningKey returns the key in a token whsec_<base64>; nil for an empty token.
func SigningKey(token service.Secret) ([]byte, error) {
	if token == "" {
		return nil, nil
	}
	encoded, ok := strings.CutPrefix(token.Reveal(), signingPrefix)
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if !ok || err != nil || len(key) == 0 {
		return nil, errors.New("must be whsec_ followed by the key in base64") // without the value
	}
	return key, nil
}

// equalConstantTime compares in a time that reveals neither the values nor their lengths.
func equalConstantTime(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// tokenProof reports whether one of the headers has the secret.
func tokenProof(h http.Header, secret string) bool {
	found := false
	for _, name := range tokenHeaders {
		for _, v := range h.Values(name) {
			found = equalConstantTime(v, secret) || found
		}
	}
	return found
}

// signedProof checks a delivery signed by the scheme of standardwebhooks.com. With a nil body it checks what can be
// checked before the body is read.
func signedProof(h http.Header, key []byte, body []byte, now time.Time) bool {
	id, stamp, list := h.Get(headerID), h.Get(headerTimestamp), h.Get(headerSignature)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if id == "" || list == "" || err != nil {
		return false
	}
	if at := time.Unix(seconds, 0); at.Before(now.Add(-tolerance)) || at.After(now.Add(tolerance)) {
		return false
	}
	if body == nil {
		return true
	}
	want := signParts(key, []byte(id), []byte("."), []byte(stamp), []byte("."), body)
	found := false
	for _, entry := range strings.Fields(list) {
		version, encoded, _ := strings.Cut(entry, ",")
		got, err := base64.StdEncoding.DecodeString(encoded)
		found = (version == "v1" && err == nil && hmac.Equal(got, want)) || found
	}
	return found
}

// offeredSignatures returns the HMACs in the headers of forge B.
func offeredSignatures(h http.Header) [][]byte {
	var out [][]byte
	for _, name := range signatureHeaders {
		for _, v := range h.Values(name) {
			encoded, ok := strings.CutPrefix(v, "sha256=")
			if sum, err := hex.DecodeString(encoded); ok && err == nil && len(sum) == sha256.Size {
				out = append(out, sum)
			}
		}
	}
	return out
}

// hmacProof reports whether one of the headers has the body's HMAC under the secret.
func hmacProof(h http.Header, secret string, body []byte) bool {
	want := signParts([]byte(secret), body)
	found := false
	for _, got := range offeredSignatures(h) {
		found = hmac.Equal(got, want) || found
	}
	return found
}

func signParts(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}
