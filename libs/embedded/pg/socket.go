package pg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// socketPort is a part of the socket's name.
	socketPort = 5432
	socketName = ".s.PGSQL.5432"
	// maxSocketPath is the longest socket path that every system accepts; Linux takes four bytes more.
	maxSocketPath = 103
)

// socket is the directory and port at which clients find the server.
type socket struct {
	dir  string // as clients name it
	link string // the private directory with a link in it; empty if the data directory's own path is short enough
}

// findSocket names the socket in the data directory. Where that path is too long for a socket, clients go by a link in a
// private directory, which is there as long as the server is.
func findSocket(data string) (*socket, error) {
	if len(filepath.Join(data, socketName)) <= maxSocketPath {
		return &socket{dir: data}, nil
	}
	for _, temp := range []string{os.TempDir(), "/tmp"} {
		private, err := os.MkdirTemp(temp, "platform-") // of mode 0700
		if err != nil {
			continue
		}
		s := &socket{dir: filepath.Join(private, "pg"), link: private}
		if len(filepath.Join(s.dir, socketName)) <= maxSocketPath {
			if err = os.Symlink(data, s.dir); err == nil {
				return s, nil
			}
		}
		_ = s.remove() // it is empty
	}
	return nil, fmt.Errorf("postgres: the path of %s is too long for a socket, and there is no short directory for temporary files to link to it from; choose a data directory with a shorter path", data)
}

// remove removes the link.
func (s *socket) remove() error {
	if s.link == "" {
		return nil
	}
	return errors.Join(ignoreMissing(os.Remove(s.dir)), ignoreMissing(os.Remove(s.link)))
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
