// Package pg runs a Postgres server as a child process, with its data in one
// directory, for installations that bring no database of their own.
//
// The directory holds:
//
//	lock      held while a process uses the directory
//	password  of the superuser, mode 0600
//	data/     the cluster, mode 0700, and in it the server's socket
//
// The server listens on that socket alone: a connection takes one of its sessions before it sends a password, so any
// user who can connect could block all others.
package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/mlp-platform/platform/libs/embedded/child"
)

// User is the superuser of an embedded cluster.
const User = "platform"

// startTimeout limits the wait for connections. Recovery after a crash replays
// at most max_wal_size, which takes seconds.
const startTimeout = 60 * time.Second

// Config configures the server.
type Config struct {
	Dir            string    // holds everything; made when absent
	Log            io.Writer // the server's own log, text lines; nil drops it
	CacheDir       string    // for downloaded binaries; "" means the user's cache directory
	Database       string    // made with the cluster; "" means platform
	MaxConnections int       // 0 means 80
	// Throwaway gives up durability for speed, and listens on a free port of
	// 127.0.0.1 too, which the URL then names; for data that only tests need.
	Throwaway bool
}

// Server is a running Postgres.
type Server struct {
	proc     *child.Process
	lock     *flock.Flock
	socket   *socket
	port     int // of a throwaway server; else 0
	password string
	log      *tail
	died     chan error
	stopping chan struct{}
	stop     sync.Once
	stopErr  error
}

// Start runs the server and returns when it accepts connections. It makes the cluster on first use and ends a server
// that an earlier, killed process left behind. The context limits the start only.
func Start(ctx context.Context, cfg Config) (_ *Server, err error) {
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, fmt.Errorf("postgres: directory %s: %w", cfg.Dir, err)
	}
	if cfg.Database == "" {
		cfg.Database = "platform"
	}
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = 80
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("no connection after %v", startTimeout))
	defer cancel()

	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Unlock() // the cause of the failure is more useful
		}
	}()
	c, err := openCluster(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer c.leave()
	if err := c.endOrphan(ctx); err != nil {
		return nil, err
	}
	at, err := findSocket(c.data)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = at.remove() // as above
		}
	}()
	s := &Server{lock: lock, socket: at, password: c.password, log: c.log, died: make(chan error, 1), stopping: make(chan struct{})}
	if s.proc, s.port, err = c.serve(ctx, cfg); err != nil {
		return nil, err
	}
	go s.watch()
	return s, nil
}

