package chain

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
)

// BundleFormat names the format of a bundle.
//
// A bundle is NDJSON: a header, the entries of a range of one chain, its checkpoints and a trailer. Each line is in RFC
// 8785 form, so that no byte can change undetected, and an entry can be hashed as is. The trailer records the chain's
// length and whether the server could verify it; version 1 did not, so a truncated chain looked like a short one.
const BundleFormat = "platform-audit-bundle/v2"

// BadFormat is the reason of a fault in a bundle that is not one of the chain's.
const BadFormat = "format"

// maxLine limits a line of a bundle, in bytes: the stream holds no larger event.
const maxLine = 4 << 20

// Header is the first line. FromSeq is 1 and ToSeq is 0 where nothing matched.
type Header struct {
	Kind      string      `json:"kind"`
	Format    string      `json:"format"`
	Tenant    string      `json:"tenant"`
	FromSeq   int64       `json:"from_seq"`
	ToSeq     int64       `json:"to_seq"`
	PrevHash  string      `json:"prev_hash"` // of the entry before FromSeq
	Since     *string     `json:"since"`
	Until     *string     `json:"until"`
	CreatedAt string      `json:"created_at"`
	Keys      []BundleKey `json:"keys"`
	// Acknowledgements are those of failures of the chain, oldest first. The chain is checked from the last one on.
	Acknowledgements []Acknowledgement `json:"acknowledgements,omitempty"`
}

// BundleKey is a public key that a bundle, or a table, includes. It names the claimed signer; trusting it needs a key
// from elsewhere that equals it or vouches for it.
type BundleKey struct {
	KeyID     string  `json:"key_id"`
	PublicKey []byte  `json:"public_key"`           // base64 in JSON
	CreatedAt string  `json:"created_at,omitempty"` // in the format of Time
	Vouches   []Vouch `json:"vouches,omitempty"`
}

// genuine reports whether the key's name is derived from the key.
func (c BundleKey) genuine() bool {
	return len(c.PublicKey) == ed25519.PublicKeySize && KeyID(c.PublicKey) == c.KeyID
}

type entryLine struct {
	Kind     string `json:"kind"`
	Entry    Entry  `json:"entry"`
	PrevHash string `json:"prev_hash"`
	Hash     string `json:"hash"`
}

type checkpointLine struct {
	Kind string `json:"kind"`
	Checkpoint
}

// Head is the last entry of a range.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Verification is the exporting server's result of verifying the whole chain.
type Verification struct {
	Verified    bool    `json:"verified"`
	Checked     int64   `json:"checked"`
	Head        Head    `json:"head"`
	FirstBadSeq *int64  `json:"first_bad_seq"`
	Reason      *string `json:"reason"`
	SignedSeq   int64   `json:"signed_seq"`
	VerifiedAt  string  `json:"verified_at"` // in the format of Time
}

// Ending is the content of the trailer beyond the lines before it.
type Ending struct {
	LastSeq      int64 // the last entry that the chain ever had; 0: none
	Verification Verification
	Key          ed25519.PrivateKey // signs the trailer; nil: unsigned
}

type trailer struct {
	Kind         string       `json:"kind"`
	Count        int64        `json:"count"`
	Checkpoints  int64        `json:"checkpoints"`
	Head         Head         `json:"head"`
	LastSeq      int64        `json:"last_seq"`
	Verification Verification `json:"verification"`
	SHA256       string       `json:"sha256"` // of all lines before
	KeyID        string       `json:"key_id"` // empty: not signed
	Signature    []byte       `json:"signature"`
}

// signedText holds the digest of all lines before, and the trailer without its signature, so that none of its members
// can be changed either.
func (t trailer) signedText() ([]byte, error) {
	t.Signature = []byte{}
	form, err := canonicalOf(t)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "platform-audit-export/v1\n%s\n%s\n", t.SHA256, form), nil
}

// Writer writes a bundle line by line.
type Writer struct {
	w     io.Writer
	sum   hash.Hash
	count int64
	marks int64
	head  Head
}

// NewWriter begins a bundle and sets the header's Kind and Format.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	b := &Writer{w: w, sum: sha256.New(), head: Head{h.FromSeq - 1, h.PrevHash}}
	h.Kind, h.Format = "header", BundleFormat
	if h.Keys == nil {
		h.Keys = []BundleKey{}
	}
	return b, b.line(h)
}

