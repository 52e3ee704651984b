// Package source fetches data outside the model repository: files of a public archive, objects of an S3 store, and the
// pages of a dataplane.
package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Limits of the downloads for one data set.
const (
	// maxBytes of all files together. The readers limit their unpacked size.
	maxBytes = 4 << 30
	// fetchTimeout limits all requests of one attempt at a data set together.
	fetchTimeout = 30 * time.Minute
	// headerTimeout limits the wait for the first byte of an answer.
	headerTimeout = 30 * time.Second
)

// errFetchTimeout is not ErrUnavailable: another attempt would take as long again.
var errFetchTimeout = fmt.Errorf("fetching took longer than %v", fetchTimeout)

// limitFetch limits the time of the requests for one data set.
func limitFetch(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, fetchTimeout, errFetchTimeout)
}

// Config holds the addresses of the operator's sources. A backend without an address is not configured.
type Config struct {
	// AllowPrivate lets public archives be at addresses that are not public, and speak plain http.
	AllowPrivate bool
	// S3Endpoint is the address of the object store, such as https://s3.example.org; S3Region may be empty. Without
	// keys, access is anonymous.
	S3Endpoint, S3Region, S3AccessKey, S3SecretKey string
	// DataplaneURL is the address below which data sets name their paths, DataplaneToken the bearer for it.
	DataplaneURL, DataplaneToken string
}

// Sources fetches data. It is safe for concurrent use.
type Sources struct {
	cfg     Config
	archive *http.Client
}

// New returns a client of the configured sources.
func New(cfg Config) *Sources {
	return &Sources{cfg: cfg, archive: newArchiveClient(cfg.AllowPrivate)}
}

// ErrUnavailable means that a source does not answer now; trying again may help.
var ErrUnavailable = errors.New("not available")

// File is one fetched file.
type File struct {
	// Path is the file, relative to its folder; Name is its name at the source.
	Path, Name string
}

// save writes body to a file of dir. An error of reading is body's own; one of writing, such as a full disk, is not
// ErrUnavailable. It returns how many bytes there were, at most most.
func save(dir, name string, body io.Reader, most int64) (int64, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(f, io.LimitReader(body, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("the files are larger than %d MiB", maxBytes>>20)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, errors.Join(err, os.Remove(f.Name()))
	}
	return n, nil
}

// answer reads a source's response; wrap marks its errors as transient or not.
type answer struct {
	body io.Reader
	wrap func(error) error
}

// Read implements io.Reader.
func (a answer) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if err != nil && err != io.EOF {
		err = a.wrap(err)
	}
	return n, err
}

// checkStatus returns an error for an answer that is not 200.
func checkStatus(resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout:
		return fmt.Errorf("%w: it answers %s", ErrUnavailable, resp.Status)
	}
	return fmt.Errorf("it answers %s", resp.Status)
}

// wrapCallError marks transient errors with ErrUnavailable, so that the caller retries them.
func wrapCallError(ctx context.Context, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the address, whose query may be a secret
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err) // a retry would start the same time limit again
	}
	if errors.Is(err, errRefused) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
