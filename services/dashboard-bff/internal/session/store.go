// Package session keeps who is signed in: password tokens that can be revoked, and encrypted browser sessions of
// single sign-on. Both rest on a Store that replicas share.
package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// ErrNotFound means that the store has no live entry under this key. All other errors of a Store mean that it did
// not answer.
var ErrNotFound = errors.New("no such entry in the session store")

// Store keeps small values for a while, for all replicas. Keys are those of Key: an attacker who reads the store can
// use none of them. Its methods are safe for concurrent use; each answers within a few seconds.
type Store interface {
	// Put stores value under key for ttl, replacing any previous one. It is visible to all replicas on return.
	Put(ctx context.Context, key string, value []byte, ttl time.Duration) error
	// Get returns the value; ErrNotFound if there is none or its time is over.
	Get(ctx context.Context, key string) ([]byte, error)
	// Take is Get and Delete in one: of several callers exactly one gets the value, the others ErrNotFound.
	Take(ctx context.Context, key string) ([]byte, error)
	// Delete removes the entry; an absent one is no error.
	Delete(ctx context.Context, key string) error
}

// Key returns the store's key for an id: its SHA-256 in hex.
func Key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// storeTimeout limits one call to the store: people wait for it, and a page makes many requests.
const storeTimeout = 2 * time.Second

// checkEntry refuses entries that would be stored unencrypted or without expiry.
func checkEntry(key string, ttl time.Duration) error {
	if raw, err := hex.DecodeString(key); err != nil || len(raw) != sha256.Size {
		return errors.New("session store: the key is not made by session.Key")
	}
	if ttl < time.Millisecond {
		return fmt.Errorf("session store: an entry must live for some time, not %s", ttl)
	}
	return nil
}
