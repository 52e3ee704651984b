package chain_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
)

// keyFromSeedByte returns a key of the seed n n … n.
func keyFromSeedByte(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func publicOf(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

func bundleKeyWithVouches(k ed25519.PrivateKey, by ...ed25519.PrivateKey) chain.BundleKey {
	out := chain.BundleKey{KeyID: chain.KeyID(publicOf(k)), PublicKey: publicOf(k), CreatedAt: chain.Time(day)}
	for _, b := range by {
		out.Vouches = append(out.Vouches, chain.VouchFor(b, publicOf(k), out.CreatedAt))
	}
	return out
}

func TestVectorOfAVouch(t *testing.T) {
	t.Parallel()
	v := chain.VouchFor(seedKey(), publicOf(keyFromSeedByte(7)), "2026-01-02T03:05:00.000000Z")
	if v.By != "56475aa75463474c" {
		t.Errorf(`vouch %+v; want v.By == "56475aa75463474c"`, v)
	}
	if s := base64.StdEncoding.EncodeToString(v.Signature); s != vouchVector {
		t.Errorf("signature %s; want %v", s, vouchVector)
	}
}

const vouchVector = "qOX9EcPg/mSYnNYTF/AxVFLARhobgSwH4/JN2t24iCkBXueGi/gphzAjDENnFj7lPb5ivGYYfJmGl6qvnt2yDQ=="

func TestTrustIsReachedBySignatures(t *testing.T) {
	t.Parallel()
	a, b, c, d := keyFromSeedByte(1), keyFromSeedByte(2), keyFromSeedByte(3), keyFromSeedByte(4)
	alien := keyFromSeedByte(9)
	renamed := bundleKeyWithVouches(b, a)
	renamed.KeyID = chain.KeyID(publicOf(alien))
	older := bundleKeyWithVouches(b, a)
	older.CreatedAt = chain.Time(day.Add(time.Second))
	swapped := bundleKeyWithVouches(b, a)
	swapped.PublicKey = publicOf(alien)
	claimed := bundleKeyWithVouches(alien, alien)
	claimed.Vouches[0].By = chain.KeyID(publicOf(a))
	short := bundleKeyWithVouches(b, a)
	short.PublicKey = short.PublicKey[:31]
	for what, x := range map[string]struct {
		keys []chain.BundleKey
		want []ed25519.PrivateKey
	}{
		"nobody vouches":         {[]chain.BundleKey{bundleKeyWithVouches(a), bundleKeyWithVouches(b)}, nil},
		"directly":               {[]chain.BundleKey{bundleKeyWithVouches(b, a)}, []ed25519.PrivateKey{b}},
		"over three, unsorted":   {[]chain.BundleKey{bundleKeyWithVouches(d, c), bundleKeyWithVouches(c, b), bundleKeyWithVouches(b, a)}, []ed25519.PrivateKey{b, c, d}},
		"by one of two":          {[]chain.BundleKey{bundleKeyWithVouches(b, alien, a)}, []ed25519.PrivateKey{b}},
		"for itself":             {[]chain.BundleKey{bundleKeyWithVouches(alien, alien)}, nil},
		"in a circle":            {[]chain.BundleKey{bundleKeyWithVouches(alien, d), bundleKeyWithVouches(d, alien)}, nil},
		"the retired key for it": {[]chain.BundleKey{bundleKeyWithVouches(alien, b)}, nil},
		"under another's name":   {[]chain.BundleKey{claimed}, nil},
		"renamed":                {[]chain.BundleKey{renamed}, nil},
		"another instant":        {[]chain.BundleKey{older}, nil},
		"another key":            {[]chain.BundleKey{swapped}, nil},
		"cut off":                {[]chain.BundleKey{short}, nil},
	} {
		want := chain.KeysOf(publicOf(a))
		for _, k := range x.want {
			want[chain.KeyID(publicOf(k))] = publicOf(k)
		}
		roots := chain.KeysOf(publicOf(a))
		got := roots.Reach(x.keys)
		if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) || len(roots) != 1 {
			t.Errorf("%s: %v; want slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) && len(roots) == 1", what, got)
		}
	}
}

// A bundle's keys count only if the given one vouches for them.
func TestABundleOfTwoKeys(t *testing.T) {
	t.Parallel()
	first, second, alien := keyFromSeedByte(1), keyFromSeedByte(2), keyFromSeedByte(9)
	all := makeLinks(t, 3)
	for what, x := range map[string]struct {
		keys    []chain.BundleKey
		trusted chain.Keys
		bad     int64
	}{
		"vouched for":       {[]chain.BundleKey{bundleKeyWithVouches(second), bundleKeyWithVouches(first, second)}, chain.KeysOf(publicOf(second)), 0},
		"only listed":       {[]chain.BundleKey{bundleKeyWithVouches(second), bundleKeyWithVouches(first)}, chain.KeysOf(publicOf(second)), 1},
		"by a stranger":     {[]chain.BundleKey{bundleKeyWithVouches(second), bundleKeyWithVouches(first, alien), bundleKeyWithVouches(alien)}, chain.KeysOf(publicOf(second)), 1},
		"both given":        {[]chain.BundleKey{}, chain.KeysOf(publicOf(first), publicOf(second)), 0},
		"the old one given": {[]chain.BundleKey{bundleKeyWithVouches(second), bundleKeyWithVouches(first, second)}, chain.KeysOf(publicOf(first)), 3},
		"none given":        {[]chain.BundleKey{bundleKeyWithVouches(second), bundleKeyWithVouches(first)}, nil, 0},
	} {
		var buf bytes.Buffer
		w, err := chain.NewWriter(&buf, chain.Header{Tenant: "default", FromSeq: 1, ToSeq: 3, PrevHash: chain.Genesis, CreatedAt: chain.Time(day), Keys: x.keys})
		for _, l := range all {
			if err == nil {
				err = w.Entry(l)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []chain.Checkpoint{chain.Sign(first, "default", 1, all[0].Hash, day), chain.Sign(second, "default", 3, all[2].Hash, day)} {
			if err := w.Checkpoint(c); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(endingOf(all, second)); err != nil {
			t.Fatal(err)
		}
		if what == "vouched for" { // which the verifier in another language checks as well
			golden, err := os.ReadFile("testdata/two-keys.ndjson")
			if err != nil || !bytes.Equal(golden, buf.Bytes()) {
				t.Errorf("testdata/two-keys.ndjson is not\n%s%v; want bytes.Equal(golden, buf.Bytes())", &buf, err)
			}
		}
		r, err := chain.VerifyBundle(&buf, x.trusted)
		if err != nil || r.Verified != (x.bad == 0) || !r.Verified && (*r.FirstBadSeq != x.bad || r.Reason != chain.BadCheckpoint) {
			t.Errorf("%s: %+v, %v; want r.Verified == (x.bad == 0) && (r.Verified || !*r.FirstBadSeq != x.bad || r.Reason != chain.BadCheckpoint)", what, r, err)
		}
	}
}

func TestParseKeys(t *testing.T) {
	t.Parallel()
	a, b := publicOf(keyFromSeedByte(1)), publicOf(keyFromSeedByte(2))
	keys, err := chain.ParseKeys(hex.EncodeToString(a) + ", " + base64.StdEncoding.EncodeToString(b) + ",")
	if err != nil || len(keys) != 2 || !keys.Has(a) || !keys.Has(b) || keys.Has(publicOf(keyFromSeedByte(3))) {
		t.Errorf("keys %v, %v; want len(keys) == 2 && keys.Has(a) && keys.Has(b) && !keys.Has(publicOf(keyFromSeedByte(3)))", keys, err)
	}
	if keys, err := chain.ParseKeys(""); err != nil || len(keys) != 0 {
		t.Errorf("keys %v, %v; want len(keys) == 0", keys, err)
	}
	if _, err := chain.ParseKeys(chain.KeyID(a)); err == nil {
		t.Error("an id is no key")
	}
}

func TestAnchorsOnlyRise(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "anchors")
	at := func(seq int64) chain.Anchors {
		return chain.Anchors{"default": chain.Sign(keyFromSeedByte(1), "default", seq, strings.Repeat("a", 64), day)}
	}
	if have, err := chain.ReadAnchors(path); err != nil || len(have) != 0 {
		t.Errorf("no file: %v, %v; want len(have) == 0", have, err)
	}
	for _, step := range []struct{ raise, want int64 }{{5, 5}, {3, 5}, {9, 9}, {9, 9}} {
		if err := chain.RaiseAnchors(path, at(step.raise)); err != nil {
			t.Fatal(err)
		}
		if have, err := chain.ReadAnchors(path); err != nil || have["default"].Seq != step.want || chain.KeysOf(publicOf(keyFromSeedByte(1))).Check("default", have["default"]) != nil {
			t.Errorf(`anchors %v, %v; want have["default"].Seq == step.want && chain.KeysOf(publicOf(keyFromSeedByte(1))).Check("default", have["default"]) == nil`, have, err)
		}
	}
	if err := chain.RaiseAnchors(path, chain.Anchors{"other": at(1)["default"]}); err != nil {
		t.Fatal(err)
	}
	if have, err := chain.ReadAnchors(path); err != nil || len(have) != 2 {
		t.Errorf("anchors %v, %v; want len(have) == 2", have, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v; want len(left) == 1", left, err)
	}
	for _, bad := range []string{"", "{}", `{"format":"platform-audit-anchors/v2","anchors":{}}`, `{"format":"platform-audit-anchors/v1","anchors":{},"x":1}`} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := chain.RaiseAnchors(path, at(1)); err == nil {
			t.Errorf("%q is overwritten; want an error", bad)
		}
	}
}
