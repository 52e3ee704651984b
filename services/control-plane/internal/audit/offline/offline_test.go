package offline_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/offline"
)

var key = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

// writeBundleFile writes a bundle of two entries, the first signed, with a full trailer, and returns the file.
func writeBundleFile(t *testing.T, last int64, change func([]byte) []byte) string {
	t.Helper()
	var buf bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w, err := chain.NewWriter(&buf, chain.Header{Tenant: "default", FromSeq: 1, ToSeq: 2, PrevHash: chain.Genesis, CreatedAt: chain.Time(now)})
	if err != nil {
		t.Fatal(err)
	}
	prev, first := chain.Genesis, chain.Link{}
	for seq := range int64(2) {
		l, err := chain.Append(chain.Entry{
			V: 1, Tenant: "default", Seq: seq + 1, EventID: uuid.New(), TS: chain.Time(now), Source: "cli", Actor: "alice", Action: "a", Target: "t",
			Outcome: "ok", Details: json.RawMessage("{}"),
		}, prev)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Entry(l); err != nil {
			t.Fatal(err)
		}
		if prev = l.Hash; seq == 0 {
			first = l
		}
	}
	if err := w.Checkpoint(chain.Sign(key, "default", 1, first.Hash, now)); err != nil {
		t.Fatal(err)
	}
	end := chain.Ending{LastSeq: last, Key: key, Verification: chain.Verification{
		Verified: true, Checked: last, Head: chain.Head{Seq: 2, Hash: prev}, VerifiedAt: chain.Time(now),
	}}
	if err := w.Close(end); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bundle.ndjson")
	if err := os.WriteFile(path, change(buf.Bytes()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVerify(t *testing.T) {
	t.Parallel()
	same := func(b []byte) []byte { return b }
	good := writeBundleFile(t, 2, same)
	bad := writeBundleFile(t, 2, func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"actor":"alice"`), []byte(`"actor":"alicf"`), 1)
	})
	cut := writeBundleFile(t, 3, same)
	public := hex.EncodeToString(key.Public().(ed25519.PublicKey))
	keyFile := filepath.Join(t.TempDir(), "key.hex")
	if err := os.WriteFile(keyFile, []byte(public+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		out  string
		errs string
	}{
		{[]string{"verify", good, "--key", public}, 0, "VERIFIED: 2 entries", ""},
		{[]string{"verify", "--key", keyFile, good}, 0, "entries up to 1 are signed, 1 after it are not", ""},
		{[]string{"verify", "--key=" + keyFile, "--json", good}, 0, `"verified": true`, ""},
		{[]string{"verify", bad, "--key", public}, 1, "NOT VERIFIED: entry 1 of the chain of \"default\": hash", ""},
		{[]string{"verify", bad, "--key", public, "--json"}, 1, `"first_bad_seq": 1`, ""},
		{[]string{"verify", cut, "--key", public}, 1, "NOT VERIFIED: entry 3 of the chain of \"default\": gap", ""},
		{[]string{"verify", good}, 1, "checkpoint", ""}, // it includes no keys
		{[]string{"verify", good, "--key", strings.Repeat("00", 32)}, 1, "unknown key", ""},
		{[]string{"verify", good, "--key", "nothing"}, 2, "", "32 bytes"},
		{[]string{"verify", good, bad}, 2, "", "one bundle"},
		{[]string{"verify"}, 2, "", "usage:"},
		{[]string{"verify", "--help"}, 2, "", "usage:"},
		{[]string{"sign", good}, 2, "", "usage:"},
		{nil, 2, "", "usage:"},
		{[]string{"verify", good + ".none"}, 2, "", "no such file"},
	} {
		var out, errs bytes.Buffer
		code := offline.Run(c.args, nil, &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("%v: %d\n%s%s; want code == c.code && strings.Contains(out.String(), c.out) && strings.Contains(errs.String(), c.errs)", c.args, code, &out, &errs)
		}
	}
	raw, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := offline.Run([]string{"verify", "-", "--key", public}, bytes.NewReader(raw), &out, &errs); code != 0 {
		t.Errorf("from stdin: %d %s; want code == 0", code, &errs)
	}
}