func (b *Writer) line(v any) error {
	raw, err := canonicalOf(v)
	if err != nil {
		return err
	}
	return b.raw(raw)
}

func (b *Writer) raw(line []byte) error {
	line = append(line, '\n')
	b.sum.Write(line)
	_, err := b.w.Write(line)
	return err
}

// Entry adds an entry, valid or not: the recipient of the bundle must be able to find an altered one.
func (b *Writer) Entry(l Link) error {
	b.count++
	b.head = Head{l.Seq, l.Hash}
	raw, err := lineOf(l)
	if err != nil {
		return err
	}
	return b.raw(raw)
}

// Checkpoint adds a checkpoint; all entries must precede it.
func (b *Writer) Checkpoint(c Checkpoint) error {
	b.marks++
	return b.line(checkpointLine{"checkpoint", c})
}

// Close adds the trailer; a bundle without one is truncated.
func (b *Writer) Close(end Ending) error {
	t := trailer{
		Kind: "trailer", Count: b.count, Checkpoints: b.marks, Head: b.head, LastSeq: end.LastSeq, Verification: end.Verification,
		SHA256: hex.EncodeToString(b.sum.Sum(nil)), Signature: []byte{},
	}
	if end.Key != nil {
		t.KeyID = KeyID(end.Key.Public().(ed25519.PublicKey))
		text, err := t.signedText()
		if err != nil {
			return err
		}
		t.Signature = ed25519.Sign(end.Key, text)
	}
	return b.line(t)
}

// Report is the result of verifying a bundle.
type Report struct {
	Tenant      string   `json:"tenant"`
	Verified    bool     `json:"verified"`
	Checked     int64    `json:"checked"`
	FromSeq     int64    `json:"from_seq"`
	Head        Head     `json:"head"`
	Checkpoints int64    `json:"checkpoints"`
	SignedSeq   int64    `json:"signed_seq"` // the last signed entry; 0: none
	KeyIDs      []string `json:"key_ids"`    // that signed
	OwnKeys     bool     `json:"own_keys"`   // the bundle's own keys were used: no trusted key vouches for them
	LastSeq     int64    `json:"last_seq"`   // the last entry that the chain ever had
	Signed      bool     `json:"signed"`     // reports whether the trailer is signed
	FirstBadSeq *int64   `json:"first_bad_seq,omitempty"`
	Reason      string   `json:"reason,omitempty"`
	Detail      string   `json:"detail,omitempty"`
	// Acknowledgements lists the bundle's acknowledgements of failures, each accepted by two people.
	Acknowledgements []Acknowledgement `json:"acknowledgements,omitempty"`
}

// reader checks a bundle as it reads it.
type reader struct {
	in     *bufio.Reader
	sum    hash.Hash
	line   int
	keys   Keys
	report Report
	walk   Walk
	to     int64
	whole  bool             // the header requests all entries to the end of the chain
	hashes map[int64]string // of entries, for their checkpoints
	marked int64            // the last checkpoint's sequence
	base   Acknowledgement  // entries up to its Seq are compared with its digest only
	state  *Digester        // digest state of those entries; nil after them
}

// VerifyBundle reads a bundle and checks all of it, with trusted keys and those that they vouch for, or with its own
// when trusted is nil. The error is a read error; faults of the bundle are in the report.
func VerifyBundle(in io.Reader, trusted Keys) (Report, error) {
	r := &reader{in: bufio.NewReaderSize(in, 1<<16), sum: sha256.New(), keys: trusted, hashes: map[int64]string{}, walk: Walk{Next: 1}}
	r.report.OwnKeys, r.report.KeyIDs = trusted == nil, []string{}
	err := r.all()
	var f *Fault
	if errors.As(err, &f) {
		r.report.FirstBadSeq, r.report.Reason, r.report.Detail = &f.Seq, f.Reason, f.Detail
		return r.report, nil
	}
	r.report.Verified = err == nil
	return r.report, err
}

// bad returns a fault at the current line.
func (r *reader) bad(format string, a ...any) error {
	return &Fault{r.walk.Next, BadFormat, fmt.Sprintf("line %d: ", r.line) + fmt.Sprintf(format, a...)}
}

func (r *reader) all() error {
	if err := r.header(); err != nil {
		return err
	}
	for {
		raw, err := r.next()
		if err != nil {
			return err
		}
		var kind struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(raw, &kind); err != nil {
			return r.bad("it is not JSON")
		}
		switch kind.Kind {
		case "entry":
			err = r.entry(raw)
		case "checkpoint":
			err = r.checkpoint(raw)
		case "trailer":
			return r.trailer(raw)
		default:
			return r.bad("the kind %q is unknown", kind.Kind)
		}
		if err != nil {
			return err
		}
		r.add(raw)
	}
}

