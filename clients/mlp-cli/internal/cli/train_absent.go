//go:build !cgo

package cli

import (
	"context"

	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/modelrepo"
)

// trainHere refuses: models are verified with ONNX Runtime, whose binding is in C.
func trainHere(_ context.Context, _ *Env, _ runOptions, _ string, _ *modelrepo.Repo, m *modelrepo.Model) error {
	return fault.New("no_local_training", "this build of mlp has no ONNX Runtime, so it cannot train on this machine").
		WithHint("train on the platform: mlp retrain %s; or use the mlp of the platform's archive for Linux", m.Name)
}
