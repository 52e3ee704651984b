package tracker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

// StallTimeout ends a transfer in which nothing has moved for so long.
const StallTimeout = 30 * time.Second

var errStalled = fmt.Errorf("nothing was transferred for %s", StallTimeout)

// File is an entry of an artifact folder.
type File struct {
	Path string // below the folder that was listed: one element
	Dir  bool
	Size int64 // bytes, as reported by the server
}

// UploadArtifact stores the content of r as the artifact p of a run, such as
// "model/MLmodel". The server shows the whole file or none.
func (c *Client) UploadArtifact(ctx context.Context, runID, p string, r io.Reader) error {
	if err := checkPath(p); err != nil {
		return err
	}
	at, err := c.locate(ctx, "runs:/"+runID+"/"+p)
	if err != nil {
		return err
	}
	ctx, g := guardStall(ctx)
	defer g.stop()
	op := http.MethodPut + " " + artifactsPath
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, c.base+artifactsPath+"/"+escapePath(at), io.NopCloser(&moving{r, g}))
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	if sized, ok := r.(interface{ Len() int }); ok {
		req.ContentLength = int64(sized.Len()) // else the body goes in chunks
		if req.ContentLength == 0 {
			req.Body = http.NoBody
		}
	}
	c.authorize(req)
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := c.transfer.Do(req)
	if err != nil {
		return transportError(op, g.cause(ctx, err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return decodeError(op, resp)
	}
	return nil
}

// ListArtifacts lists one folder: runs:/<run id>[/<path>], models:/m-<id>,
// models:/<name>@<alias>, models:/<name>/<version> or mlflow-artifacts:/<path>.
// A folder that does not exist is empty.
func (c *Client) ListArtifacts(ctx context.Context, uri string) ([]File, error) {
	at, err := c.locate(ctx, uri)
	if err != nil {
		return nil, err
	}
	return c.list(ctx, at)
}

func (c *Client) list(ctx context.Context, at string) ([]File, error) {
	b, err := c.retried(ctx, http.MethodGet, artifactsPath+"?"+url.Values{"path": {at}}.Encode(), nil)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			return nil, nil
		}
		return nil, err
	}
	var out struct {
		Files []struct {
			Path string `json:"path"`
			Dir  bool   `json:"is_dir"`
			Size whole  `json:"file_size"`
		} `json:"files"`
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, c.decode(artifactsPath, b, &out)
	}
	files := make([]File, len(out.Files))
	for i, f := range out.Files {
		// The server's text becomes a file name here: one plain element, nothing else.
		name := strings.TrimPrefix(f.Path, at+"/")
		if checkPath(name) != nil || path.Base(name) != name {
			return nil, fmt.Errorf("tracker: the server lists %q in %q, which is no plain file name", f.Path, at)
		}
		files[i] = File{name, f.Dir, int64(f.Size)}
	}
	return files, nil
}

// DownloadArtifact copies one file to w; addresses are those of [Client.ListArtifacts].
// [ErrTooLarge] if it exceeds [MaxDownload].
func (c *Client) DownloadArtifact(ctx context.Context, uri string, w io.Writer) error {
	at, err := c.locate(ctx, uri)
	if err != nil {
		return err
	}
	_, err = c.fetch(ctx, at, w, c.maxDownload)
	return err
}

// fetch copies the file at a storage path to w, at most limit bytes. A failed
// attempt is repeated as long as nothing has reached w.
func (c *Client) fetch(ctx context.Context, at string, w io.Writer, limit int64) (n int64, err error) {
	for attempt := 1; ; attempt++ {
		n, err = c.fetchOnce(ctx, at, w, limit)
		if err == nil || n > 0 || attempt == Attempts || !errors.Is(err, ErrUnavailable) || !pauseAbout(ctx, c.backoff<<(attempt-1)) {
			return n, err
		}
	}
}

func (c *Client) fetchOnce(ctx context.Context, at string, w io.Writer, limit int64) (int64, error) {
	ctx, g := guardStall(ctx)
	defer g.stop()
	p := artifactsPath + "/" + escapePath(at)
	op := http.MethodGet + " " + p
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+p, nil)
	if err != nil {
		return 0, fmt.Errorf("tracker: %w", err)
	}
	c.authorize(req)
	resp, err := c.transfer.Do(req)
	if err != nil {
		return 0, transportError(op, g.cause(ctx, err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, decodeError(op, resp)
	}
	if resp.ContentLength > limit {
		return 0, fmt.Errorf("tracker: %s has %d bytes: %w", at, resp.ContentLength, ErrTooLarge)
	}
	body := &sourced{r: &moving{resp.Body, g}}
	n, err := io.Copy(w, io.LimitReader(body, limit))
	switch {
	case body.err != nil:
		return n, transportError(op, g.cause(ctx, body.err))
	case err != nil:
		return n, fmt.Errorf("tracker: store %s: %w", at, err)
	}
	if more, _ := io.ReadFull(body, make([]byte, 1)); more > 0 {
		return n, fmt.Errorf("tracker: %s has more than %d bytes: %w", at, limit, ErrTooLarge)
	}
	if body.err != nil {
		return n, transportError(op, g.cause(ctx, body.err))
	}
	return n, nil
}

// sourced records the reader's own failure, to distinguish it from the writer's.
type sourced struct {
	r   io.Reader
	err error
}

func (s *sourced) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// stallGuard ends a context when it has not been touched for StallTimeout.
type stallGuard struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func guardStall(ctx context.Context) (context.Context, *stallGuard) {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &stallGuard{cancel: cancel}
	g.timer = time.AfterFunc(StallTimeout, func() { cancel(errStalled) })
	return ctx, g
}

func (g *stallGuard) stop() {
	g.timer.Stop()
	g.cancel(nil)
}

// cause names the stall where it is why err happened.
func (g *stallGuard) cause(ctx context.Context, err error) error {
	if context.Cause(ctx) == errStalled {
		return errStalled
	}
	return err
}

type moving struct {
	r io.Reader
	g *stallGuard
}

func (m *moving) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	if n > 0 {
		m.g.timer.Reset(StallTimeout)
	}
	return n, err
}
