package cli

import (
	"os/exec"

	"github.com/mlp-platform/platform/libs/cli/fault"
)

// ownGroup refuses: the script is for a shell and Docker on Linux or macOS.
func ownGroup(*exec.Cmd) error {
	return fault.New("stack_unsupported", "mlp stack runs %s of a checkout, which does not run on Windows", stackScript).
		WithHint("run it on Linux, macOS or WSL")
}
