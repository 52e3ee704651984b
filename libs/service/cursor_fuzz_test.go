package service

import (
	"encoding/base64"
	"testing"
)

// FuzzCursor: a text is a cursor only if it equals the result of EncodeCursor for its position.
func FuzzCursor(f *testing.F) {
	type position struct {
		ID   string `json:"id"`
		Time int64  `json:"time"`
	}
	f.Add(EncodeCursor("/models", position{"a", 1}), "b", int64(2))
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"list":"/models","at":{"id":"\u0000","time":1}}`)), "\x00", int64(-1))
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"list":"/models","at":{}}`)), "\xff", int64(0))
	f.Add("e30", "", int64(1)<<62)
	f.Fuzz(func(t *testing.T, text, id string, at int64) {
		var p position
		if decodeCursor(text, "/models", &p) == nil {
			if got := EncodeCursor("/models", p); got != text {
				t.Fatalf("%q became %+v, which is %q; want the same text", text, p, got)
			}
		}
		made := EncodeCursor("/models", position{id, at})
		if len(made) <= maxCursor && decodeCursor(made, "/models", &p) == nil && p.Time != at {
			t.Fatalf("%+v came back as %+v", position{id, at}, p)
		}
		if decodeCursor(made, "/runs", &p) == nil {
			t.Fatalf("a cursor of another list was taken: %q", made)
		}
	})
}
