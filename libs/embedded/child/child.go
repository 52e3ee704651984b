// Package child runs a server as a child process that ends with its parent,
// also when the parent is killed and can clean up nothing.
package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Process is a running child. All methods are safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // written before done is closed
}

// Start runs cmd in a separate process group, so that Ctrl-C in a terminal
// reaches only the parent, which then stops its children in order. On Linux the
// kernel sends death to the child when the parent dies; elsewhere the child is
// left behind, and the next start has to find it.
//
// An exec.Cmd made by CommandContext is refused: only Stop ends the child.
func Start(cmd *exec.Cmd, death syscall.Signal) (*Process, error) {
	if cmd.Cancel != nil {
		return nil, fmt.Errorf("child: %s: a command with a context cannot be owned", cmd.Path)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	setDeathSignal(cmd.SysProcAttr, death)
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The death signal is bound to the thread that forks, not to the process
		// (prctl(2)); without the lock Go may end that thread at any time.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// PID is the process id of the child.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is the child's exit error; nil before its exit and after exit status 0.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Stop sends gentle and waits. If ctx ends first, it sends SIGKILL, waits for
// the exit and returns an error. Stopping twice is allowed.
func (p *Process) Stop(ctx context.Context, gentle os.Signal) error {
	_ = p.cmd.Process.Signal(gentle) // it may have ended already
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("%s did not stop in time and was killed: %w", p.cmd.Path, context.Cause(ctx))
}
