package sealing

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/service"
)

// material returns 32 bytes whose base64 uses characters that differ between the alphabets.
func material(first byte) []byte {
	raw := make([]byte, keySize)
	for i := range raw {
		raw[i] = first - byte(i)*5
	}
	raw[1], raw[2] = 0xff, 0xfe
	return raw
}

func parseKeys(t testing.TB, list ...[]byte) *Keys {
	t.Helper()
	texts := make([]string, len(list))
	for i, raw := range list {
		texts[i] = base64.StdEncoding.EncodeToString(raw)
	}
	keys, err := ParseKeys(service.Secret(strings.Join(texts, ",")))
	if err != nil {
		t.Fatalf("ParseKeys: %v; want no error", err)
	}
	return keys
}

func mustSeal(t testing.TB, k *Keys, name, value string) string {
	t.Helper()
	sealed, err := k.Seal(name, value)
	if err != nil {
		t.Fatalf("Seal: %v; want no error", err)
	}
	return sealed
}

func TestKeysAreReadInEitherAlphabetWithAndWithoutPadding(t *testing.T) {
	t.Parallel()
	raw := material(250)
	sealed := mustSeal(t, parseKeys(t, raw), "a", "value")
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		keys, err := ParseKeys(service.Secret(" " + encoding.EncodeToString(raw) + " "))
		if err != nil {
			t.Errorf("ParseKeys: %v; want no error", err)
			continue
		}
		if got, err := keys.Open("a", sealed); got != "value" || err != nil {
			t.Errorf(`Open = %q, %v; want "value", no error`, got, err)
		}
	}
}

func TestKeysThatProtectNothingAreRefusedWithoutRepeatingThem(t *testing.T) {
	t.Parallel()
	good := base64.StdEncoding.EncodeToString(material(1))
	for name, c := range map[string]struct{ text, want string }{
		"empty":       {"", "not set"},
		"blank":       {"  ", "not set"},
		"no base64":   {"changeme!", "entry 1 is not base64 of 32 bytes"},
		"16 bytes":    {base64.StdEncoding.EncodeToString(make([]byte, 16)), "entry 1 is not base64 of 32 bytes"},
		"33 bytes":    {base64.StdEncoding.EncodeToString(append(material(1), 1)), "entry 1 is not base64 of 32 bytes"},
		"zeros":       {base64.StdEncoding.EncodeToString(make([]byte, 32)), "entry 1 is a placeholder"},
		"second bad":  {good + ",x", "entry 2 is not base64 of 32 bytes"},
		"ends comma":  {good + ",", "entry 2 is not base64 of 32 bytes"},
		"twice":       {good + "," + good, "entry 2 repeats entry 1"},
		"other quote": {strings.Repeat("secret", 8), "entry 1 is not base64 of 32 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseKeys(service.Secret(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("ParseKeys: %v; want an error that says %q", err, c.want)
			}
			if c.text != "" && len(c.text) > 8 && strings.Contains(err.Error(), c.text) {
				t.Errorf("the error repeats the key: %v", err)
			}
		})
	}
}

func TestSealedFormNamesTheKeyByItsDigest(t *testing.T) {
	t.Parallel()
	raw := material(7)
	sum := sha256.Sum256(raw)
	parts := strings.Split(mustSeal(t, parseKeys(t, raw), "forge_token", "s3cret"), ".")
	if len(parts) != 4 || parts[0] != "v1" || parts[1] != hex.EncodeToString(sum[:])[:8] {
		t.Fatalf("sealed = %v; want v1, 8 hex of the key's SHA-256, nonce, ciphertext", parts)
	}
	if nonce, err := base64.RawURLEncoding.DecodeString(parts[2]); err != nil || len(nonce) != 12 {
		t.Errorf("nonce = %x, %v; want 12 bytes", nonce, err)
	}
}

func TestEachSealingDiffers(t *testing.T) {
	t.Parallel()
	keys := parseKeys(t, material(7))
	if a, b := mustSeal(t, keys, "n", "v"), mustSeal(t, keys, "n", "v"); a == b {
		t.Errorf("two sealings are both %q; want another nonce each time", a)
	}
}

