// Package chain defines the form of the audit ledger, independent of its storage: the canonical form of an entry, the
// hash that links it to the one before, signed checkpoints, and bundles that can be verified without this platform.
//
// It uses no network and no database, so its results are valid for any copy.
package chain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/gowebpki/jcs"
)

// Version is the member v of every entry.
const Version = 1

// Genesis is the previous hash of a chain's first entry.
var Genesis = strings.Repeat("0", 2*sha256.Size)

// timeForm has microseconds, the precision of Postgres.
const timeForm = "2006-01-02T15:04:05.000000Z"

// Time formats t for entries, checkpoints and bundles.
func Time(t time.Time) string { return t.UTC().Format(timeForm) }

// ParseTime parses the format of Time.
func ParseTime(s string) (time.Time, error) { return time.Parse(timeForm, s) }

// Entry is one fact at its position in the chain of its tenant. The hash covers exactly these members.
type Entry struct {
	V         int             `json:"v"`
	Tenant    string          `json:"tenant"`
	Seq       int64           `json:"seq"` // from 1, without gaps
	EventID   uuid.UUID       `json:"event_id"`
	TS        string          `json:"ts"` // in the format of Time
	Source    string          `json:"source"`
	Actor     string          `json:"actor"`
	Action    string          `json:"action"`
	Target    string          `json:"target"`
	Outcome   string          `json:"outcome"`
	RequestID *string         `json:"request_id"`
	Details   json.RawMessage `json:"details"` // a JSON object in canonical form
}

// Canonical encodes a JSON value in RFC 8785 form.
func Canonical(raw []byte) ([]byte, error) {
	out, err := jcs.Transform(raw)
	if err != nil {
		return nil, fmt.Errorf("no canonical form: %w", err)
	}
	return out, nil
}

// Object is Canonical for a value that must be a JSON object.
func Object(raw []byte) (json.RawMessage, error) {
	out, err := Canonical(raw)
	if err == nil && (len(out) == 0 || out[0] != '{') {
		err = errors.New("it must be a JSON object")
	}
	return out, err
}

// canonicalOf encodes v in RFC 8785 form.
func canonicalOf(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("no canonical form: %w", err)
	}
	return Canonical(raw)
}

// Canonical returns the hashed form of the entry. Details not in canonical form are refused: two texts must not share a
// hash.
func (e Entry) Canonical() ([]byte, error) {
	out, err := canonicalOf(e)
	if err != nil {
		return nil, err
	}
	// The quotes of the name are not escaped, so no text inside the entry can contain it.
	if !bytes.Contains(out, append([]byte(`"details":`), e.Details...)) {
		return nil, errors.New("the details are not in canonical form")
	}
	return out, nil
}

// Link is an entry with its position in the chain.
type Link struct {
	Entry
	PrevHash string
	Hash     string // 64 hex digits
	MAC      string // 64 hex digits; empty for an entry from before MACs were introduced
}

// Append links an entry to the hash before it.
func Append(e Entry, prev string) (Link, error) {
	form, err := e.Canonical()
	if err != nil {
		return Link{}, err
	}
	return Link{Entry: e, PrevHash: prev, Hash: hashEntry(prev, form)}, nil
}

func hashEntry(prev string, form []byte) string {
	h := sha256.New()
	h.Write([]byte(prev))
	h.Write([]byte{'\n'})
	h.Write(form)
	return hex.EncodeToString(h.Sum(nil))
}

// Reasons of a fault.
const (
	BadHash       = "hash"       // an entry's hash is not that of its members
	BadLink       = "link"       // an entry does not follow the one before it
	BadGap        = "gap"        // an entry is missing
	BadCheckpoint = "checkpoint" // the signed entry is not the one in the chain
	BadForged     = "forged"     // the ledger did not append the entry
)

// Fault is the first thing wrong with a chain.
type Fault struct {
	Seq    int64
	Reason string
	Detail string // for people: a clause without subject
}

func (f *Fault) Error() string { return fmt.Sprintf("entry %d: %s: %s", f.Seq, f.Reason, f.Detail) }

// First returns the fault with the lower sequence. At the same sequence it returns a, except that BadForged yields to
// any other reason and BadGap to any but BadForged, which are more specific. Either may be nil.
func First(a, b *Fault) *Fault {
	if a == nil || b != nil && (b.Seq < a.Seq || b.Seq == a.Seq && (a.Reason == BadForged || a.Reason == BadGap && b.Reason != BadForged)) {
		return b
	}
	return a
}

// CheckHash recomputes the hash. It needs no other entry, so many can be checked in parallel.
func (l Link) CheckHash() *Fault {
	form, err := l.Canonical()
	if err != nil {
		return &Fault{l.Seq, BadHash, err.Error()}
	}
	if hashEntry(l.PrevHash, form) != l.Hash {
		return &Fault{l.Seq, BadHash, "the entry was changed: its hash is not that of its members"}
	}
	return nil
}

// Walk follows a chain, link by link.
type Walk struct {
	Tenant string
	Next   int64  // the next sequence
	Prev   string // the hash that the next link must refer to
}

// Step checks that the link is the next one. It does not check the link's hash; see CheckHash.
func (w *Walk) Step(l Link) *Fault {
	switch {
	case l.Seq != w.Next:
		return &Fault{w.Next, BadGap, fmt.Sprintf("the entry is missing; the next one is %d", l.Seq)}
	case l.Tenant != w.Tenant:
		return &Fault{w.Next, BadLink, fmt.Sprintf("the entry belongs to the chain of %q", l.Tenant)}
	case l.PrevHash != w.Prev:
		return &Fault{w.Next, BadLink, "the entry does not name the hash of the one before it"}
	}
	w.Next, w.Prev = l.Seq+1, l.Hash
	return nil
}

// Ends checks that nothing is missing up to head, the last entry there was.
func (w *Walk) Ends(head int64, hash string) *Fault {
	switch {
	case w.Next <= head:
		return &Fault{w.Next, BadGap, fmt.Sprintf("the entry is missing; the chain continued to %d", head)}
	case w.Next == head+1 && w.Prev != hash:
		return &Fault{head, BadLink, "the last entry is not the one that was appended last"}
	}
	return nil
}
