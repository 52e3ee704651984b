//go:build unix

package command

import (
	"os/signal"
	"syscall"
)

// ignoreBackgroundReads lets a local page be served behind a shell's &: a read from the terminal then fails, where it would
// stop the process.
func ignoreBackgroundReads() { signal.Ignore(syscall.SIGTTIN) }
