//go:build e2e

package containers

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/embedded/pg"
)

// image is a file system assembled from files of this machine, since a registry may not be reachable.
type image struct {
	tag     string
	changes []string // instructions of a Dockerfile
	fill    func(*archive) error
}

// importTo imports the image into the engine.
func (i image) importTo(ctx context.Context, e *engine) error {
	reader, writer := io.Pipe()
	go func() {
		a := &archive{tar: tar.NewWriter(writer), seen: map[string]bool{}}
		for link, target := range map[string]string{"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"} {
			a.add(&tar.Header{Typeflag: tar.TypeSymlink, Name: link, Linkname: target, Mode: 0o777}, nil)
		}
		a.add(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, nil)
		err := i.fill(a)
		writer.CloseWithError(errors.Join(err, a.err, a.tar.Close()))
	}()
	args := []string{"import"}
	for _, change := range i.changes {
		args = append(args, "--change", change)
	}
	_, err := e.docker(ctx, reader, append(args, "-", i.tag)...)
	return errors.Join(err, reader.Close())
}

// archive collects files; its first error stays.
type archive struct {
	tar  *tar.Writer
	seen map[string]bool
	err  error
}

func (a *archive) add(header *tar.Header, content []byte) {
	if a.err != nil || a.seen[header.Name] {
		return
	}
	a.seen[header.Name] = true
	header.Size = int64(len(content))
	if a.err = a.tar.WriteHeader(header); a.err == nil {
		_, a.err = a.tar.Write(content)
	}
}

// addFile adds a file of this machine, following links. Directories that are links in the image are resolved.
func (a *archive) addFile(from, to string) {
	info, err := os.Stat(from)
	var content []byte
	if err == nil {
		content, err = os.ReadFile(from)
	}
	if err != nil {
		a.err = errors.Join(a.err, err)
		return
	}
	name := strings.TrimPrefix(to, "/")
	if first, _, _ := strings.Cut(name, "/"); first == "lib" || first == "lib64" || first == "bin" {
		name = "usr/" + name
	}
	a.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(info.Mode().Perm())}, content)
}

var libraryPath = regexp.MustCompile(`/\S+`)

// addProgram adds a program and the shared libraries that it loads.
func (a *archive) addProgram(from, to string) {
	a.addFile(from, to)
	out, err := exec.Command("ldd", from).Output()
	if err != nil {
		a.err = errors.Join(a.err, err)
	}
	for _, library := range libraryPath.FindAllString(string(out), -1) {
		a.addFile(library, library)
	}
}

// addTree adds the files below a directory, without broken links.
func (a *archive) addTree(root string, skip string) {
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == skip {
			return filepath.SkipDir
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			a.addFile(path, path)
		}
		return nil
	})
	a.err = errors.Join(a.err, err)
}

const serverUser = 999

// postgresEntry works like the official image at its first start: it creates the cluster with the given password,
// starts it once privately, and then runs the command.
const postgresEntry = `#!/bin/sh
set -eu
initdb --no-sync -U postgres --pwfile=/dev/stdin -A scram-sha-256 --locale=C.UTF-8 -E UTF8 <<END
$POSTGRES_PASSWORD
END
echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
pg_ctl -w -o "-c listen_addresses=''" start
pg_ctl -w -m fast stop
echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
exec "$@"
`

func postgresImage(tag string) (image, error) {
	bin, major, err := pg.FindBinaries()
	if err != nil {
		return image{}, err
	}
	if bin, err = filepath.EvalSymlinks(bin); err != nil {
		return image{}, err
	}
	shared := filepath.Join("/usr/share/postgresql", strconv.Itoa(major)) // Debian's place
	return image{
		tag: tag,
		changes: []string{"ENV PATH=" + bin + ":/usr/bin", "ENV PGDATA=/var/lib/postgresql/data", "USER 999:999",
			`ENTRYPOINT ["/usr/bin/entrypoint"]`, `CMD ["postgres"]`},
		fill: func(a *archive) error {
			for _, program := range []string{"postgres", "initdb", "pg_ctl"} {
				a.addProgram(filepath.Join(bin, program), filepath.Join(bin, program))
			}
			a.addProgram("/bin/dash", "/usr/bin/sh")
			libraries, err := filepath.Glob(filepath.Join(bin, "../lib/*.so"))
			for _, library := range libraries {
				a.addFile(library, library)
			}
			a.addTree(shared, "man")
			a.addTree("/usr/lib/locale/C.utf8", "")
			a.addTree("/usr/share/zoneinfo", "right")
			a.add(&tar.Header{Name: "usr/bin/entrypoint", Mode: 0o755}, []byte(postgresEntry))
			a.add(&tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("postgres:x:999:999::/var/lib/postgresql:/bin/sh\n"))
			for _, dir := range []string{"var/lib/postgresql/", "var/run/postgresql/"} {
				a.add(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, Uid: serverUser, Gid: serverUser}, nil)
			}
			return err
		},
	}, nil
}

func redisImage(tag string) (image, error) {
	program, err := exec.LookPath("redis-server")
	return image{
		tag: tag, changes: []string{`ENTRYPOINT ["/usr/bin/redis-server", "--protected-mode", "no"]`},
		fill: func(a *archive) error {
			a.addProgram(program, "/usr/bin/redis-server")
			return nil
		},
	}, err
}

func natsImage(tag, program string) image {
	return image{
		tag: tag, changes: []string{`ENTRYPOINT ["/usr/bin/nats-server"]`},
		fill: func(a *archive) error {
			a.addProgram(program, "/usr/bin/nats-server")
			return nil
		},
	}
}
