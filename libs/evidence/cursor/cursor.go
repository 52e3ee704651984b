// Package cursor encodes the opaque cursors of list pages: the place at which the next
// page starts, sealed with the store's key, so that only cursors that this store issued
// for this listing are accepted.
package cursor

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Kind is the listing a cursor belongs to.
type Kind string

// The listings that page.
const (
	Runs        Kind = "product-spine-run-list-cursor-v1"
	WorkUnits   Kind = "product-spine-work-unit-list-cursor-v1"
	Events      Kind = "product-spine-event-list-cursor-v1"
	Connections Kind = "connector-control-connection-list-cursor-v1"
)

// ErrInvalid is a cursor that this store did not issue for this listing.
var ErrInvalid = errors.New("the cursor was not issued by this service for this listing")

// maxLength limits a cursor in characters: the longest id in base64 needs half.
const maxLength = 1024

// macLength is the number of hex digits of the seal in a cursor.
const macLength = 32

// Encode seals the place after which the next page starts: the last id of the page,
// of events the decimal sequence. The key is the store's cursor_key, raw.
func Encode(key []byte, kind Kind, after string) string {
	o := canon.NewObject(
		canon.Member{Key: "after", Value: after},
		canon.Member{Key: "kind", Value: string(kind)},
	)
	mac := hmac.New(sha256.New, key)
	mac.Write(bytesOf(o))
	o.Set("mac", hex.EncodeToString(mac.Sum(nil))[:macLength])
	return base64.URLEncoding.EncodeToString(bytesOf(o))
}

func bytesOf(o *canon.Object) []byte {
	b, err := canon.C1(o)
	if err != nil { // the callers' strings are identifiers, so ASCII
		panic(err)
	}
	return b
}

// Decode opens a cursor and returns the place after which the next page starts, or
// ErrInvalid. Only the exact text that Encode wrote is accepted: a cursor has one
// spelling.
func Decode(key []byte, kind Kind, text string) (after string, err error) {
	after, err = openCursor(kind, text)
	if err != nil || !hmac.Equal([]byte(Encode(key, kind, after)), []byte(text)) {
		return "", ErrInvalid
	}
	return after, nil
}

// Check refuses, without the key, a text that cannot be a cursor of this listing:
// ErrInvalid. One that passes may still be of another store.
func Check(kind Kind, text string) error {
	_, err := openCursor(kind, text)
	return err
}

// openCursor reads the place out of a cursor that has the form of this listing's, without
// checking its seal.
func openCursor(kind Kind, text string) (after string, err error) {
	if len(text) > maxLength {
		return "", ErrInvalid
	}
	raw, err := base64.URLEncoding.Strict().DecodeString(text)
	if err != nil {
		return "", ErrInvalid
	}
	v, err := canon.Parse(raw, canon.ObjectRoot())
	if err != nil {
		return "", ErrInvalid
	}
	o := v.(*canon.Object)
	member := func(key string) string {
		value, _ := o.Get(key)
		s, _ := value.(string)
		return s
	}
	after = member("after")
	if o.Len() != 3 || member("kind") != string(kind) || len(member("mac")) != macLength || !isPlaceOf(kind, after) {
		return "", ErrInvalid
	}
	return after, nil
}

// isPlaceOf reports whether after can be a place in the listing.
func isPlaceOf(kind Kind, after string) bool {
	if kind != Events {
		return spine.IsIdentifier(after)
	}
	return after != "" && len(after) <= 18 && strings.Trim(after, "0123456789") == ""
}
