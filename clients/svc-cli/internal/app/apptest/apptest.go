// Package apptest runs svc in the process of a test, with buffers for streams.
package apptest

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/app"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
)

// Result holds the output and the error of one run.
type Result struct {
	Out, Err string
	Code     int
}

// Env is an environment of buffers: no terminal, no variables, a fixed clock.
func Env(stdin string) (e *command.Env, out, errOut *bytes.Buffer) {
	out, errOut = new(bytes.Buffer), new(bytes.Buffer)
	return &command.Env{
		Stdin: strings.NewReader(stdin), Stdout: out, Stderr: errOut, Version: "test",
		Getenv:      func(string) string { return "" },
		Now:         func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		OpenBrowser: func(string) error { return nil },
	}, out, errOut
}

// Run runs svc to its end.
func Run(t testing.TB, args ...string) Result {
	t.Helper()
	return RunIn(t, "", args...)
}

// RunIn is Run with something on standard input.
func RunIn(t testing.TB, stdin string, args ...string) Result {
	t.Helper()
	e, out, errOut := Env(stdin)
	code := app.Main(context.WithoutCancel(t.Context()), e, append([]string{"svc"}, args...))
	return Result{out.String(), errOut.String(), code}
}
