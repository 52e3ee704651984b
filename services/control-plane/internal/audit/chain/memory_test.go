package chain_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
)

// Of two acknowledgements that end at the same number the later counts, in either order.
func TestTheLaterOfEqualAcknowledgementsCounts(t *testing.T) {
	t.Parallel()
	early := chain.Acknowledgement{ID: "a", Seq: 7, Hash: "early", At: "2026-01-02T03:04:05.000000Z"}
	late := chain.Acknowledgement{ID: "b", Seq: 7, Hash: "late", At: "2026-01-02T03:04:06.000000Z"}
	for _, all := range [][]chain.Acknowledgement{{early, late}, {late, early}} {
		if got := (chain.Memory{Acknowledgements: all}).Base(); got.Hash != "late" {
			t.Errorf("got the acknowledgement %s of %v, want the later one", got.Hash, all)
		}
	}
	if got := (chain.Memory{}).Base(); got.Seq != 0 || got.Hash != chain.Genesis {
		t.Errorf("got %+v without an acknowledgement, want the beginning", got)
	}
}