// next returns one line without its LF.
func (r *reader) next() ([]byte, error) {
	r.line++
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, r.bad("it is longer than %d bytes", maxLine)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, io.EOF):
			return nil, r.bad("the bundle is cut off: it has no trailer")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (r *reader) add(raw []byte) {
	r.sum.Write(raw)
	r.sum.Write([]byte{'\n'})
}

// decode parses a line into v, and refuses any encoding but a Writer's.
func (r *reader) decode(raw []byte, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return r.bad("%v", err)
	}
	again, err := canonicalOf(v)
	if err != nil {
		return r.bad("%v", err)
	}
	if !bytes.Equal(again, raw) {
		return r.bad("it is not in canonical form, or has a member too many or too few")
	}
	return nil
}

func (r *reader) header() error {
	raw, err := r.next()
	if err != nil {
		return err
	}
	var h Header
	if err := r.decode(raw, &h); err != nil {
		return err
	}
	switch {
	case h.Kind != "header" || h.Format != BundleFormat:
		return r.bad("it is not a header of the format %s", BundleFormat)
	case h.FromSeq < 1 || h.ToSeq < h.FromSeq-1:
		return r.bad("the range %d to %d is none", h.FromSeq, h.ToSeq)
	case h.FromSeq == 1 && h.PrevHash != Genesis:
		return r.bad("a chain begins with the previous hash of zeros")
	}
	if r.keys == nil {
		var own []ed25519.PublicKey
		for _, k := range h.Keys {
			if !k.genuine() {
				return r.bad("the key %s does not match its id", k.KeyID)
			}
			own = append(own, k.PublicKey)
		}
		r.keys = KeysOf(own...)
	} else {
		r.keys = r.keys.Reach(h.Keys)
	}
	r.report.Tenant, r.report.FromSeq, r.to, r.whole = h.Tenant, h.FromSeq, h.ToSeq, h.Until == nil
	r.walk = Walk{Tenant: h.Tenant, Next: h.FromSeq, Prev: h.PrevHash}
	r.report.Head = Head{h.FromSeq - 1, h.PrevHash}
	r.report.Acknowledgements = h.Acknowledgements
	if r.base = lastAcknowledgement(h.Acknowledgements); r.base.Seq >= h.FromSeq {
		r.state = NewDigester()
	}
	r.add(raw)
	return nil
}

func (r *reader) entry(raw []byte) error {
	var e entryLine
	if err := json.Unmarshal(raw, &e); err != nil {
		return r.bad("%v", err)
	}
	if r.report.Checkpoints > 0 {
		return r.bad("an entry comes after the checkpoints")
	}
	l := Link{Entry: e.Entry, PrevHash: e.PrevHash, Hash: e.Hash}
	if r.state != nil && l.Seq <= r.base.Seq {
		return r.acknowledged(raw, l)
	}
	if err := r.leaveAcknowledged(true); err != nil {
		return err
	}
	if f := r.walk.Step(l); f != nil {
		return f
	}
	if f := l.CheckHash(); f != nil {
		return f
	}
	if err := r.decode(raw, &e); err != nil {
		return err
	}
	if l.V != Version || l.Seq > r.to {
		return &Fault{l.Seq, BadFormat, "the entry is of another version, or beyond the range of the header"}
	}
	r.report.Checked++
	r.report.Head = Head{l.Seq, l.Hash}
	r.hashes[l.Seq] = l.Hash
	return nil
}

// acknowledged consumes an entry that was accepted as is.
func (r *reader) acknowledged(raw []byte, l Link) error {
	if l.Seq <= r.report.Head.Seq || l.Tenant != r.walk.Tenant {
		return &Fault{l.Seq, BadLink, "the entry is out of order, or of another chain"}
	}
	r.state.addLine(raw)
	r.report.Checked++
	r.report.Head = Head{l.Seq, l.Hash}
	return nil
}

