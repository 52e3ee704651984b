package scheduler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// commandTimeout limits one command of a scheduler: its daemons answer in milliseconds or not at all.
const commandTimeout = 30 * time.Second

// maxOutput limits the captured output of a command, in bytes.
const maxOutput = 1 << 20

// Runner runs the commands of a scheduler where they are installed. No shell sees the arguments.
type Runner interface {
	Run(ctx context.Context, stdin string, argv ...string) (stdout string, err error)
}

// Local runs commands on this machine.
type Local struct{}

// Run returns the standard output; an error contains the command's standard error.
func (Local) Run(ctx context.Context, stdin string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut limited
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.WaitDelay = time.Second // a grandchild may hold the pipes
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		return "", fmt.Errorf("%s: %w: %s", argv[0], err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}

// limited drops output beyond maxOutput. The buffer is not embedded, since its ReadFrom would bypass Write.
type limited struct{ kept bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.kept.Len(); room > 0 {
		l.kept.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

func (l *limited) String() string { return l.kept.String() }
