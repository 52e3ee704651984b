package chain_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
)

const vector = `{"action":"approval.approved","actor":"alice","details":{"approval_id":"01930000-0000-7000-8000-000000000002"},"event_id":"01930000-0000-7000-8000-000000000001","outcome":"ok","request_id":"req-1","seq":1,"source":"control-plane","target":"model:JPCP","tenant":"default","ts":"2026-01-02T03:04:05.000006Z","v":1}`

const vectorHash = "13183a48c36f426a39d1ad83cc269f90aeb7457efd3951c3f8780879314d9e42"

func vectorEntry(t testing.TB) chain.Entry {
	t.Helper()
	var e chain.Entry
	if err := json.Unmarshal([]byte(vector), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// seedKey is the key of the seed 00, 01 … 1f.
func seedKey() ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	for i := range seed {
		seed[i] = byte(i)
	}
	return ed25519.NewKeyFromSeed(seed)
}

func TestVectorOfAnEntry(t *testing.T) {
	t.Parallel()
	e := vectorEntry(t)
	form, err := e.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if string(form) != vector {
		t.Errorf("canonical form %s; want string(form) == %v", form, vector)
	}
	link, err := chain.Append(e, chain.Genesis)
	if err != nil || link.Hash != vectorHash {
		t.Errorf("hash %s, %v; want link.Hash == vectorHash", link.Hash, err)
	}
}

func TestVectorOfACheckpoint(t *testing.T) {
	t.Parallel()
	key := seedKey()
	c := chain.Sign(key, "default", 1, vectorHash, time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC))
	if c.KeyID != "56475aa75463474c" || c.TS != "2026-01-02T03:05:00.000000Z" {
		t.Errorf(`checkpoint %+v; want c.KeyID == "56475aa75463474c" && c.TS == "2026-01-02T03:05:00.000000Z"`, c)
	}
	if s := base64.StdEncoding.EncodeToString(c.Signature); s != "8t7X9vjF4hQnS4BF9kanFas1+cZ34tJ7vKQvMrvPgGgRv/1BorQMjg+3fTFYiqNnV62VAZISjA22vNVH+RKgCg==" {
		t.Errorf(`signature %s; want "8t7X9vjF4hQnS4BF9kanFas1+cZ34tJ7vKQvMrvPgGgRv/1BorQMjg+3fTFYiqNnV62VAZISjA22vNVH+RKgCg=="`, s)
	}
	if f := chain.KeysOf(key.Public().(ed25519.PublicKey)).Check("default", c); f != nil {
		t.Error(f, "want nil")
	}
}

// The key and the MAC of the vector, computed by another program with HKDF-SHA256
// (no salt, info platform-audit-entry/v1, 32 bytes) and HMAC-SHA256.
func TestVectorOfAMAC(t *testing.T) {
	t.Parallel()
	key, err := chain.DeriveMACKey(seedKey())
	if err != nil {
		t.Fatal(err)
	}
	link, err := chain.AppendKeyed(vectorEntry(t), chain.Genesis, key)
	if err != nil {
		t.Fatal(err)
	}
	if want := "33437206ef75a3a12f06785f4d57c29706a6518eee5fa136e8f971cd9526af30"; link.MAC != want || link.Hash != vectorHash {
		t.Errorf("got MAC %s and hash %s, want %s and %s", link.MAC, link.Hash, want, vectorHash)
	}
	if f := link.CheckKeyed(key); f != nil {
		t.Errorf("got %v, want no fault", f)
	}
	other, err := chain.DeriveMACKey(keyFromSeedByte(3))
	if err != nil {
		t.Fatal(err)
	}
	if f := link.CheckKeyed(other); f == nil || f.Reason != chain.BadForged {
		t.Errorf("another key: got %v, want %s", f, chain.BadForged)
	}
}
