package chain

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"slices"

	"github.com/gofrs/flock"
)

// BadMemory is the reason of a fault in the memory of a chain, not in the chain.
const BadMemory = "memory"

// MemoryTenant is the name of the memory file in a list of epochs: its signed epoch states since when the file exists,
// so that its absence is a loss.
const MemoryTenant = "~memory"

// maxOpen limits the open failures of one chain: one is enough to make verification fail.
const maxOpen = 16

// Memory is the state remembered of a chain independently of its tables: the largest head ever verified, and every
// failed verification. It only grows, so two copies of any age merge without losing anything.
type Memory struct {
	Tenant           string            `json:"tenant"`
	High             Head              `json:"high"`
	Failures         []Failure         `json:"failures"`         // oldest first
	Acknowledgements []Acknowledgement `json:"acknowledgements"` // oldest first
}

// Failure is a verification that failed. It is open until an acknowledgement names it.
type Failure struct {
	ID      string `json:"id"`
	Seq     int64  `json:"seq"`
	Reason  string `json:"reason"`
	Detail  string `json:"detail"`
	FoundAt string `json:"found_at"` // in the format of Time
}

// Fault returns the failure as Verify found it.
func (f Failure) Fault() *Fault { return &Fault{f.Seq, f.Reason, f.Detail} }

// Acknowledgement is the statement of two people that failures are known. The chain up to Seq is accepted as it was
// then, and checked from there on; Seq is greater than that of every entry there ever was, so that no number is used
// twice.
type Acknowledgement struct {
	ID          string   `json:"id"`
	Failures    []string `json:"failures"`
	Reason      string   `json:"reason"`
	RequestedBy string   `json:"requested_by"`
	By          string   `json:"acknowledged_by"`
	At          string   `json:"at"` // in the format of Time
	Seq         int64    `json:"seq"`
	Hash        string   `json:"hash"`   // of the last existing entry; the next one follows it
	Digest      string   `json:"digest"` // of the existing entries, computed by Digester
}

// Open lists the failures that are not acknowledged.
func (m Memory) Open() []Failure {
	out := []Failure{}
	for _, f := range m.Failures {
		if !slices.ContainsFunc(m.Acknowledgements, func(a Acknowledgement) bool { return slices.Contains(a.Failures, f.ID) }) {
			out = append(out, f)
		}
	}
	return out
}

// Base returns the last acknowledgement, from which the chain is checked. Its Seq is 0 if there is none.
func (m Memory) Base() Acknowledgement { return lastAcknowledgement(m.Acknowledgements) }

// lastAcknowledgement returns the one with the greatest number, and of several the latest: it accepted what the others
// did not.
func lastAcknowledgement(all []Acknowledgement) (last Acknowledgement) {
	last.Hash = Genesis
	for _, a := range all {
		if a.Seq > last.Seq || a.Seq == last.Seq && a.At >= last.At {
			last = a
		}
	}
	return last
}

// WithFailure adds a failure, unless one with the same position and reason is open.
func (m Memory) WithFailure(f Failure) (Memory, bool) {
	open := m.Open()
	if len(open) >= maxOpen || slices.ContainsFunc(open, func(o Failure) bool { return o.Seq == f.Seq && o.Reason == f.Reason }) {
		return m, false
	}
	m.Failures = append(slices.Clone(m.Failures), f)
	return m, true
}

// Merge returns the union of both memories.
func (m Memory) Merge(other Memory) Memory {
	if other.High.Seq > m.High.Seq {
		m.High = other.High
	}
	m.Failures = union(m.Failures, other.Failures, func(f Failure) (string, string) { return f.FoundAt, f.ID })
	m.Acknowledgements = union(m.Acknowledgements, other.Acknowledgements, func(a Acknowledgement) (string, string) { return a.At, a.ID })
	return m
}

// union returns the items of both, each id once, by time.
func union[T any](a, b []T, key func(T) (at, id string)) []T {
	out := slices.Clone(a)
	for _, item := range b {
		_, id := key(item)
		if !slices.ContainsFunc(out, func(have T) bool { _, other := key(have); return other == id }) {
			out = append(out, item)
		}
	}
	slices.SortStableFunc(out, func(x, y T) int {
		xAt, xID := key(x)
		yAt, yID := key(y)
		return bytes.Compare([]byte(xAt+xID), []byte(yAt+yID))
	})
	if out == nil {
		out = []T{}
	}
	return out
}

