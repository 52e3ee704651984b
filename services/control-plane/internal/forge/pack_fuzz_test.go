package forge

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge/forgetest"
)

// FuzzPack: checking a pack of any bytes returns a verdict, holds none of the unfolded data, and returns the same
// verdict again. A sound pack followed by any bytes stays sound.
func FuzzPack(f *testing.F) {
	blob := []byte(strings.Repeat("0123456789", 100))
	sound := forgetest.Pack(0, forgetest.Object{Type: forgetest.Commit, Body: []byte("tree " + strings.Repeat("0", 40) + "\n")},
		forgetest.Object{Type: forgetest.Blob, Body: blob},
		forgetest.Object{Type: forgetest.RefDelta, Base: forgetest.HashOf("blob", blob, 0), Body: forgetest.CopyDelta(int64(len(blob)), 3)})
	f.Add(sound)
	f.Add(forgetest.Pack(1<<32-1, forgetest.Object{Type: forgetest.Blob, Body: []byte("x")}))
	f.Add(forgetest.Pack(0, forgetest.Object{Type: forgetest.Blob, Size: 10, Zeros: 1 << 20}))
	f.Add([]byte("PACK of lies"))
	f.Fuzz(func(t *testing.T, pack []byte) {
		check := func(pack []byte) (err error) {
			hostiletest.CheckAllocation(t, 8<<20, func() { err = checkPack(t.Context(), bytes.NewReader(pack)) })
			return err
		}
		err := check(pack)
		if err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatalf("%v; want %v", err, ErrMalformed)
		}
		if again := check(pack); (again == nil) != (err == nil) {
			t.Fatalf("first %v, then %v; want one verdict", err, again)
		}
		if err := check(append(bytes.Clone(sound), pack...)); err != nil {
			t.Fatalf("a sound pack and more: %v; want it accepted", err)
		}
	})
}
