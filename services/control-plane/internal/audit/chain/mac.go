package chain

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// macInfo separates the MAC key from any other key derived from the signing key.
const macInfo = "platform-audit-entry/v1"

// DeriveMACKey derives the key of Link.MAC: HKDF-SHA256 of the signing key's seed, without salt.
func DeriveMACKey(key ed25519.PrivateKey) ([]byte, error) {
	out, err := hkdf.Key(sha256.New, key.Seed(), nil, macInfo, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive the key of audit entries: %w", err)
	}
	return out, nil
}

// computeMAC authenticates the same text as the hash: prev, a line feed and the entry.
func computeMAC(key []byte, prev string, form []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(prev))
	h.Write([]byte{'\n'})
	h.Write(form)
	return hex.EncodeToString(h.Sum(nil))
}

// AppendKeyed is Append with a MAC, which only a holder of the signing key can make.
func AppendKeyed(e Entry, prev string, key []byte) (Link, error) {
	form, err := e.Canonical()
	if err != nil {
		return Link{}, err
	}
	return Link{Entry: e, PrevHash: prev, Hash: hashEntry(prev, form), MAC: computeMAC(key, prev, form)}, nil
}

// CheckKeyed recomputes hash and MAC. An entry without the right MAC was inserted by a writer to the database who does
// not hold the signing key.
func (l Link) CheckKeyed(key []byte) *Fault {
	form, err := l.Canonical()
	if err != nil {
		return &Fault{l.Seq, BadHash, err.Error()}
	}
	switch {
	case hashEntry(l.PrevHash, form) != l.Hash:
		return &Fault{l.Seq, BadHash, "the entry was changed: its hash is not that of its members"}
	case l.MAC == "":
		return l.forged("it has no MAC")
	case !hmac.Equal([]byte(computeMAC(key, l.PrevHash, form)), []byte(l.MAC)):
		return l.forged("its MAC is wrong")
	}
	return nil
}

// CheckForeignKeyed is CheckKeyed for an entry that the holder of another trusted
// key appended: its MAC must be there but cannot be recomputed here.
func (l Link) CheckForeignKeyed() *Fault {
	if f := l.CheckHash(); f != nil {
		return f
	}
	if raw, err := hex.DecodeString(l.MAC); err != nil || len(raw) != sha256.Size {
		return l.forged("it has no MAC")
	}
	return nil
}

func (l Link) forged(why string) *Fault {
	return &Fault{l.Seq, BadForged, "the ledger has not appended the entry: " + why}
}