// SignedMemory is a memory with the signature of the key that wrote it.
type SignedMemory struct {
	Memory
	KeyID     string `json:"key_id"`
	Signature []byte `json:"signature"` // base64 in JSON
}

func (m Memory) signedText() ([]byte, error) {
	form, err := canonicalOf(m)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "platform-audit-memory/v1\n%s\n", form), nil
}

// SignMemory signs a memory.
func SignMemory(key ed25519.PrivateKey, m Memory) (SignedMemory, error) {
	text, err := m.signedText()
	if err != nil {
		return SignedMemory{}, err
	}
	return SignedMemory{m, KeyID(key.Public().(ed25519.PublicKey)), ed25519.Sign(key, text)}, nil
}

// Remembers reports whether one of the keys has signed the memory.
func (k Keys) Remembers(m SignedMemory) bool {
	public, ok := k[m.KeyID]
	if !ok {
		return false
	}
	text, err := m.signedText()
	return err == nil && ed25519.Verify(public, text, m.Signature)
}

// MemoryFormat names the format of a file of memories.
const MemoryFormat = "platform-audit-high-water/v1"

type memoryFile struct {
	Format string                  `json:"format"`
	Chains map[string]SignedMemory `json:"chains"` // by tenant
}

// ReadMemories reads the file at path; the error is fs.ErrNotExist if there is none.
func ReadMemories(path string) (map[string]SignedMemory, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("audit memory: %w", err)
	}
	var f memoryFile
	if err := json.Unmarshal(raw, &f); err != nil || f.Format != MemoryFormat || f.Chains == nil {
		return nil, fmt.Errorf("audit memory: %s is not a file of the format %s", path, MemoryFormat)
	}
	return f.Chains, nil
}

// WriteMemory applies change to a chain's memory in the file at path, mode 0600, atomically and under a lock between
// processes. A missing file is created only if begin is set: the loss of a file must be noticed.
func WriteMemory(path, tenant string, begin bool, change func(SignedMemory) (SignedMemory, error)) error {
	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("audit memory: %w", err)
	}
	defer lock.Unlock()
	have, err := ReadMemories(path)
	if begin && errors.Is(err, fs.ErrNotExist) {
		have, err = map[string]SignedMemory{}, nil
	}
	if err != nil {
		return err
	}
	if tenant != "" {
		if have[tenant], err = change(have[tenant]); err != nil {
			return err
		}
	}
	if err := replaceFile(path, ".audit-high-water-*", memoryFile{MemoryFormat, have}); err != nil {
		return fmt.Errorf("audit memory: %w", err)
	}
	return nil
}

// Digester computes the digest of entries as is, valid or not: hex SHA-256 of their lines in a bundle.
type Digester struct{ sum hash.Hash }

// NewDigester begins at the first entry of a chain.
func NewDigester() *Digester { return &Digester{sha256.New()} }

// Add adds the next entry.
func (d *Digester) Add(l Link) error {
	raw, err := lineOf(l)
	if err != nil {
		return err
	}
	d.addLine(raw)
	return nil
}

func (d *Digester) addLine(raw []byte) {
	d.sum.Write(raw)
	d.sum.Write([]byte{'\n'})
}

// Sum returns the digest of the added entries.
func (d *Digester) Sum() string { return hex.EncodeToString(d.sum.Sum(nil)) }

// lineOf returns an entry's line in a bundle. Details that an administrator wrote in a form that RFC 8785 cannot
// express become a string: such an entry is never valid, and the recipient of the bundle must be able to find it.
func lineOf(l Link) ([]byte, error) {
	raw, err := canonicalOf(entryLine{"entry", l.Entry, l.PrevHash, l.Hash})
	if err == nil {
		return raw, nil
	}
	text, err := json.Marshal(string(bytes.ToValidUTF8(l.Details, []byte("\uFFFD"))))
	if err != nil {
		return nil, err
	}
	l.Details = text
	return canonicalOf(entryLine{"entry", l.Entry, l.PrevHash, l.Hash})
}
