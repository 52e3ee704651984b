package loopback

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
)

// OpenBrowser makes the desktop open a local address and does not wait for it.
// The address is an argument, never a line of a shell, and must be one of ours.
func OpenBrowser(address string) error {
	if !strings.HasPrefix(address, "http://127.0.0.1:") {
		return errors.New("only addresses on 127.0.0.1 are opened")
	}
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("no browser was opened, as %s is not installed: open the address by hand", name)
	}
	cmd := exec.Command(path, args...)
	detachProcess(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("no browser was opened: %w", err)
	}
	// The opener may become the browser and outlive us. Wait reaps it, so that it
	// is no zombie while we live; no one waits for this goroutine.
	go func() { _ = cmd.Wait() }()
	return nil
}
