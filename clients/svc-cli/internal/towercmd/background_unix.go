//go:build unix

package towercmd

import (
	"os/signal"
	"syscall"
)

// ignoreBackgroundReads lets the tower run behind a shell's &: a read from the terminal then fails, where it would
// stop the process.
func ignoreBackgroundReads() { signal.Ignore(syscall.SIGTTIN) }
