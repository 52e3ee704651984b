package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

func containsNUL(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.ContainsRune(v, 0)
	case []any:
		for _, e := range v {
			if containsNUL(e) {
				return true
			}
		}
	case map[string]any:
		for k, e := range v {
			if strings.ContainsRune(k, 0) || containsNUL(e) {
				return true
			}
		}
	}
	return false
}

// The scan of the bytes finds what decoding them would show.
func FuzzNUL(f *testing.F) {
	for _, s := range []string{`"\u0000"`, `"\\u0000"`, `"\\\u0000"`, `{"\u0000":1}`, `["a\u0001"]`, `{"a":{"b":"\u0000"}}`, `"u0000"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			return
		}
		found := hasNUL(raw)
		if containsNUL(v) && !found {
			t.Fatalf("missed in %q; want (!containsNUL(v) || found)", raw)
		}
		// Of two equal keys decoding shows the last, so the scan may find more.
		if again, err := json.Marshal(v); err == nil && !containsNUL(v) && hasNUL(again) {
			t.Fatalf("seen in %q, where there is none; want ((an error || containsNUL(v)) || !hasNUL(again))", again)
		}
	})
}
