package redact

import (
	"fmt"
	"strings"
	"testing"
)

// The set keeps hashes, never a value, and begins anew when it is full.
func TestKnownIsBounded(t *testing.T) {
	t.Parallel()
	k := newKnown()
	for i := range mostKnown + 10 {
		k.add("password", fmt.Sprintf("value-%d", i))
	}
	if len(k.hashes) > mostKnown {
		t.Errorf("%d values; want at most %d", len(k.hashes), mostKnown)
	}
	last := fmt.Sprintf("value-%d", mostKnown+9)
	if spans := k.find("x "+last+" y", nil); len(spans) != 1 || spans[0] != (span{from: 2, to: 2 + len(last)}) {
		t.Errorf("found %v; want the last value", spans)
	}
	if said := fmt.Sprintf("%q", fmt.Sprint(k.buckets, k.hashes)); strings.Contains(said, "value-") {
		t.Error("the set holds a value; want hashes only")
	}
}
