package redact_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// A random key in an assignment is redacted whatever its name, in each common encoding.
func TestRandomKeysAreHiddenUnderAnyName(t *testing.T) {
	t.Parallel()
	codes := map[string]func([]byte) string{
		"hex": hex.EncodeToString, "base64": base64.StdEncoding.EncodeToString, "base64url": base64.URLEncoding.EncodeToString,
	}
	for name, encode := range codes {
		for _, size := range []int{16, 20, 24, 32, 48, 64} {
			missed := 0
			for range 500 {
				raw := make([]byte, size)
				_, _ = rand.Read(raw)
				key := encode(raw)
				if out := redact.Text("SESSION_SIGNING=" + key + "\n"); strings.Contains(out, key[:8]) {
					missed++
				}
			}
			if missed > 5 { // a few look like words by chance
				t.Errorf("%s of %d bytes: %d of 500 show; want at most 5", name, size, missed)
			}
		}
	}
}

// Objects are judged like text.
func TestObjectsFollowTheSameShapes(t *testing.T) {
	t.Parallel()
	const key = "Zm9vYmFyAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBk="
	for _, tc := range []struct {
		name, value string
		hidden      bool
	}{
		{"SESSION_SIGNING", "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=", true},
		{"PAYMENTS_HMAC", strings.Repeat("9f86d081884c7d65", 4), true},
		{"DB_PASSWORD", "<your-password>", false},
		{"DB_PASSWORD", "******", false},
		{"GIT_COMMIT", "4382d7b6480dff28bf2c3e33de10134ef72b2308", false},
		{"checksum/config", strings.Repeat("9f86d081884c7d65", 4), false},
		{"kubernetes.io/config.mirror", strings.Repeat("9f86d081884c7d65", 2), false},
		{"PUBLIC_KEY", key, false},
		{"JWT_KEY", "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n", false},
		{"JWT_KEY", "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIrTR2c\n-----END EC PRIVATE KEY-----\n", true},
	} {
		for where, out := range map[string]string{"value": redact.Value(tc.name, tc.value), "object": objectValue(tc.name, tc.value)} {
			if got := out != tc.value; got != tc.hidden {
				t.Errorf("%s: %s=%.30s became %.60q; want hidden %t", where, tc.name, tc.value, out, tc.hidden)
			}
		}
	}
}

// objectValue returns the value of a variable of a container, as shown in an object.
func objectValue(name, value string) string {
	variable := map[string]any{"name": name, "value": value}
	redact.Object(map[string]any{"kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"env": []any{variable}}}}})
	shown, _ := variable["value"].(string)
	return shown
}

// A block that only begins like a public one is redacted whole, and so is a secret between two public blocks.
func TestPublicBlocksHideNothing(t *testing.T) {
	t.Parallel()
	const cert = "-----BEGIN CERTIFICATE-----\nMIIBhTCCASugAwIBAgIQIRi6zePL6mKjOipn\n-----END CERTIFICATE-----\n"
	for _, text := range []string{
		"-----BEGIN CERTIFICATE-----\nMIIBhTCC\n-----END EC PRIVATE KEY-----\n",
		"-----BEGIN EC PRIVATE KEY-----\nMIIBhTCC\n-----END CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE-----\npassword=hunter2Prod; MIIBhTCC\n-----END CERTIFICATE-----\n",
	} {
		if out := redact.Text(text); strings.Contains(out, "MIIBhTCC") || strings.Contains(out, "hunter2") {
			t.Errorf("%q became %q; want it hidden", text, out)
		}
	}
	if out := redact.Text(cert + "DB_PASSWORD=hunter2Prod\n" + cert); strings.Contains(out, "hunter2") || strings.Count(out, "MIIBhTCC") != 2 {
		t.Errorf("got %q; want both certificates and no password", out)
	}
}
