//go:build unix

package command

import (
	"os/signal"
	"syscall"
)

// ignoreBackgroundReads allows a local page to be served behind a shell's &: a read from the terminal then fails
// instead of stopping the process.
func ignoreBackgroundReads() { signal.Ignore(syscall.SIGTTIN) }
