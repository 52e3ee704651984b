package pg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// cluster is a data directory with the binaries that can serve it and the user
// that may.
type cluster struct {
	dir      string // Config.Dir
	data     string // dir/data
	arg      string // what -D gets, see command
	bin      binaries
	as       *syscall.Credential // nil: as this process
	handle   *os.File            // data, open while commands run; nil unless as is set
	password string
	log      *tail
}

// openCluster finds the binaries that fit and makes the cluster when there is none.
func openCluster(ctx context.Context, cfg Config) (*cluster, error) {
	c := &cluster{dir: cfg.Dir, data: filepath.Join(cfg.Dir, "data"), log: &tail{to: cfg.Log}}
	major, err := dataVersion(c.data)
	if err != nil {
		return nil, err
	}
	if c.as, err = runAs(c.data); err != nil {
		return nil, err
	}
	if c.bin, err = chooseBinaries(major, c.data, cfg.CacheDir, c.as != nil, c.log); err != nil {
		return nil, err
	}
	if c.password, err = c.keepPassword(major == 0); err != nil {
		return nil, err
	}
	if major == 0 {
		if err := c.create(ctx, cfg); err != nil {
			return nil, err
		}
	}
	return c, c.enter(c.data)
}

// enter makes data the directory that commands run in.
func (c *cluster) enter(data string) error {
	c.arg = data
	if c.as == nil || !procFD {
		return nil
	}
	c.leave()
	h, err := os.Open(data)
	if err != nil {
		return fmt.Errorf("postgres: open %s: %w", data, err)
	}
	c.handle, c.arg = h, "/proc/self/fd/3"
	return nil
}

// leave closes what enter opened; running commands have their own copy.
func (c *cluster) leave() {
	if c.handle != nil {
		_ = c.handle.Close() // opened for reading only
		c.handle = nil
	}
}

// command is one of the server's programs, run as the unprivileged user when
// this process is root, which Postgres refuses to be.
//
// That user often may not enter a parent of the data directory (/root, a
// temporary directory of mode 0700), and opening those up is not ours to do. So
// the child inherits a handle of the data directory that root opened and names
// it /proc/self/fd/3: the kernel then walks no path.
func (c *cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin.dir, name), args...)
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.as}
	cmd.Dir = "/" // initdb returns to where it started, which must be allowed
	if c.handle != nil {
		cmd.ExtraFiles = []*os.File{c.handle} // the child's descriptor 3
	}
	return cmd
}

// passwordPipe returns the reading end of a pipe that holds the password. It belongs to the user that the server runs as, who
// opens it by its descriptor.
func (c *cluster) passwordPipe() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if c.as != nil {
		err = r.Chown(int(c.as.Uid), int(c.as.Gid))
	}
	_, writeErr := w.WriteString(c.password + "\n") // less than a pipe holds
	if err := errors.Join(err, writeErr, w.Close()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// create makes the cluster under a temporary path and renames it when it is complete, so that an interrupted first
// start leaves nothing half made.
func (c *cluster) create(ctx context.Context, cfg Config) error {
	part := c.data + ".part"
	if err := removeUnfinished(ctx, part); err != nil {
		return fmt.Errorf("postgres: remove an unfinished cluster: %w", err)
	}
	if err := os.Mkdir(part, 0o700); err != nil {
		return fmt.Errorf("postgres: make %s: %w", part, err)
	}
	if err := c.own(part); err != nil {
		return err
	}
	if err := c.enter(part); err != nil {
		return err
	}
	// initdb reads the password from a file only, and opens it by name. A pipe leaves nothing behind, whenever this is killed.
	pw, err := c.passwordPipe()
	if err != nil {
		return fmt.Errorf("postgres: hand over the password: %w", err)
	}
	defer pw.Close()
	// The programs leave their files to syncTree, which syncs them in a fraction of the time.
	args := []string{"-D", c.arg, "-U", User, "-A", "scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-instructions", "--no-sync"}
	initdb := c.command("initdb", args...)
	initdb.ExtraFiles = append(initdb.ExtraFiles, pw)
	initdb.Args = append(initdb.Args, fmt.Sprintf("--pwfile=/dev/fd/%d", 2+len(initdb.ExtraFiles)))
	if err := c.run(ctx, initdb, "the database cluster could not be made"); err != nil {
		return err
	}
	if cfg.Database != "postgres" {
		// Single-user mode needs no port, no driver and no second start.
		single := c.command("postgres", "--single", "-F", "-D", c.arg, "-c", "log_min_messages=warning", "postgres")
		single.Stdin = strings.NewReader(`create database "` + strings.ReplaceAll(cfg.Database, `"`, `""`) + "\"\n")
		if err := c.run(ctx, single, "the database could not be made"); err != nil {
			return err
		}
	}
	if !cfg.Throwaway {
		if err := syncTree(part); err != nil {
			return fmt.Errorf("postgres: write the new cluster to the disk: %w", err)
		}
	}
	_ = os.Remove(c.data) // an empty directory, which would stop the rename
	if err := os.Rename(part, c.data); err != nil {
		return fmt.Errorf("postgres: put the new cluster in place: %w", err)
	}
	if cfg.Throwaway {
		return nil
	}
	if err := syncFile(c.dir); err != nil {
		return fmt.Errorf("postgres: write the new cluster to the disk: %w", err)
	}
	return nil
}

// syncers is the number of files synced side by side: a file system writes waiting syncs to its journal together, so a
// thousand files take a tenth of the time that they take one after another.
const syncers = 32

// syncTree writes a folder and everything in it to the disk.
func syncTree(dir string) error {
	var g errgroup.Group
	g.SetLimit(syncers)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.IsDir() || d.Type().IsRegular()) {
			g.Go(func() error { return syncFile(path) })
		}
		return err
	})
	return errors.Join(err, g.Wait())
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// removeTries limits the wait for processes that a killed parent left behind.
const removeTries = 5 * time.Second

