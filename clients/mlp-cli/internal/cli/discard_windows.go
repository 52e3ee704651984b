package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// discardInput drops what was typed into a console and not read yet.
func discardInput(f *os.File) error {
	return windows.FlushConsoleInputBuffer(windows.Handle(f.Fd()))
}
