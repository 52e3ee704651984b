package pg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// Inspection is what a start would find in a directory.
type Inspection struct {
	// Data is the major version that made the cluster, 0 if there is none; DataErr is why that cannot be known.
	Data    int
	DataErr error
	// Server is the folder of the programs that a start would use and Major their version. ServerErr is why no installed
	// or downloaded server can be used; a start would then try a download.
	Server    string
	Major     int
	ServerErr error
	// OwnerErr is why the data cannot be served by this user.
	OwnerErr error
	// PasswordErr is why the superuser's password cannot be used; nil if there is no cluster yet.
	PasswordErr error
	// Unfinished is the folder of a cluster whose creation was interrupted, "" if there is none.
	Unfinished string
	// PID is the process of postmaster.pid, 0 without that file. Serves reports whether it is a server of this data, and
	// Held whether the process that started it still holds the directory.
	PID          int
	Serves, Held bool
	// URL is the address of the running server's database; "" if none runs or its socket is not in the directory.
	URL string
}

// Inspect looks at the directory of Config.Dir. It changes nothing and downloads nothing.
func Inspect(ctx context.Context, dir, cacheDir string) Inspection {
	var i Inspection
	c := &cluster{dir: dir, data: filepath.Join(dir, "data"), log: &tail{}}
	i.Data, i.DataErr = dataVersion(c.data)
	c.as, i.OwnerErr = runAs(c.data)
	if i.DataErr == nil {
		b, err := findUsable(i.Data, cacheDir, os.Geteuid() == 0)
		i.Server, i.Major, i.ServerErr = b.dir, b.major, err
	}
	if i.Data != 0 {
		i.PasswordErr = c.inspectPassword()
	}
	if part := c.data + ".part"; exists(part) {
		i.Unfinished = part
	}
	if i.PID, _ = c.pidFile(); i.PID > 1 {
		i.Serves = c.serves(i.PID)
	}
	i.Held = isHeld(ctx, filepath.Join(dir, "lock"))
	socket := filepath.Join(c.data, socketName)
	if i.Serves && i.PasswordErr == nil && len(socket) <= maxSocketPath {
		password, _ := os.ReadFile(filepath.Join(dir, "password"))
		i.URL = databaseURL(strings.TrimSpace(string(password)), "platform", "", url.Values{"host": {c.data}, "port": {strconv.Itoa(socketPort)}})
	}
	return i
}

// inspectPassword is keepPassword for an existing cluster.
func (c *cluster) inspectPassword() error {
	_, err := c.keepPassword(false)
	return err
}

// findUsable is chooseBinaries without its download.
func findUsable(major int, cacheDir string, root bool) (binaries, error) {
	found, ownErr := listBinaries(root)
	for _, b := range found {
		if major == 0 || b.major == major {
			return b, nil
		}
	}
	fetched := major
	if fetched == 0 {
		fetched = defaultRelease
	}
	if b, ok := inspectBinaries(filepath.Join(cacheDir, "server-"+string(releases[fetched]), "bin")); ok {
		return b, nil
	}
	switch {
	case ownErr != nil:
		return binaries{}, ownErr
	case len(found) > 0:
		return binaries{}, fmt.Errorf("the data was made by PostgreSQL %d, but version %d is installed", major, found[0].major)
	}
	return binaries{}, ErrNoBinaries
}

// isHeld reports whether a process holds the lock file.
func isHeld(ctx context.Context, file string) bool {
	if !exists(file) || ctx.Err() != nil {
		return false
	}
	lock := flock.New(file, flock.SetFlag(os.O_RDONLY)) // a shared lock, and no file is made
	free, err := lock.TryRLock()
	if err != nil {
		return false
	}
	if free {
		_ = lock.Close()
	}
	return !free
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
