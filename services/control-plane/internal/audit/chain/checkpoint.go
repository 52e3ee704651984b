package chain

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Checkpoint is a signature over the hash of one entry, and so over all before it.
type Checkpoint struct {
	Seq       int64  `json:"seq"`
	Hash      string `json:"hash"`
	TS        string `json:"ts"`
	KeyID     string `json:"key_id"`
	Signature []byte `json:"signature"` // base64 in JSON
}

// KeyID names a public key: 16 hex digits.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

func signedText(tenant string, c Checkpoint) []byte {
	return fmt.Appendf(nil, "platform-audit-checkpoint/v1\n%s\n%d\n%s\n%s\n", tenant, c.Seq, c.Hash, c.TS)
}

// Sign makes a checkpoint of an entry of tenant's chain.
func Sign(key ed25519.PrivateKey, tenant string, seq int64, hash string, at time.Time) Checkpoint {
	c := Checkpoint{Seq: seq, Hash: hash, TS: Time(at), KeyID: KeyID(key.Public().(ed25519.PublicKey))}
	c.Signature = ed25519.Sign(key, signedText(tenant, c))
	return c
}

// Keys maps key ids to public keys.
type Keys map[string]ed25519.PublicKey

// KeysOf returns the keys by the ids computed from them, whatever ids were claimed.
func KeysOf(public ...ed25519.PublicKey) Keys {
	out := Keys{}
	for _, p := range public {
		out[KeyID(p)] = p
	}
	return out
}

// Check validates a checkpoint of tenant's chain without the chain's entries.
func (k Keys) Check(tenant string, c Checkpoint) *Fault {
	public, ok := k[c.KeyID]
	switch {
	case !ok:
		return &Fault{c.Seq, BadCheckpoint, fmt.Sprintf("the checkpoint is signed by the unknown key %s", c.KeyID)}
	case !ed25519.Verify(public, signedText(tenant, c), c.Signature):
		return &Fault{c.Seq, BadCheckpoint, "the signature of the checkpoint is wrong"}
	}
	return nil
}

// Covers checks that a checkpoint was made of the entry with this hash.
func (c Checkpoint) Covers(hash string) *Fault {
	if c.Hash != hash {
		return &Fault{c.Seq, BadCheckpoint, "the checkpoint is of another entry than the one in the chain"}
	}
	return nil
}
