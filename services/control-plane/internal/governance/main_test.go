package governance_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

func listItems(t *testing.T, p *controlplanetest.Plane, path, bearer string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, v := range p.Want(200, "GET", path, bearer, nil).Object(t)["items"].([]any) {
		out = append(out, v.(map[string]any))
	}
	return out
}
