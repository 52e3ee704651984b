// Command testservers runs a command beside one Postgres and one Redis that all test binaries it starts share
// (libs/testenv). It ends with the command's exit code; the servers and their data end with it.
//
//	testservers go test ./...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/mlp-platform/platform/libs/testenv"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: testservers command [argument ...]")
		os.Exit(2)
	}
	code, err := runBesideServers(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testservers:", err)
		code = 1
	}
	os.Exit(code)
}

func runBesideServers(args []string) (code int, err error) {
	// The command is in the terminal's process group too and gets the interrupt directly; the servers outlive it.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	environment, stopServers, err := testenv.StartShared(ctx)
	if err != nil {
		return 1, err
	}
	defer stopServers()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), environment...)
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return 0, err
}
