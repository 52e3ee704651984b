package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/mlp-platform/platform/libs/cli/fault"
)

// awaitRead runs read and gives up on it when ctx ends: a read of a terminal cannot be interrupted, so Ctrl-C
// leaves it behind, and the process ends soon after.
func awaitRead[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	c := make(chan answer, 1)
	go func() {
		v, err := read()
		c <- answer{v, err}
	}()
	select {
	case a := <-c:
		return a.v, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// readLine reads the line typed at a prompt. At the end of input it returns what there was and io.EOF.
func (e *Env) readLine(ctx context.Context) (string, error) {
	if e.lines == nil {
		e.lines = bufio.NewReader(e.In)
	}
	line, err := awaitRead(ctx, func() (string, error) { return e.lines.ReadString('\n') })
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(e.Err)
		return "", fault.New("interrupted", "interrupted; nothing changed")
	case err != nil && !errors.Is(err, io.EOF):
		return "", fmt.Errorf("read the answer: %w", err)
	}
	return line, err
}

// hidden reads a line of the terminal without echo.
func (e *Env) hidden(ctx context.Context, prompt string) (string, error) {
	f, ok := e.In.(*os.File)
	if !ok {
		return "", fault.New("no_terminal", "a secret can only be entered on a terminal")
	}
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	fmt.Fprint(e.Err, prompt)
	defer fmt.Fprintln(e.Err)
	b, err := awaitRead(ctx, func() ([]byte, error) { return term.ReadPassword(int(f.Fd())) })
	switch {
	case ctx.Err() != nil:
		// The read left behind still has echo off.
		if err := term.Restore(int(f.Fd()), before); err != nil {
			return "", fmt.Errorf("give the terminal its echo back (run: stty sane): %w", err)
		}
		return "", fault.New("interrupted", "interrupted; nothing stored")
	case err != nil:
		return "", fmt.Errorf("read the secret: %w", err)
	}
	return string(b), nil
}
