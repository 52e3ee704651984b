package inference_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/openinference/oippb"
)

// Aliases decide which models serve. A manual load is refused with the alternative.
func TestGRPCModelsFollowTheirAliases(t *testing.T) {
	t.Parallel()
	_, c := startGRPC(t, fixturetest.NewRegistry(t))
	_, load := c.RepositoryModelLoad(t.Context(), &oippb.RepositoryModelLoadRequest{ModelName: "m"})
	_, unload := c.RepositoryModelUnload(t.Context(), &oippb.RepositoryModelUnloadRequest{ModelName: "m"})
	for _, err := range []error{load, unload} {
		if status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "move an alias") {
			t.Errorf("got %v, want Unimplemented and what to do instead", err)
		}
	}
}
