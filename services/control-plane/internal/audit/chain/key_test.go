package chain_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
)

func TestTheKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	keys := make([]ed25519.PrivateKey, 16)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = chain.OpenKey(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if !bytes.Equal(k, keys[0]) {
			t.Error("two keys were made")
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want info.Mode().Perm() == 0o600", info.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v; want len(left) == 1", left, err)
	}
}

func TestAKeyThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if _, err := chain.OpenKey(path); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := chain.OpenKey(path); err == nil || !strings.Contains(err.Error(), "0600") {
			t.Errorf(`mode %v: %v; want an error && strings.Contains(err.Error(), "0600")`, mode, err)
		}
	}
	if _, err := chain.OpenKey(dir); err == nil {
		t.Error("a folder")
	}
	if _, err := chain.OpenKey(filepath.Join(dir, "no", "key")); err == nil {
		t.Error("a folder that is not there")
	}
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := chain.OpenKey(bad); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf(`no PEM: %v; want an error && !strings.Contains(err.Error(), "secret")`, err)
	}
}

func TestParsePublic(t *testing.T) {
	t.Parallel()
	public := seedKey().Public().(ed25519.PublicKey)
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	pem := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	for _, text := range []string{pem, hex.EncodeToString(public), base64.StdEncoding.EncodeToString(public), base64.RawURLEncoding.EncodeToString(public) + "\n"} {
		if got, err := chain.ParsePublic(text); err != nil || !got.Equal(public) {
			t.Errorf("%q: %v; want got.Equal(public)", text, err)
		}
	}
	for _, text := range []string{"", "00", strings.Repeat("0", 62), strings.Replace(pem, "M", "A", 1)} {
		if _, err := chain.ParsePublic(text); err == nil {
			t.Errorf("%q is a key; want an error", text)
		}
	}
}

// Two texts must not share a hash, so details in another encoding are refused.
func TestDetailsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	e := vectorEntry(t)
	for _, details := range []string{`{"a":1, "b":2}`, `{"b":2,"a":1}`, `{"a":1.0}`, `{"a":"\u0041"}`, `{"a":9007199254740993}`, `{"a":1e400}`, `{"a":1,"a":2}`, ``} {
		e.Details = json.RawMessage(details)
		if _, err := chain.Append(e, chain.Genesis); err == nil {
			t.Errorf("%s has a place; want an error", details)
		}
	}
	for _, no := range []string{`[]`, `null`, `"a"`, `1`, ``, `{"a":"\ud800"}`} {
		if _, err := chain.Object([]byte(no)); err == nil {
			t.Errorf("%s is an object; want an error", no)
		}
	}
}
