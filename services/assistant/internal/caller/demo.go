package caller

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Demo creates and checks demo keys: read-only keys that contain their holder's address and their expiry, signed with a
// secret, so that nothing needs to be stored. A new secret invalidates all keys.
type Demo struct {
	secret []byte
	now    func() time.Time
}

// signatureLen is the number of hex digits of the HMAC in a key.
const signatureLen = 32

// Mint creates a key that is valid until expiry, in unix seconds.
func (d *Demo) Mint(email string, expiry int64) string {
	payload := base64.RawURLEncoding.EncodeToString([]byte(email + ":" + strconv.FormatInt(expiry, 10)))
	return readOnlyPrefix + payload + "." + d.sign(payload)
}

// Valid reports whether key was made with this secret and has not expired.
func (d *Demo) Valid(key string) bool {
	sealed, ok := strings.CutPrefix(key, readOnlyPrefix)
	dot := strings.LastIndexByte(sealed, '.')
	if !ok || dot < 0 {
		return false
	}
	payload, signature := sealed[:dot], sealed[dot+1:]
	if !hmac.Equal([]byte(signature), []byte(d.sign(payload))) {
		return false
	}
	expiry, ok := expiryOf(payload)
	return ok && expiry > d.now().Unix()
}

func (d *Demo) sign(payload string) string {
	h := hmac.New(sha256.New, d.secret)
	h.Write([]byte(payload))
	return hex.EncodeToString(h.Sum(nil))[:signatureLen]
}

// expiryOf parses the digits after the last colon: an address may itself contain colons.
func expiryOf(payload string) (int64, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return 0, false
	}
	colon := strings.LastIndexByte(string(raw), ':')
	if colon < 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[colon+1:]), 10, 63) // accepts digits only, no sign
	return int64(n), err == nil
}
