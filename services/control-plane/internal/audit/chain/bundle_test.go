package chain_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

// makeLinks returns a chain of n entries.
func makeLinks(t testing.TB, n int) []chain.Link {
	t.Helper()
	out := make([]chain.Link, n)
	prev := chain.Genesis
	for i := range out {
		e := chain.Entry{
			V: 1, Tenant: "default", Seq: int64(i + 1), EventID: uuid.NewSHA1(uuid.Nil, []byte{byte(i)}), TS: chain.Time(day.Add(time.Duration(i) * time.Second)),
			Source: "cli", Actor: "zoë", Action: "model.tagged", Target: "model:JPCP", Outcome: "ok",
			Details: json.RawMessage(fmt.Sprintf(`{"n":%d,"text":"a <b> \u2028 \"c\""}`, i)),
		}
		var err error
		if e.Details, err = chain.Object(e.Details); err != nil {
			t.Fatal(err)
		}
		if out[i], err = chain.Append(e, prev); err != nil {
			t.Fatal(err)
		}
		prev = out[i].Hash
	}
	return out
}

// makeBundle writes entries with a checkpoint of each tenth and of the last but one.
func makeBundle(t testing.TB, all []chain.Link, from int) []byte {
	t.Helper()
	key := seedKey()
	public := key.Public().(ed25519.PublicKey)
	h := chain.Header{
		Tenant: "default", FromSeq: int64(from), ToSeq: all[len(all)-1].Seq, PrevHash: chain.Genesis, CreatedAt: chain.Time(day),
		Keys: []chain.BundleKey{{KeyID: chain.KeyID(public), PublicKey: public}},
	}
	if from > 1 {
		h.PrevHash = all[from-2].Hash
	}
	var buf bytes.Buffer
	w, err := chain.NewWriter(&buf, h)
	if err != nil {
		t.Fatal(err)
	}
	var marks []chain.Checkpoint
	for i, l := range all[from-1:] {
		if err := w.Entry(l); err != nil {
			t.Fatal(err)
		}
		if l.Seq%10 == 0 || i == len(all)-from-1 {
			marks = append(marks, chain.Sign(key, "default", l.Seq, l.Hash, day))
		}
	}
	for _, c := range marks {
		if err := w.Checkpoint(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(endingOf(all, key)); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// endingOf returns the trailer's content for a valid chain.
func endingOf(all []chain.Link, key ed25519.PrivateKey) chain.Ending {
	last := all[len(all)-1]
	return chain.Ending{LastSeq: last.Seq, Key: key, Verification: chain.Verification{
		Verified: true, Checked: int64(len(all)), Head: chain.Head{Seq: last.Seq, Hash: last.Hash}, VerifiedAt: chain.Time(day),
	}}
}

func trustedKeys() chain.Keys { return chain.KeysOf(seedKey().Public().(ed25519.PublicKey)) }

func TestABundleProvesItself(t *testing.T) {
	t.Parallel()
	for _, from := range []int{1, 7} {
		for _, keys := range []chain.Keys{nil, trustedKeys()} {
			r, err := chain.VerifyBundle(bytes.NewReader(makeBundle(t, makeLinks(t, 25), from)), keys)
			if err != nil || !r.Verified || r.Checked != int64(26-from) || r.SignedSeq != 24 || r.Checkpoints != 3 || r.Head.Seq != 25 || r.OwnKeys != (keys == nil) {
				t.Errorf("from %d: %+v, %v; want r.Verified && r.Checked == int64(26 - from) && r.SignedSeq == 24 && r.Checkpoints == 3 && r.Head.Seq == 25 && r.OwnKeys == (keys == nil)", from, r, err)
			}
		}
	}
	stranger := chain.KeysOf(ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey))
	r, err := chain.VerifyBundle(bytes.NewReader(makeBundle(t, makeLinks(t, 25), 1)), stranger)
	if err != nil || r.Verified || r.Reason != chain.BadCheckpoint || *r.FirstBadSeq != 10 {
		t.Errorf("another key: %+v, %v; want !r.Verified && r.Reason == chain.BadCheckpoint && *r.FirstBadSeq == 10", r, err)
	}
}

// No byte of a bundle can be changed, removed or added unnoticed.
func TestEveryByteOfABundleCounts(t *testing.T) {
	t.Parallel()
	good := makeBundle(t, makeLinks(t, 2), 1)
	lines := bytes.Count(good, []byte("\n"))
	try := func(what string, b []byte) {
		if r, err := chain.VerifyBundle(bytes.NewReader(b), trustedKeys()); err == nil && r.Verified || err == nil && r.FirstBadSeq == nil {
			t.Fatalf("%s: %+v; want (an error || !r.Verified) && (an error || r.FirstBadSeq != nil)", what, r)
		}
	}
	for i := range good {
		for _, flip := range []byte{0x01, 0x20} {
			bad := bytes.Clone(good)
			bad[i] ^= flip
			try(fmt.Sprintf("byte %d of %q", i, lineAt(good, i)), bad)
		}
		try(fmt.Sprintf("cut at %d", i), good[:i])
		try(fmt.Sprintf("a blank at %d", i), append(append(bytes.Clone(good[:i]), ' '), good[i:]...))
	}
	split := bytes.SplitAfter(good, []byte("\n"))[:lines]
	for i := range split {
		for j := range split {
			if i < j {
				swapped := append([][]byte{}, split...)
				swapped[i], swapped[j] = swapped[j], swapped[i]
				try(fmt.Sprintf("lines %d and %d swapped", i, j), bytes.Join(swapped, nil))
			}
		}
		try(fmt.Sprintf("line %d gone", i), bytes.Join(append(append([][]byte{}, split[:i]...), split[i+1:]...), nil))
		try(fmt.Sprintf("line %d twice", i), bytes.Join(append(append(append([][]byte{}, split[:i+1]...), split[i]), split[i+1:]...), nil))
	}
	try("something behind", append(bytes.Clone(good), "\n"...))
}

func lineAt(b []byte, i int) []byte {
	from := bytes.LastIndexByte(b[:i], '\n') + 1
	return b[from:min(from+40, len(b))]
}

// A fault is reported at its entry.
func TestFaultsOfABundleNameTheEntry(t *testing.T) {
	t.Parallel()
	all := makeLinks(t, 12)
	for what, c := range map[string]struct {
		change func([]chain.Link) []chain.Link
		seq    int64
		reason string
	}{
		"actor":   {func(l []chain.Link) []chain.Link { l[4].Actor = "bob"; return l }, 5, chain.BadHash},
		"deleted": {func(l []chain.Link) []chain.Link { return append(l[:4], l[5:]...) }, 5, chain.BadGap},
		"first":   {func(l []chain.Link) []chain.Link { return l[1:] }, 1, chain.BadGap},
		"swapped": {func(l []chain.Link) []chain.Link { l[4], l[5] = l[5], l[4]; return l }, 5, chain.BadGap},
		"link":    {func(l []chain.Link) []chain.Link { l[4].PrevHash = l[2].Hash; return l }, 5, chain.BadLink},
		"tenant":  {func(l []chain.Link) []chain.Link { l[4].Tenant = "other"; return l }, 5, chain.BadLink},
		"forged": {func(l []chain.Link) []chain.Link { // rewritten from the fifth entry on, links and all
			prev := l[3].Hash
			for i := 4; i < len(l); i++ {
				l[i].Actor = "bob"
				l[i], _ = chain.Append(l[i].Entry, prev)
				prev = l[i].Hash
			}
			return l
		}, 10, chain.BadCheckpoint},
	} {
		forged := c.change(append([]chain.Link{}, all...))
		var buf bytes.Buffer
		w, err := chain.NewWriter(&buf, chain.Header{Tenant: "default", FromSeq: 1, ToSeq: 12, PrevHash: chain.Genesis, CreatedAt: chain.Time(day)})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range forged {
			if err := w.Entry(l); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Checkpoint(chain.Sign(seedKey(), "default", 10, all[9].Hash, day)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(endingOf(all, seedKey())); err != nil {
			t.Fatal(err)
		}
		r, err := chain.VerifyBundle(&buf, trustedKeys())
		if err != nil || r.Verified || r.FirstBadSeq == nil || *r.FirstBadSeq != c.seq || r.Reason != c.reason {
			t.Errorf("%s: %+v, %v; want !r.Verified && r.FirstBadSeq != nil && *r.FirstBadSeq == c.seq && r.Reason == c.reason", what, r, err)
		}
	}
}

func FuzzVerifyBundle(f *testing.F) {
	good := makeBundle(f, makeLinks(f, 3), 1)
	f.Add(good)
	f.Add([]byte(strings.Repeat("[", 100_000)))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := chain.VerifyBundle(bytes.NewReader(b), trustedKeys())
		if err == nil && r.Verified && r.Checkpoints > 0 && !bytes.Equal(b, good) {
			t.Fatalf("somebody signed %q; want (((an error || !r.Verified) || r.Checkpoints <= 0) || bytes.Equal(b, good))", b)
		}
	})
}

// TestTrailerTellsOfTheLedger: consistent lines prove nothing about a ledger that was truncated, emptied or did not
// verify.
func TestTrailerTellsOfTheLedger(t *testing.T) {
	t.Parallel()
	all := makeLinks(t, 5)
	key := seedKey()
	until := chain.Time(day.Add(time.Hour))
	forged, at := chain.BadForged, int64(2)
	for _, c := range []struct {
		name   string
		upTo   int
		until  *string
		change func(*chain.Ending)
		reason string
		seq    int64
	}{
		{name: "whole", upTo: 5},
		{name: "cut", upTo: 3, reason: chain.BadGap, seq: 4},
		{name: "asked for up to an instant", upTo: 3, until: &until},
		{name: "emptied", upTo: 0, reason: chain.BadGap, seq: 1},
		{name: "emptied by an instant", upTo: 0, until: &until, reason: chain.BadGap, seq: 1},
		{name: "not verified by the server", upTo: 5, change: func(e *chain.Ending) {
			e.Verification.Verified, e.Verification.Reason, e.Verification.FirstBadSeq = false, &forged, &at
		}, reason: chain.BadForged, seq: 2},
		{name: "not signed", upTo: 5, change: func(e *chain.Ending) { e.Key = nil }, reason: chain.BadFormat, seq: 6},
		{name: "signed by a stranger", upTo: 5, change: func(e *chain.Ending) { e.Key = keyFromSeedByte(9) }, reason: chain.BadFormat, seq: 6},
	} {
		var buf bytes.Buffer
		w, err := chain.NewWriter(&buf, chain.Header{Tenant: "default", FromSeq: 1, ToSeq: int64(c.upTo), PrevHash: chain.Genesis, Until: c.until, CreatedAt: chain.Time(day)})
		for _, l := range all[:c.upTo] {
			if err == nil {
				err = w.Entry(l)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		end := endingOf(all, key)
		if c.change != nil {
			c.change(&end)
		}
		if err := w.Close(end); err != nil {
			t.Fatal(err)
		}
		r, err := chain.VerifyBundle(&buf, trustedKeys())
		if err != nil {
			t.Fatal(err)
		}
		var seq int64
		if r.FirstBadSeq != nil {
			seq = *r.FirstBadSeq
		}
		if r.Verified != (c.reason == "") || r.Reason != c.reason || seq != c.seq {
			t.Errorf("%s: got verified %v, %q at %d (%s), want %q at %d", c.name, r.Verified, r.Reason, seq, r.Detail, c.reason, c.seq)
		}
	}
}
