package audit_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// A request of the maximum body size, of characters that the envelope encodes in six bytes, starts its run and reaches
// the ledger.
func TestLargeRequestReachesTheLedger(t *testing.T) {
	t.Parallel()
	b := startLedger(t)
	b.AwaitTarget()
	parameters := `{"e":"` + strings.Repeat("<", 1<<20-200) + `"}`
	b.Want(200, "POST", "/retrain", controlplanetest.Operator, `{"model_name":"JPCP","dataset_name":"JobEmbeddings","parameters":`+parameters+`}`)
	if n := len(b.Orchestrator.All()); n != 1 {
		t.Errorf("%d runs; want 1", n)
	}
	b.chained("default", 2) // requested and dispatched
	entries := itemsOf(t, b.Want(200, "GET", "/audit/events?action=retrain.requested", controlplanetest.Reader, nil))
	if len(entries) != 1 || entries[0]["actor"] != "operator" {
		t.Fatalf(`entries %v; want len(entries) == 1 && entries[0]["actor"] == "operator"`, entries)
	}
	sum := sha256.Sum256([]byte(parameters))
	got, _ := json.Marshal(entries[0]["details"].(map[string]any)["parameters"])
	if want, _ := json.Marshal(map[string]any{"sha256": hex.EncodeToString(sum[:]), "bytes": len(parameters)}); string(got) != string(want) {
		t.Errorf("parameters %.200s, want %s", got, want)
	}
}
