package app

import (
	"os"
	"time"

	"golang.org/x/term"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/loopback"
)

// Version is the program's version; the linker sets it.
var Version = "dev"

// System is the real world.
func System() *command.Env {
	e := &command.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, LookupEnv: os.LookupEnv, Now: time.Now, Version: Version, OpenBrowser: loopback.OpenBrowser,
		Terminal:      term.IsTerminal(int(os.Stdout.Fd())),
		ErrorTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
	if e.Terminal {
		if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			e.Width = w
		}
	}
	return e
}
