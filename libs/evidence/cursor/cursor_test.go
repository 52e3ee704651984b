package cursor_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/cursor"
	"github.com/mlp-platform/platform/libs/evidence/vectors/vectortest"
)

func testKey() []byte {
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(i)
	}
	return key
}

const named = "eyJhZnRlciI6InJ1bi9kZW1vOjAwMDEiLCJraW5kIjoicHJvZHVjdC1zcGluZS1ydW4tbGlzdC1jdXJzb3ItdjEiLCJtYWMiOiJmMmUzMTJhYzRjNjI2MmU0YWUxNDJkNjE5OTMyYTRkOSJ9"

func TestVectors(t *testing.T) {
	t.Parallel()
	if got := cursor.Encode(testKey(), cursor.Runs, "run/demo:0001"); got != named {
		t.Error(got, "want", named)
	}
	var all []struct {
		Key, After, Cursor string
		Kind               cursor.Kind
	}
	vectortest.Load(t, "cursors.json", &all)
	if len(all) != 4 {
		t.Fatal(len(all), "want 4")
	}
	for _, v := range all {
		key, err := hex.DecodeString(v.Key)
		if err != nil {
			t.Fatal(err)
		}
		if got := cursor.Encode(key, v.Kind, v.After); got != v.Cursor {
			t.Errorf("%s: %s; want got == %v", v.Kind, got, v.Cursor)
		}
		if after, err := cursor.Decode(key, v.Kind, v.Cursor); err != nil || after != v.After {
			t.Errorf("%s: %s, %v; want after == v.After", v.Kind, after, err)
		}
	}
}

func TestOnlyWhatWasIssuedIsTaken(t *testing.T) {
	t.Parallel()
	key := testKey()
	raw, err := base64.URLEncoding.DecodeString(named)
	if err != nil {
		t.Fatal(err)
	}
	recode := func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) }
	other := testKey()
	other[31]++
	long := strings.Repeat("r", 192)
	if after, err := cursor.Decode(key, cursor.Runs, cursor.Encode(key, cursor.Runs, long)); err != nil || after != long {
		t.Error("the longest id:", err, "want after == long")
	}
	for name, c := range map[string]struct {
		key  []byte
		kind cursor.Kind
		text string
	}{
		"of another listing":      {key, cursor.Events, named},
		"of another listing's id": {key, cursor.WorkUnits, named},
		"of another store":        {other, cursor.Runs, named},
		"empty":                   {key, cursor.Runs, ""},
		"an x":                    {key, cursor.Runs, "x"},
		"altered":                 {key, cursor.Runs, recode(strings.Replace(string(raw), "0001", "0002", 1))},
		"without its padding":     {key, cursor.Events, strings.TrimRight(cursor.Encode(key, cursor.Events, "1"), "=")},
		"with white space":        {key, cursor.Runs, recode(" " + string(raw))},
		"with a newline":          {key, cursor.Runs, named[:40] + "\n" + named[40:]},
		"with more keys":          {key, cursor.Runs, recode(strings.Replace(string(raw), "}", `,"x":1}`, 1))},
		"without a mac":           {key, cursor.Runs, recode(`{"after":"run/demo:0001","kind":"product-spine-run-list-cursor-v1"}`)},
		"no object":               {key, cursor.Runs, recode(`[]`)},
		"no JSON":                 {key, cursor.Runs, recode(`{`)},
		"a number":                {key, cursor.Runs, recode(`{"after":1,"kind":"product-spine-run-list-cursor-v1","mac":""}`)},
		"too long":                {key, cursor.Runs, strings.Repeat("A", 2000)},
		"an event of 19 digits":   {key, cursor.Events, cursor.Encode(key, cursor.Events, strings.Repeat("1", 19))},
		"an event of no digits":   {key, cursor.Events, cursor.Encode(key, cursor.Events, "")},
		"an event of letters":     {key, cursor.Events, cursor.Encode(key, cursor.Events, "12x")},
		"a run of no id":          {key, cursor.Runs, cursor.Encode(key, cursor.Runs, "run demo")},
	} {
		if after, err := cursor.Decode(c.key, c.kind, c.text); !errors.Is(err, cursor.ErrInvalid) {
			t.Errorf("%s: %q, %v; want errors.Is(err, cursor.ErrInvalid)", name, after, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(named)
	f.Add("x")
	f.Fuzz(func(t *testing.T, text string) {
		after, err := cursor.Decode(testKey(), cursor.Runs, text)
		if err == nil && cursor.Encode(testKey(), cursor.Runs, after) != text {
			t.Fatalf("%q was taken as %q; want (an error || cursor.Encode(testKey(), cursor.Runs, after) == text)", text, after)
		}
	})
}
