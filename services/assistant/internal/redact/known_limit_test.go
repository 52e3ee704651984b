package redact

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func has(k *known, value string) bool {
	spans := k.find("x "+value+" y", nil)
	return len(spans) == 1 && spans[0] == span{from: 2, to: 2 + len(value)}
}

// The set stores hashes, never a value. A full generation is still searched until the next one is full too.
func TestKnownIsBounded(t *testing.T) {
	t.Parallel()
	k := newKnown()
	name := func(i int) string { return fmt.Sprintf("%06d-value", i) }
	for i := range mostKnown + 10 {
		k.add("password", name(i))
	}
	if len(k.now.values) > mostKnown || len(k.then.values) > mostKnown {
		t.Errorf("%d and %d values; want at most %d each", len(k.now.values), len(k.then.values), mostKnown)
	}
	for _, i := range []int{0, 100, mostKnown + 9} {
		if !has(k, name(i)) {
			t.Errorf("%s is not found; want it in one of the generations", name(i))
		}
	}
	if said := fmt.Sprintf("%q", fmt.Sprint(k.now, k.then)); strings.Contains(said, "-value") {
		t.Error("the set holds a value; want hashes only")
	}
}

// One Secret full of words does not evict the values of others.
func TestOneSecretIsBounded(t *testing.T) {
	t.Parallel()
	k := newKnown()
	k.addSecret("password", "first-V4lue", false)
	for s := range 40 {
		var b strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&b, "aB3dE5gH7jK9-%d-%d\n", s, i)
		}
		k.addSecret("app.conf", b.String(), false)
	}
	if n := len(k.now.values) + len(k.then.values); n > 40*(mostParts+mostPieces)+1 {
		t.Errorf("%d values; want at most %d of each Secret", n, mostParts+mostPieces)
	}
	if !has(k, "first-V4lue") {
		t.Error("the first value is not found any more")
	}
}

// Values with the same first bytes cost no more than a few hashes per occurrence of these, and all are found.
func TestValuesThatBeginAlike(t *testing.T) {
	t.Parallel()
	k := newKnown()
	value := func(n int) string { return "aaaaaa" + strings.Repeat("bC4", n) }
	for n := range 1000 {
		k.add("password", value(n+1))
	}
	began := time.Now()
	k.find(strings.Repeat("aaaaaa", 8<<10), nil)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("48 KiB of their first bytes took %v", took)
	}
	for _, n := range []int{1, 20, 500, 1000} {
		want := value(n)
		spans := k.find("x "+want+" y", nil)
		if len(spans) != 1 || spans[0].from != 2 || 4*(spans[0].to-2) < 3*len(want) {
			t.Errorf("of a value of %d bytes: got %v, want at least three quarters", len(want), spans)
		}
	}
}

// The rest of a long value is found, and a value that changes late is a new one.
func TestLongValues(t *testing.T) {
	t.Parallel()
	k := newKnown()
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "%d.aB3/", i*i)
	}
	long := b.String()
	k.addSecret("token", long, false)
	k.addSecret("token", long+"password=l4te-Pass", false)
	covered := 0
	for _, sp := range k.find(long, nil) {
		covered += sp.to - sp.from
	}
	if covered < len(long)-leastKnown {
		t.Errorf("%d of %d bytes are found; want all", covered, len(long))
	}
	if !has(k, "l4te-Pass") {
		t.Error("the password at the end of the longer value is not found")
	}
}
