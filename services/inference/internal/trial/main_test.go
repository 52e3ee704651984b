package trial_test

import (
	"os"
	"testing"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference/internal/trial"
)

func TestMain(m *testing.M) {
	if code, asked := trial.Serve(os.Args[1:]); asked {
		os.Exit(code)
	}
	testenv.Main(m)
}
