package pyfunc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// A server that ends is started again after restartFirst, doubled up to restartMost.
	restartFirst, restartMost = time.Second, time.Minute
	// steadyAfter is how long a server must have run for the next pause to be the first again.
	steadyAfter = time.Minute
	// stopWait is how long a server has between SIGTERM and SIGKILL.
	stopWait = 5 * time.Second
)

// sidecar is a scoring server that this process runs for one version, and starts again when it ends.
type sidecar struct {
	argv   []string
	dir    string // has filesDir and homeDir
	ports  *ports
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}
	free   func()

	mu    sync.Mutex // guards all below
	url   *url.URL   // nil while it does not run
	pid   int        // of the process, the leader of its group
	port  int
	known bool  // it is the process that listens on its port
	fault error // why it does not
	ended bool  // it has run, or could not be started, and waits to be started again
}

// In a sidecar's folder: the model's files, which the server reads again at each start, and where it works.
const (
	filesDir = "model"
	homeDir  = "home"
)

// start runs the command for a version.
func (s *Servers) start(v Version) (*sidecar, error) {
	select {
	case s.started <- struct{}{}:
	default:
		return nil, fmt.Errorf(reasonPrefix+"%d scoring servers run here, as many as may", maxStarted)
	}
	dir, err := s.prepare(v)
	if err != nil {
		<-s.started
		return nil, fmt.Errorf("scoring server: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &sidecar{
		argv: s.cfg.Command, dir: dir, ports: &s.ports, cancel: cancel, done: make(chan struct{}), free: func() { <-s.started },
		log: s.cfg.Log.With(slog.String("model", v.Name), slog.String("version", v.Version)), fault: errors.New("the scoring server is starting"),
	}
	go c.run(ctx)
	return c, nil
}

// prepare makes the folder of a sidecar. The model cache may be trimmed while the server runs, so its files are linked.
func (s *Servers) prepare(v Version) (dir string, err error) {
	if err := os.MkdirAll(s.cfg.Dir, 0o700); err != nil {
		return "", err
	}
	parent, err := filepath.Abs(s.cfg.Dir)
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(parent, folderPrefix); err != nil {
		return "", err
	}
	files := filepath.Join(dir, filesDir)
	if err = os.Mkdir(files, 0o700); err == nil {
		err = os.Mkdir(filepath.Join(dir, homeDir), 0o700)
	}
	if err == nil {
		err = v.Files.LinkTo(files)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// run keeps the server running until ctx ends.
func (c *sidecar) run(ctx context.Context) {
	defer close(c.done)
	defer lockFolder(c.dir)()
	// The kernel kills the server when the thread that started it ends, and so with this process, however that dies. It
	// kills only this process's own child: the server's children may outlive a service that was killed.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pause := restartFirst
	for {
		began := time.Now()
		err := c.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steadyAfter {
			pause = restartFirst
		}
		c.log.WarnContext(ctx, "scoring server ended; it is started again", slog.Any("err", err), slog.Duration("after", pause))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		pause = min(2*pause, restartMost)
	}
}

// once runs the server until it or ctx ends.
func (c *sidecar) once(ctx context.Context) (err error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.url, c.fault, c.ended, c.known = nil, err, true, false
	}()
	port, err := c.ports.take()
	if err != nil {
		return err
	}
	defer c.ports.free(port)
	argv := make([]string, len(c.argv))
	for i, word := range c.argv {
		argv[i] = strings.NewReplacer(modelMark, filepath.Join(c.dir, filesDir), portMark, strconv.Itoa(port)).Replace(word)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = filepath.Join(c.dir, homeDir)
	cmd.Env = environment(cmd.Dir)
	said := &lastOutput{}
	cmd.Stdout, cmd.Stderr = said, said
	// A separate process group: mlflow starts further processes.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopWait
	if err := cmd.Start(); err != nil {
		c.log.WarnContext(ctx, "scoring server not started", slog.Any("err", err))
		return errors.New("the scoring server cannot be started; the log has the cause")
	}
	c.mu.Lock()
	c.url = &url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	c.pid, c.port, c.ended = cmd.Process.Pid, port, false
	c.mu.Unlock()
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its remaining children; usually none
	if ctx.Err() == nil {                               // its last output may hold values of rows, and faults are public
		c.log.WarnContext(ctx, "scoring server ended", slog.String("said", strings.TrimPrefix(quoteAnswer(said.tail()), ": ")))
	}
	return fmt.Errorf("the scoring server ended (%w)", cmp.Or(err, errors.New("exit status 0")))
}

// environment returns the variables that Python needs and none of this process's secrets.
func environment(dir string) []string {
	env := []string{"HOME=" + dir, "TMPDIR=" + dir, "PYTHONDONTWRITEBYTECODE=1", "MLFLOW_DISABLE_TELEMETRY=true"}
	for _, name := range []string{"PATH", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "OMP_NUM_THREADS"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// base implements server.
func (c *sidecar) base() (*url.URL, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.url == nil {
		return nil, c.fault
	}
	return c.url, c.checkListener()
}

// confirm implements server.
func (c *sidecar) confirm(from *url.URL) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.url != from {
		return errors.New("the scoring server ended")
	}
	return c.checkListener()
}

// checkListener is called with mu held while the server runs. Another process may have taken the port before the server
// could, and may answer as if it were the server.
func (c *sidecar) checkListener() error {
	if c.known {
		return nil
	}
	switch whoListens(c.port, c.pid) {
	case strangerListens:
		return errors.New("another process listens on the port of the scoring server")
	case ownListens:
		c.known = true
	case nobodyListens: // yet, or not where it can be seen
	}
	return nil
}

// gaveUp returns why a server that was just started has ended; nil while it may still come up.
func (c *sidecar) gaveUp() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return c.fault
	}
	return nil
}

// close implements server.
func (c *sidecar) close() error {
	c.cancel()
	<-c.done
	defer c.free()
	return os.RemoveAll(c.dir)
}

// lastOutput keeps the end of a server's output, for the error when it dies.
type lastOutput struct {
	mu  sync.Mutex // guards buf
	buf []byte
}

const maxOutput = 4 << 10

func (o *lastOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf = append(o.buf, p[max(0, len(p)-maxOutput):]...)
	o.buf = o.buf[max(0, len(o.buf)-maxOutput):]
	return len(p), nil
}

// tail is the last line.
func (o *lastOutput) tail() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := bytes.TrimSpace(o.buf)
	return text[bytes.LastIndexByte(text, '\n')+1:]
}
