package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput drops what was typed into a terminal and not read yet.
func discardInput(f *os.File) error {
	return unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
