package inferencetest

import (
	"os"
	"testing"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/trial"
)

// Main is testenv.Main for packages whose tests load models: the service then starts the test binary to try them.
func Main(m *testing.M) {
	if code, asked := trial.Serve(os.Args[1:]); asked {
		os.Exit(code)
	}
	testenv.Main(m)
}
