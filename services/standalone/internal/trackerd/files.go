package trackerd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/artifact"
)

const downloadTimeout = time.Hour

// serveFiles answers for the artifact at p, or lists a folder if p is empty.
func (s *Server) serveFiles(w http.ResponseWriter, r *http.Request, p string) {
	var err error
	switch {
	case p == "" && r.Method == http.MethodGet:
		var files []fileInfo
		if files, err = s.list(strings.TrimSuffix(r.URL.Query().Get("path"), "/"), ""); err == nil {
			writeJSON(w, http.StatusOK, struct {
				Files []fileInfo `json:"files,omitempty"`
			}{files})
		}
	case p == "":
		err = &refusal{http.StatusNotFound, "ENDPOINT_NOT_FOUND", fmt.Sprintf("There is no %s %s here.", r.Method, r.URL.Path)}
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		err = s.download(w, r, p)
	case r.Method == http.MethodPut:
		if err = s.upload(w, r, p); err == nil {
			writeJSON(w, http.StatusOK, struct{}{})
		}
	case r.Method == http.MethodDelete:
		if err = s.files.Delete(p); err == nil {
			writeJSON(w, http.StatusOK, struct{}{})
		}
	default:
		err = &refusal{http.StatusMethodNotAllowed, "ENDPOINT_NOT_FOUND", fmt.Sprintf("Artifacts know GET, PUT and DELETE, not %s.", r.Method)}
	}
	if err != nil {
		s.writeError(w, r, s.fileError(r.Context(), p, err))
	}
}

// fileError converts file system errors to refusals.
func (s *Server) fileError(ctx context.Context, p string, err error) error {
	switch {
	case errors.Is(err, artifact.ErrPath):
		return invalidParameter("Invalid path")
	case errors.Is(err, fs.ErrNotExist):
		return notFound("No such artifact: '%s'", clipValue(p))
	case errors.Is(err, artifact.ErrFolder):
		return invalidParameter("Artifact path refers to a directory, not a file: '%s'", clipValue(p))
	case errors.Is(err, artifact.ErrFile):
		return invalidParameter("A part of the artifact path is a file, not a directory: '%s'", clipValue(p))
	case errors.Is(err, artifact.ErrTooMany):
		return invalidParameter("%s", err)
	case errors.Is(err, artifact.ErrTooLarge):
		return &refusal{http.StatusRequestEntityTooLarge, "INVALID_PARAMETER_VALUE", fmt.Sprintf("An artifact may have at most %d bytes.", s.maxArtifact)}
	case errors.Is(err, artifact.ErrFull):
		s.log.ErrorContext(ctx, "artifact not stored", slog.Any("err", err))
		return &refusal{http.StatusServiceUnavailable, "TEMPORARILY_UNAVAILABLE", "The disk that holds the artifacts is full; free space, then try again. Nothing was stored."}
	}
	return err
}

func (s *Server) download(w http.ResponseWriter, r *http.Request, p string) error {
	f, info, err := s.files.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadTimeout)) // not offered by every writer
	// Never rendered as a page of this origin, whatever the file holds.
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", attachmentOf(path.Base(p)))
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}

// attachmentOf is the Content-Disposition of a file. Clients that do not know the extended notation read filename, in
// which other characters than ASCII are replaced (RFC 6266, 4.3 and appendix D).
func attachmentOf(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"\%`, r) {
			return '_'
		}
		return r
	}, name)
	value := mime.FormatMediaType("attachment", map[string]string{"filename": plain})
	if plain != name {
		value += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	}
	return value
}

func (s *Server) upload(w http.ResponseWriter, r *http.Request, p string) error {
	if r.ContentLength > s.maxArtifact {
		return artifact.ErrTooLarge
	}
	body := &arriving{Reader: r.Body}
	err := s.files.Write(p, body)
	if err != nil && body.err != nil {
		return invalidParameter("The upload ended early: %v", body.err)
	}
	return err
}

// arriving remembers that it was the upload that failed.
type arriving struct {
	io.Reader
	err error
}

func (a *arriving) Read(b []byte) (int, error) {
	n, err := a.Reader.Read(b)
	if err != nil && err != io.EOF {
		a.err = err
	}
	return n, err
}

type fileInfo struct {
	Path string `json:"path"`
	Dir  bool   `json:"is_dir"`
	Size *int64 `json:"file_size,omitempty"`
}

// list lists a folder; names are preceded by prefix.
func (s *Server) list(at, prefix string) ([]fileInfo, error) {
	entries, err := s.files.List(at)
	if err != nil {
		return nil, err
	}
	out := make([]fileInfo, len(entries))
	for i, e := range entries {
		out[i] = fileInfo{Path: path.Join(prefix, e.Name), Dir: e.Dir}
		if !e.Dir {
			out[i].Size = &e.Size
		}
	}
	return out, nil
}

type listing struct {
	Root  string     `json:"root_uri"`
	Files []fileInfo `json:"files,omitempty"`
}

// listBelow lists the folder sub of the artifacts at root.
func (s *Server) listBelow(ctx context.Context, root, sub string) (any, error) {
	u, err := url.Parse(root)
	if err != nil || u.Scheme != "mlflow-artifacts" {
		return nil, invalidParameter("The artifacts at %s are not kept by this server.", clipValue(root))
	}
	sub = strings.TrimSuffix(sub, "/")
	at := strings.Trim(u.Path, "/")
	if sub != "" {
		// Joined as text: a path that climbs is refused, not resolved.
		at += "/" + sub
	}
	files, err := s.list(at, sub)
	if err != nil {
		return nil, s.fileError(ctx, at, err)
	}
	return listing{root, files}, nil
}

func (s *Server) listRunArtifacts(ctx context.Context, in struct {
	runRef
	Path string `json:"path"`
}) (any, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	r, err := s.q.Run(ctx, id)
	if err != nil {
		return nil, noRun(err, id)
	}
	return s.listBelow(ctx, r.ArtifactUri, in.Path)
}

func (s *Server) listModelArtifacts(ctx context.Context, in struct {
	loggedModelRef
	Path string `json:"artifact_directory_path"`
}) (any, error) {
	m, err := s.q.LoggedModel(ctx, in.ID)
	if err != nil {
		return nil, noLoggedModel(err, in.ID)
	}
	return s.listBelow(ctx, m.ArtifactUri, in.Path)
}
