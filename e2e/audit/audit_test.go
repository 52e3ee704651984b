//go:build e2e

// Package audit verifies the ledger of a running platform with only a public key.
package audit

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// venvPython is the interpreter of the environment that scripts/venv.sh creates.
func venvPython(t *testing.T) string {
	t.Helper()
	p := os.Getenv("E2E_PYTHON")
	if p == "" {
		p = filepath.Join(harness.Root(t), ".cache", "venv", "bin", "python")
	}
	if _, err := os.Stat(p); err != nil {
		t.Fatalf("%v: run scripts/venv.sh", err)
	}
	return p
}

// bundleVerifiers verify a bundle with a public key: the platform's own command, and a program in another language that
// shares no code with it.
func bundleVerifiers(t *testing.T, key string) map[string]func(bundle []byte) (string, bool) {
	t.Helper()
	run := func(name string, args ...string) func([]byte) (string, bool) {
		return func(bundle []byte) (string, bool) {
			path := filepath.Join(t.TempDir(), "bundle.ndjson")
			if err := os.WriteFile(path, bundle, 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{}, args...)
			for i, a := range args {
				args[i] = strings.ReplaceAll(a, "BUNDLE", path)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
			return string(out), err == nil
		}
	}
	return map[string]func([]byte) (string, bool){
		"command": run(harness.Bin(t, "control-plane"), "audit", "verify", "BUNDLE", "--key", key),
		"python":  run(venvPython(t), "verify_bundle.py", "BUNDLE", key),
	}
}

// The second half of row 18 of the acceptance table: a clean export verifies offline, and an altered
// one does not.
func TestRow18BundleOffline(t *testing.T) {
	t.Parallel()
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, time.Minute)
	url, token := p.Env["CONTROL_PLANE_URL"], p.Env["CONTROL_PLANE_TOKEN"]
	const facts = 20
	for i := range facts {
		harness.Want(t, http.StatusAccepted, "POST", url+"/audit/events", token, map[string]any{
			"source": "cli", "action": "e2e.noted", "target": "model:JPCP",
			"details": map[string]any{"n": i, "big": uint64(1)<<63 + uint64(i), "ratio": 1e-7 * float64(i), "large": 1e21, "tenth": 0.1, "text": "Zoë \u2028 <&> \"\\\t 😀", "\uFB33": 1, "😀": nil},
		})
	}
	harness.Eventually(t, 30*time.Second, func() error {
		if n := harness.Want(t, http.StatusOK, "GET", url+"/audit/events?action=e2e.noted", token, nil).JSON(t)["count"]; n != float64(facts) {
			return fmt.Errorf("%v of %d entries", n, facts)
		}
		return nil
	})
	mark := harness.Want(t, http.StatusCreated, "POST", url+"/audit/checkpoints", token, nil).JSON(t)
	keys := harness.Want(t, http.StatusOK, "GET", url+"/audit/keys", token, nil).JSON(t)["items"].([]any)
	key := keys[0].(map[string]any)
	if len(keys) != 1 || key["key_id"] != mark["key_id"] {
		t.Fatalf(`keys %v of checkpoint %v; want len(keys) == 1 && key["key_id"] == mark["key_id"]`, keys, mark)
	}
	raw, err := base64.StdEncoding.DecodeString(key["public_key"].(string))
	if err != nil {
		t.Fatal(err)
	}
	bundle := harness.Want(t, http.StatusOK, "GET", url+"/audit/export", token, nil).Body

	for name, verify := range bundleVerifiers(t, hex.EncodeToString(raw)) {
		if out, ok := verify(bundle); !ok || !strings.HasPrefix(out, "VERIFIED") {
			t.Fatalf(`%s: %s; want ok && strings.HasPrefix(out, "VERIFIED")`, name, out)
		}
		at := bytes.Index(bundle, []byte("e2e.noted"))
		for _, i := range []int{5, at, len(bundle) / 2, len(bundle) - 20} {
			bad := bytes.Clone(bundle)
			bad[i] ^= 1
			if out, ok := verify(bad); ok || !strings.Contains(out, "NOT VERIFIED: entry ") {
				t.Errorf(`%s: byte %d: %s; want !ok && strings.Contains(out, "NOT VERIFIED: entry ")`, name, i, out)
			}
		}
		lines := bytes.SplitAfter(bundle, []byte("\n"))
		if out, ok := verify(bytes.Join(append(append([][]byte{}, lines[:3]...), lines[4:]...), nil)); ok || !strings.Contains(out, "entry 3") || !strings.Contains(out, "gap") {
			t.Errorf(`%s: the third entry deleted: %s; want !ok && strings.Contains(out, "entry 3") && strings.Contains(out, "gap")`, name, out)
		}
		if out, ok := verify(bytes.Join(lines[:len(lines)-2], nil)); ok || !strings.Contains(out, "cut off") {
			t.Errorf(`%s: without trailer: %s; want !ok && strings.Contains(out, "cut off")`, name, out)
		}
	}
	for name, verify := range bundleVerifiers(t, strings.Repeat("ab", 32)) {
		if out, ok := verify(bundle); ok || !strings.Contains(out, "unknown key") {
			t.Errorf(`%s: another's key: %s; want !ok && strings.Contains(out, "unknown key")`, name, out)
		}
	}
}

// A retired key's checkpoints count if the given key vouches for it.
func TestBundleOfTwoKeys(t *testing.T) {
	t.Parallel()
	bundle, err := os.ReadFile(filepath.Join(harness.Root(t), "services", "control-plane", "internal", "audit", "chain", "testdata", "two-keys.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	const retired, successor = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c", "8139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394"
	for name, verify := range bundleVerifiers(t, successor) {
		if out, ok := verify(bundle); !ok || !strings.HasPrefix(out, "VERIFIED") {
			t.Errorf(`%s: %s; want ok && strings.HasPrefix(out, "VERIFIED")`, name, out)
		}
		unsaid := bytes.Replace(bundle, []byte(`"created_at":"2026-01-02T03:04:05.000006Z","key_id"`), []byte(`"created_at":"2026-01-02T03:04:05.000007Z","key_id"`), -1)
		if out, ok := verify(unsaid); ok || !strings.Contains(out, "entry 1: checkpoint: ") && !strings.Contains(out, "entry 1 of the chain of \"default\": checkpoint: ") {
			t.Errorf("%s: a vouch for something else: %s; want !ok && (strings.Contains(out, \"entry 1: checkpoint: \") || strings.Contains(out, \"entry 1 of the chain of \\\"default\\\": checkpoint: \"))", name, out)
		}
	}
	for name, verify := range bundleVerifiers(t, retired) {
		if out, ok := verify(bundle); ok || !strings.Contains(out, "unknown key") {
			t.Errorf(`%s: the successor vouches, not the retired one: %s; want !ok && strings.Contains(out, "unknown key")`, name, out)
		}
	}
}