// leaveAcknowledged continues after the entries that were accepted as they are. Their digest is that of the whole chain
// up to there: a bundle that begins or ends within relies on its signed trailer.
func (r *reader) leaveAcknowledged(complete bool) error {
	if r.state == nil {
		return nil
	}
	if complete && r.report.FromSeq == 1 && r.state.Sum() != r.base.Digest {
		return &Fault{r.base.Seq, BadHash, "the entries up to it are not those that were acknowledged"}
	}
	r.state = nil
	r.walk.Next, r.walk.Prev = r.base.Seq+1, r.base.Hash
	if !complete {
		r.walk.Prev = r.report.Head.Hash
	}
	r.to = max(r.to, r.base.Seq)
	return nil
}

func (r *reader) checkpoint(raw []byte) error {
	var c checkpointLine
	if err := r.decode(raw, &c); err != nil {
		return err
	}
	if err := r.leaveAcknowledged(r.whole); err != nil {
		return err
	}
	if c.Seq <= r.base.Seq {
		r.report.Checkpoints++ // of entries that were accepted as is
		return nil
	}
	hash, ok := r.hashes[c.Seq]
	if !ok || c.Seq <= r.marked {
		return &Fault{c.Seq, BadCheckpoint, "the checkpoint is of no entry of the bundle, or out of order"}
	}
	if f := First(c.Covers(hash), r.keys.Check(r.walk.Tenant, c.Checkpoint)); f != nil {
		return f
	}
	r.marked = c.Seq
	r.report.Checkpoints++
	r.report.SignedSeq = c.Seq
	if !slices.Contains(r.report.KeyIDs, c.KeyID) {
		r.report.KeyIDs = append(r.report.KeyIDs, c.KeyID)
	}
	return nil
}

func (r *reader) trailer(raw []byte) error {
	var t trailer
	if err := r.decode(raw, &t); err != nil {
		return err
	}
	if err := r.leaveAcknowledged(r.whole); err != nil {
		return err
	}
	if f := r.walk.Ends(max(r.to, t.Head.Seq), t.Head.Hash); f != nil {
		return f
	}
	switch {
	case len(r.report.Acknowledgements) > 0 && t.KeyID == "":
		return r.bad("the bundle names acknowledgements without a signature")
	case t.Count != r.report.Checked || t.Head != r.report.Head:
		return r.bad("the trailer names other entries than the bundle has")
	case t.Checkpoints != r.report.Checkpoints:
		return r.bad("the trailer names %d checkpoints, the bundle has %d", t.Checkpoints, r.report.Checkpoints)
	case t.SHA256 != hex.EncodeToString(r.sum.Sum(nil)):
		return r.bad("the bundle was changed: its digest differs")
	}
	if err := r.signature(t); err != nil {
		return err
	}
	if err := r.completeness(t); err != nil {
		return err
	}
	if _, err := r.in.ReadByte(); err == nil {
		return r.bad("something follows the trailer")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// signature checks the trailer's signature. A server without a key gives none, which is accepted only where no key was
// required.
func (r *reader) signature(t trailer) error {
	if t.KeyID == "" && len(t.Signature) == 0 {
		if !r.report.OwnKeys {
			return r.bad("the trailer is not signed")
		}
		return nil
	}
	public, ok := r.keys[t.KeyID]
	if !ok {
		return r.bad("the trailer is signed by the unknown key %s", t.KeyID)
	}
	text, err := t.signedText()
	if err != nil {
		return r.bad("%v", err)
	}
	if !ed25519.Verify(public, text, t.Signature) {
		return r.bad("the signature of the trailer is wrong")
	}
	r.report.Signed = true
	return nil
}

// completeness compares the lines, already checked against each other, with what the server knows of the chain.
func (r *reader) completeness(t trailer) error {
	r.report.LastSeq = t.LastSeq
	v := t.Verification
	switch {
	case t.LastSeq < t.Head.Seq && t.Count > 0:
		return r.bad("the trailer counts fewer entries than there are")
	case !v.Verified:
		f := &Fault{r.walk.Next, BadFormat, "the server that exported the ledger could not verify it"}
		if v.FirstBadSeq != nil && v.Reason != nil {
			f.Seq, f.Reason = *v.FirstBadSeq, *v.Reason
		}
		return f
	case t.Count == 0 && t.LastSeq > r.base.Seq:
		return &Fault{1, BadGap, fmt.Sprintf("the bundle is empty, the ledger is not: it continued to %d", t.LastSeq)}
	case r.whole && max(t.Head.Seq, r.base.Seq) < t.LastSeq:
		return &Fault{t.Head.Seq + 1, BadGap, fmt.Sprintf("the entry is missing; the ledger continued to %d", t.LastSeq)}
	}
	return nil
}
