package app

import (
	"os"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/cli/terminal"
	"github.com/mlp-platform/platform/libs/loopback"
)

// Version is the program's version; the linker sets it.
var Version = "dev"

// System is the real world.
func System() *command.Env {
	return &command.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, LookupEnv: os.LookupEnv, Now: time.Now, Version: Version, OpenBrowser: loopback.OpenBrowser,
		Terminal:      terminal.IsTerminal(os.Stdout),
		ErrorTerminal: terminal.IsTerminal(os.Stderr),
		Width:         terminal.Width(os.Stdout),
	}
}