func TestAllKeysOpenAndTheFirstSeals(t *testing.T) {
	t.Parallel()
	older, newer := material(3), material(9)
	before := mustSeal(t, parseKeys(t, older), "n", "v")
	rotated := parseKeys(t, newer, older)
	if got, err := rotated.Open("n", before); got != "v" || err != nil {
		t.Errorf(`Open of the older key's value = %q, %v; want "v"`, got, err)
	}
	if rotated.Current(before) {
		t.Error("Current(value of the older key) = true; want false")
	}
	after := mustSeal(t, rotated, "n", "v")
	if !rotated.Current(after) {
		t.Error("Current(value of the first key) = false; want true")
	}
	if _, err := parseKeys(t, older).Open("n", after); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("Open without the key: %v; want ErrUnknownKey", err)
	}
}

func TestWhatWasChangedOrMovedDoesNotOpen(t *testing.T) {
	t.Parallel()
	keys := parseKeys(t, material(3))
	sealed := mustSeal(t, keys, "forge_token", "v")
	if _, err := keys.Open("control_plane_token", sealed); !errors.Is(err, ErrRefused) {
		t.Errorf("Open under another name: %v; want ErrRefused", err)
	}
	parts := strings.Split(sealed, ".")
	flipped := []byte(parts[3])
	if flipped[0] == 'A' {
		flipped[0] = 'B'
	} else {
		flipped[0] = 'A'
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"changed":       {strings.Join([]string{parts[0], parts[1], parts[2], string(flipped)}, "."), ErrRefused},
		"empty":         {"", ErrMalformed},
		"other version": {"v2" + sealed[2:], ErrMalformed},
		"short nonce":   {strings.Join([]string{parts[0], parts[1], "AAAA", parts[3]}, "."), ErrMalformed},
		"no base64":     {strings.Join([]string{parts[0], parts[1], parts[2], "*"}, "."), ErrMalformed},
		"fifth part":    {sealed + ".x", ErrMalformed},
	} {
		if got, err := keys.Open("forge_token", c.text); !errors.Is(err, c.want) {
			t.Errorf("%s: Open = %q, %v; want %v", name, got, err, c.want)
		}
	}
}

func TestDerivedKeysNeedTheSecretAndThePurpose(t *testing.T) {
	t.Parallel()
	keys := parseKeys(t, material(3), material(4))
	derive := func(k *Keys, purpose, secret string) *Keys {
		t.Helper()
		out, err := k.Derive(purpose, []byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	sealed := mustSeal(t, derive(keys, "session", "cookie"), "n", "v")
	if got, err := derive(keys, "session", "cookie").Open("n", sealed); got != "v" || err != nil {
		t.Errorf(`Open = %q, %v; want "v"`, got, err)
	}
	for name, other := range map[string]*Keys{
		"the configured key alone": keys,
		"another secret":           derive(keys, "session", "cookiE"),
		"another purpose":          derive(keys, "login", "cookie"),
	} {
		if got, err := other.Open("n", sealed); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: Open = %q, %v; want ErrRefused", name, got, err)
		}
	}
	rotated := derive(parseKeys(t, material(8), material(3)), "session", "cookie")
	if got, err := rotated.Open("n", sealed); got != "v" || err != nil {
		t.Errorf(`after rotation: Open = %q, %v; want "v"`, got, err)
	}
}

func FuzzOpen(f *testing.F) {
	keys := parseKeys(f, material(3))
	f.Add("v1.00000000.AAAAAAAAAAAAAAAA.AAAA", "n")
	f.Add(mustSeal(f, keys, "n", "v"), "n")
	f.Fuzz(func(t *testing.T, text, name string) {
		value, err := keys.Open(name, text)
		if err == nil && (name != "n" || value != "v") {
			t.Errorf("Open(%q, %q) = %q; want an error for what was not sealed here", name, text, value)
		}
		sealed := mustSeal(t, keys, name, text)
		if got, err := keys.Open(name, sealed); got != text || err != nil {
			t.Errorf("round trip = %q, %v; want %q", got, err, text)
		}
	})
}