// lockDir makes dir and locks it.
func lockDir(dir string) (*flock.Flock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("postgres: the directory %s cannot be made (%w); choose another one or change its owner", dir, err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	switch ok, err := lock.TryLock(); {
	case err != nil && errors.Is(err, syscall.ENOSPC):
		return nil, fmt.Errorf("postgres: the disk that holds %s is full; free some space", dir)
	case err != nil:
		return nil, fmt.Errorf("postgres: the directory %s is not writable (%w); choose another one or change its owner", dir, err)
	case !ok:
		return nil, fmt.Errorf("postgres: the directory %s is in use by another process; stop that one or choose another directory", dir)
	}
	return lock, nil
}

// serve starts the postmaster.
func (c *cluster) serve(ctx context.Context, cfg Config) (*child.Process, int, error) {
	for {
		port, err := 0, error(nil)
		if cfg.Throwaway {
			if port, err = freePort(); err != nil {
				return nil, 0, err
			}
		}
		c.log.reset()
		p, err := c.launch(ctx, cfg, port)
		switch {
		case err == nil:
			return p, port, nil
		case ctx.Err() != nil:
			return nil, 0, err
		case c.log.has("Address already in use") && cfg.Throwaway:
			// Another process took the port between the choice and the start.
		case c.log.has("shared memory block"), c.log.has("lock file"):
			// Backends of a killed server end within a moment of noticing.
			if werr := waitFor(ctx, 50*time.Millisecond); werr != nil {
				return nil, 0, err
			}
		default:
			return nil, 0, err
		}
	}
}

func (c *cluster) launch(ctx context.Context, cfg Config, port int) (*child.Process, error) {
	cmd := c.command("postgres", append([]string{"-D", c.arg}, serverArgs(cfg, port)...)...)
	cmd.Stdout, cmd.Stderr = c.log, c.log
	// SIGINT is Postgres' fast shutdown: a clean one, so that the start after a
	// crash of the platform needs no recovery.
	p, err := child.Start(cmd, syscall.SIGINT)
	if err != nil {
		return nil, fmt.Errorf("postgres: %s cannot be run: %w", cmd.Path, err)
	}
	for {
		if c.ready(p.PID()) {
			return p, nil
		}
		select {
		case <-p.Done():
			return nil, c.explain("the server did not start", p.Err())
		case <-ctx.Done():
			_ = p.Stop(ctx, syscall.SIGQUIT)
			return nil, c.explain("the server did not start", context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// serverArgs keep the memory of an idle server small: it shares a machine with
// the rest of the platform, whose tables are small too.
func serverArgs(cfg Config, port int) []string {
	addresses := "127.0.0.1"
	if port == 0 {
		addresses, port = "", socketPort
	}
	s := []string{
		"listen_addresses=" + addresses, "port=" + strconv.Itoa(port), "authentication_timeout=10s",
		// The server runs in its data directory: the directory's path may be inaccessible to it, or too long for a
		// socket.
		"unix_socket_directories=.", "unix_socket_permissions=0700",
		"max_connections=" + strconv.Itoa(cfg.MaxConnections), "shared_buffers=32MB", "work_mem=4MB",
		"maintenance_work_mem=32MB", "max_wal_size=256MB", "jit=off", "huge_pages=off",
		"wal_level=minimal", "max_wal_senders=0", "max_logical_replication_workers=0", "max_worker_processes=4", "max_parallel_workers=2",
		"max_parallel_workers_per_gather=1", "autovacuum_max_workers=2", "timezone=UTC", "log_timezone=UTC",
		"log_checkpoints=off", "log_min_messages=warning", "log_line_prefix=", "logging_collector=off",
	}
	if cfg.Throwaway {
		s = append(s, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off")
	}
	args := make([]string, 0, 2*len(s))
	for _, v := range s {
		args = append(args, "-c", v)
	}
	return args
}

// URL is the address of a database, password included; "" means the one made with the cluster by default. It is for
// pgx, or libpq 16 and later: require_auth keeps the password from a process that impersonates a dead server.
func (s *Server) URL(db string) string {
	if db == "" {
		db = "platform"
	}
	if s.port != 0 {
		return databaseURL(s.password, db, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), url.Values{})
	}
	return databaseURL(s.password, db, "", url.Values{"host": {s.socket.dir}, "port": {strconv.Itoa(socketPort)}})
}

func databaseURL(password, db, host string, query url.Values) string {
	query.Set("sslmode", "disable")
	query.Set("require_auth", "scram-sha-256")
	u := url.URL{Scheme: "postgres", User: url.UserPassword(User, password), Host: host, Path: "/" + db, RawQuery: query.Encode()}
	return u.String()
}

// Socket is the path of the server's socket.
func (s *Server) Socket() string { return filepath.Join(s.socket.dir, socketName) }

// Wait yields one error when the server dies unexpectedly; after Stop it is closed without one.
func (s *Server) Wait() <-chan error { return s.died }

func (s *Server) watch() {
	<-s.proc.Done()
	select {
	case <-s.stopping:
	default:
		s.died <- fmt.Errorf("postgres: the server exited unexpectedly (%v): %s", s.proc.Err(), s.log.last())
	}
	close(s.died)
}

// Stop ends the sessions and shuts the server down cleanly. When ctx ends first
// the server is killed; the next start then recovers from the log. Safe to call
// more than once.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() {
		close(s.stopping)
		if err := s.proc.Stop(ctx, syscall.SIGINT); err != nil {
			s.stopErr = fmt.Errorf("postgres: %w", err)
		}
		s.stopErr = errors.Join(s.stopErr, s.socket.remove(), s.lock.Unlock())
	})
	return s.stopErr
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("postgres: no free port on 127.0.0.1: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// waitFor waits d or until ctx ends.
func waitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// run runs a short command to its end and returns its faults in one sentence.
func (c *cluster) run(ctx context.Context, cmd *exec.Cmd, what string) error {
	c.log.reset()
	cmd.Stderr = c.log // standard output is greeting and progress
	p, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return fmt.Errorf("postgres: %s cannot be run: %w", cmd.Path, err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		_ = p.Stop(ctx, syscall.SIGTERM)
		return c.explain(what, context.Cause(ctx))
	}
	if p.Err() != nil {
		return c.explain(what, p.Err())
	}
	return nil
}
