package runstore

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// Unchecked signatures prove nothing: they are counted, and the limits are those of a log without any.
func TestSignaturesWithoutAKeyAreCountedOnly(t *testing.T) {
	t.Parallel()
	v := store.Verification{OK: true, OldestSigned: 3, Checked: store.Checked{Runs: 2, Events: 5, SignedEvents: 5, Checkpoints: 4, SignedCheckpoints: 2}}
	for _, c := range []struct {
		keyed        bool
		want, unwant []string
	}{
		{false, []string{"signed_checkpoints: 2\n", "limit: the signatures were counted, not checked", "without a checked signature"}, []string{"entries lost before event"}},
		{true, []string{"signed_checkpoints: 2\n", "entries lost before event 3"}, []string{"not checked", "without a checked signature"}},
	} {
		var out bytes.Buffer
		if err := printVerification(&command.Env{Stdout: &out}, v, c.keyed); err != nil {
			t.Fatal(err)
		}
		for _, text := range c.want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("keyed %v: got\n%s\nwant %q; want strings.Contains(out.String(), text)", c.keyed, out.String(), text)
			}
		}
		for _, text := range c.unwant {
			if strings.Contains(out.String(), text) {
				t.Errorf("keyed %v: got\n%s\nwant no %q; want !strings.Contains(out.String(), text)", c.keyed, out.String(), text)
			}
		}
	}
}
