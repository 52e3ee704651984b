package tracker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
)

const (
	// maxModelFiles and maxModelDepth bound the folder of a model; real ones have
	// some ten files in at most three levels.
	maxModelFiles = 10_000
	maxModelDepth = 16
)

// DownloadModel fetches the files of a version into dir, which must be absent or
// empty, and returns the lower-case hex SHA-256 of each by its slash-separated
// path. After an error dir is empty again. [ErrTooLarge] if all files together
// exceed [MaxDownload]; [ErrNotFound] if there are none.
func (c *Client) DownloadModel(ctx context.Context, v ModelVersion, dir string) (map[string]string, error) {
	uri, err := c.DownloadURI(ctx, v.Name, v.Version)
	if err != nil {
		return nil, err
	}
	at, err := c.locate(ctx, uri)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("tracker: folder for the model: %w", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return nil, errors.Join(err, fmt.Errorf("tracker: folder %s for the model is not empty", dir))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("tracker: folder for the model: %w", err)
	}
	defer root.Close()
	d := download{c: c, root: root, left: c.maxDownload, files: map[string]string{}}
	if err := d.folder(ctx, at, ".", 0); err != nil {
		return nil, errors.Join(err, emptyDir(root))
	}
	if len(d.files) == 0 {
		return nil, fmt.Errorf("tracker: version %s of %s has no files at %s: %w", v.Version, v.Name, uri, ErrNotFound)
	}
	return d.files, nil
}

func emptyDir(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		err = errors.Join(err, root.RemoveAll(e.Name()))
	}
	return err
}

type download struct {
	c     *Client
	root  *os.Root
	left  int64 // bytes
	seen  int   // files and folders
	files map[string]string
}

// folder fetches the storage folder at into the local folder to.
func (d *download) folder(ctx context.Context, at, to string, depth int) error {
	if depth > maxModelDepth {
		return fmt.Errorf("tracker: model folder %s is more than %d levels deep", at, maxModelDepth)
	}
	entries, err := d.c.list(ctx, at)
	if err != nil {
		return err
	}
	if d.seen += len(entries); d.seen > maxModelFiles {
		return fmt.Errorf("tracker: the model has more than %d files", maxModelFiles)
	}
	for _, e := range entries {
		p := path.Join(to, e.Path)
		if e.Dir {
			if err := d.root.Mkdir(p, 0o755); err != nil {
				return fmt.Errorf("tracker: folder for the model: %w", err)
			}
			if err := d.folder(ctx, at+"/"+e.Path, p, depth+1); err != nil {
				return err
			}
			continue
		}
		if err := d.file(ctx, at+"/"+e.Path, p); err != nil {
			return err
		}
	}
	return nil
}

func (d *download) file(ctx context.Context, at, p string) (err error) {
	f, err := d.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("tracker: file of the model: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	n, err := d.c.fetch(ctx, at, io.MultiWriter(f, sum), d.left)
	d.left -= n
	d.files[p] = hex.EncodeToString(sum.Sum(nil))
	return err
}

// Digest is the one digest of a model's files: the lower-case hex SHA-256 over
// the lines "path NUL sha256 LF", sorted by path, of a table as
// [Client.DownloadModel] returns it.
func Digest(files map[string]string) string {
	sum := sha256.New()
	for _, p := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(sum, "%s\x00%s\n", p, files[p])
	}
	return hex.EncodeToString(sum.Sum(nil))
}