// removeUnfinished removes the rest of an interrupted create. initdb dies with its parent, but not the server that
// initdb runs: that one ends when it finds its input closed, and until then may put files into directories being
// removed.
func removeUnfinished(ctx context.Context, part string) error {
	deadline := time.Now().Add(removeTries)
	for {
		err := os.RemoveAll(part)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if werr := waitFor(ctx, 20*time.Millisecond); werr != nil {
			return err
		}
	}
}

func (c *cluster) own(path string) error {
	if c.as == nil {
		return nil
	}
	if err := os.Chown(path, int(c.as.Uid), int(c.as.Gid)); err != nil {
		return fmt.Errorf("postgres: hand %s to user %d: %w", path, c.as.Uid, err)
	}
	return nil
}

// keepPassword reads the password, or makes one for a new cluster.
func (c *cluster) keepPassword(fresh bool) (string, error) {
	file := filepath.Join(c.dir, "password")
	b, err := os.ReadFile(file)
	if err == nil {
		if err := c.checkPasswordFile(file); err != nil {
			return "", err
		}
	}
	pw := strings.TrimSpace(string(b))
	switch {
	case err == nil && pw != "":
		return pw, nil
	case !fresh:
		return "", fmt.Errorf("postgres: %s is missing or empty, and without it no one can log in to the database in %s; restore it from a backup", file, c.data)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("postgres: %w", err)
	}
	pw = rand.Text()
	if err := os.WriteFile(file, []byte(pw+"\n"), 0o600); err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			return "", fmt.Errorf("postgres: the disk that holds %s is full; free some space", c.dir)
		}
		return "", fmt.Errorf("postgres: keep the password: %w", err)
	}
	return pw, nil
}

// checkPasswordFile refuses a password that others may know: one they can read, or have put there.
func (c *cluster) checkPasswordFile(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("postgres: the password cannot be read: %w", err)
	}
	above, err := os.Stat(c.dir)
	if err != nil {
		return fmt.Errorf("postgres: the directory %s cannot be read: %w", c.dir, err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("postgres: %s may be read by others (mode %04o): chmod 600 it, and change the password in the database if someone may have read it", file, mode)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	dir, dirOK := above.Sys().(*syscall.Stat_t)
	if ok && dirOK && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() && owner.Uid != dir.Uid {
		return fmt.Errorf("postgres: %s belongs to user %d, who may have put it there: put yours back from a backup, or choose another directory", file, owner.Uid)
	}
	return nil
}

// dataVersion is the major version that made the cluster, 0 when there is none.
func dataVersion(data string) (int, error) {
	b, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		if entries, err := os.ReadDir(data); err == nil && len(entries) > 0 {
			return 0, fmt.Errorf("postgres: %s has files but no cluster in it; empty it or choose another directory", data)
		}
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("postgres: the data directory cannot be read (%w); start as its owner or choose another directory", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || major < 1 {
		return 0, fmt.Errorf("postgres: %s/PG_VERSION holds %q, not a version; restore the directory from a backup", data, b)
	}
	return major, nil
}

// pidFile is the head of postmaster.pid: process id, directory, start time,
// port, socket directory, address, shared memory key, status.
func (c *cluster) pidFile() (pid int, status string) {
	b, err := os.ReadFile(filepath.Join(c.data, "postmaster.pid"))
	if err != nil {
		return 0, ""
	}
	lines := strings.Split(string(b), "\n")
	pid, _ = strconv.Atoi(strings.TrimSpace(lines[0]))
	if len(lines) > 7 {
		status = strings.TrimSpace(lines[7])
	}
	return pid, status
}

// ready reports whether the server with this process id accepts connections, by the status line that pg_ctl waits for
// too.
func (c *cluster) ready(pid int) bool {
	p, status := c.pidFile()
	return p == pid && status == "ready"
}

// endOrphan ends a server that a killed parent left behind. The directory's lock
// is held, so no living parent owns it.
func (c *cluster) endOrphan(ctx context.Context) error {
	if err := c.endServer(ctx); err != nil {
		return err
	}
	// It names a process too, as postmaster.pid does.
	if err := ignoreMissing(os.Remove(filepath.Join(c.data, socketName+".lock"))); err != nil {
		return fmt.Errorf("postgres: remove the lock of a stale socket: %w", err)
	}
	return nil
}

func (c *cluster) endServer(ctx context.Context) error {
	pid, _ := c.pidFile()
	if pid <= 1 || pid == os.Getpid() || !c.serves(pid) {
		if pid != 0 {
			// A process id that now belongs to something else would make Postgres refuse to start.
			if err := os.Remove(filepath.Join(c.data, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("postgres: remove a stale postmaster.pid: %w", err)
			}
		}
		return nil
	}
	// With SIGINT it may still be shutting down already; SIGQUIT ends at once and
	// leaves recovery to the next start.
	deadline := time.Now().Add(10 * time.Second)
	sig := syscall.SIGINT
	for c.serves(pid) {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("postgres: a server of an earlier run (process %d) still uses %s and cannot be stopped (%w); stop it by hand", pid, c.data, err)
		}
		if err := waitFor(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("postgres: a server of an earlier run (process %d) still uses %s; stop it by hand", pid, c.data)
		}
		if time.Now().After(deadline) {
			sig = syscall.SIGQUIT
		}
	}
	return nil
}
