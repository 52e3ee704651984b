package worker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/mlp-platform/platform/services/trainer/internal/scheduler"
	"github.com/mlp-platform/platform/services/trainer/internal/training"
)

// killAfter is how long a child may take to end after SIGTERM: it has to cancel its job, to report that to the control
// plane and to close the tracker's run.
const killAfter = scheduler.CancelTimeout + 2*training.ClosingTimeout + 20*time.Second

// ended describes how a child ended. Signalled means that something outside stopped it.
type ended struct {
	err       error
	signalled bool
	stdout    []byte
}

// runChild runs the command until it ends; when ctx ends it gets SIGTERM, and SIGKILL after killAfter. say gets each
// line of its standard error. The kernel kills it when this process dies, so that no training continues unsupervised.
func runChild(ctx context.Context, argv, environ []string, say func(line string)) ended {
	// The kernel's parent is the thread that started the child, so it must live as long as the child does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = environ
	// A separate process group: a Ctrl-C in a terminal reaches only the worker, which then decides.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = killAfter
	out := &bounded{limit: 1 << 20}
	cmd.Stdout = out
	stderr, feed := io.Pipe()
	cmd.Stderr = feed
	read := make(chan struct{})
	last := ""
	go func() {
		defer close(read)
		r := bufio.NewReaderSize(stderr, maxLine)
		for {
			line, more, err := r.ReadLine()
			if len(line) > 0 {
				last = string(line)
				say(last)
			}
			for more && err == nil { // the rest of a line that is too long
				_, more, err = r.ReadLine()
			}
			if err != nil {
				_, _ = io.Copy(io.Discard, stderr)
				return
			}
		}
	}()
	err := cmd.Run()
	_ = feed.Close()
	<-read
	if err == nil {
		return ended{stdout: out.kept.Bytes()}
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return ended{err: fmt.Errorf("start the trainer: %w", err)}
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ended{err: fmt.Errorf("the trainer's process was ended by %s", ws.Signal()), signalled: true}
	}
	return ended{err: fmt.Errorf("the trainer ended with code %d: %s", exit.ExitCode(), strings.TrimPrefix(last, "trainer: "))}
}

// bounded keeps the first bytes up to its limit: a child's answer is small, and a broken one must not fill the memory.
// The buffer is no embedded one, whose ReadFrom would pass Write by.
type bounded struct {
	kept  bytes.Buffer
	limit int
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.limit - b.kept.Len(); room > 0 {
		b.kept.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
