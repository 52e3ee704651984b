package inference_test

import (
	"os"
	"testing"

	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

func TestMain(m *testing.M) {
	if fixturetest.ServeScoring(os.Args[1:]) {
		return
	}
	inferencetest.Main(m)
}

// instance is a running service, with the helpers that several of these tests use.
type instance struct{ *inferencetest.Instance }

func start(t testing.TB, registry *fixturetest.Registry, opts ...inferencetest.Option) *instance {
	t.Helper()
	return &instance{inferencetest.Start(t, registry, opts...)}
}

func launch(t testing.TB, registry *fixturetest.Registry, opts ...inferencetest.Option) *instance {
	t.Helper()
	return &instance{inferencetest.Launch(t, registry, opts...)}
}
