// Package pyfunc serves models that need Python through scoring servers: processes that speak MLflow's scoring protocol
// (POST /invocations with dataframe_split, GET /ping). No Python object is unpickled in this process.
//
// A server is one that the operator runs and names (PYFUNC_ENDPOINTS_JSON), or one that this service starts for each
// version from its checked files (PYFUNC_COMMAND). Either is a model.Graph, so that micro-batches, limits, tensors,
// drift and shadows work as for every other model. A server's answers are not trusted: their size, form and number of
// values are checked.
package pyfunc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// Servers finds the scoring server of a version; it is safe for concurrent use.
type Servers struct {
	cfg     Config
	started chan struct{} // holds a token per server that this process runs
	ports   ports
}

// maxStarted limits the servers that this process runs at a time: each is a Python process.
const maxStarted = 16

// New returns Servers, which has nothing to close: each model closes its own.
func New(cfg Config) (*Servers, error) {
	if cfg.RunLimit <= 0 || cfg.Sessions < 1 || cfg.Log == nil || len(cfg.Command) > 0 && cfg.Dir == "" {
		return nil, errors.New("pyfunc: run limit, sessions, log and folder must be set")
	}
	if len(cfg.Command) > 0 {
		if err := sweep(cfg.Dir); err != nil {
			cfg.Log.Warn("folders of earlier scoring servers not removed", slog.Any("err", err))
		}
	}
	return &Servers{cfg: cfg, started: make(chan struct{}, maxStarted)}, nil
}

// Source reads an artifact's files, each checked against its digest.
type Source interface {
	// ReadFile returns a file of at most limit bytes, or an error that wraps fs.ErrNotExist.
	ReadFile(name string, limit int64) ([]byte, error)
	// LinkTo makes all files appear in the folder dir, where they outlive the artifact.
	LinkTo(dir string) error
}

// Version is the model version to serve.
type Version struct {
	Name, Version string
	Files         Source
	Rows          int // of one run, at most
}

// Open returns the version as a model that a scoring server answers, or nil if it is for this process to serve.
func (s *Servers) Open(ctx context.Context, v Version) (*model.Model, error) {
	endpoint := s.endpoint(v)
	if endpoint == nil && len(s.cfg.Command) == 0 {
		return nil, nil
	}
	files, err := descriptions(v.Files)
	if err != nil {
		return nil, err
	}
	if endpoint == nil {
		if graph, err := schema.HasGraph(files); graph || err != nil {
			return nil, err
		}
	}
	columns, answer, err := schema.ReadPython(files)
	if err != nil {
		return nil, err
	}
	g := newGraph(columns, s.cfg.RunLimit, s.cfg.Sessions)
	if endpoint != nil {
		g.server = fixed{endpoint}
	} else {
		started, err := s.start(v)
		if err != nil {
			return nil, err
		}
		g.server = started
	}
	m, err := s.try(ctx, g, columns, answer, v.Rows)
	var gone *model.ServerError
	if endpoint == nil && errors.As(err, &gone) {
		// An external server may be tried again at once. Here, each attempt would start a process.
		err = errors.New(reasonPrefix + err.Error())
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return m, nil
}

// endpoint is the operator's own server for the version, else for the model.
func (s *Servers) endpoint(v Version) *url.URL {
	name := strings.ToUpper(v.Name)
	if u := s.cfg.Endpoints[name+"/"+v.Version]; u != nil {
		return u
	}
	return s.cfg.Endpoints[name]
}

// startTime is how long a server may take to answer its first ping. Importing a model's libraries takes most of it.
const startTime = 2 * time.Minute

// try waits until the server answers, determines the kind of its answers, and runs a row.
func (s *Servers) try(ctx context.Context, g *graph, columns *schema.Schema, answer schema.Answer, rows int) (*model.Model, error) {
	limit := s.cfg.RunLimit
	if _, fixed := g.server.(fixed); !fixed {
		limit = startTime
	}
	if err := g.awaitPing(ctx, limit); err != nil {
		return nil, err
	}
	if answer == schema.AnswerUnstated {
		answer = g.probe(columns)
	}
	g.setAnswer(answer)
	columns.Output.Kind = schema.Value
	if answer != schema.AnswerNumber {
		columns.Output.Kind = schema.Label
	}
	m, err := model.FromGraph(columns, g, rows)
	var refused *refusedRows
	if errors.As(err, &refused) { // this becomes the version's fault, which is public
		s.cfg.Log.WarnContext(ctx, "scoring server refused a row of zeros", slog.Int("status", refused.status), slog.String("said", refused.said))
		return nil, fmt.Errorf("the scoring server answers %d for a row of zeros; the log has what it said", refused.status)
	}
	return m, err
}

// descriptions returns the files that describe the model's columns.
func descriptions(src Source) (model.Files, error) {
	files := model.Files{}
	for _, name := range []string{"MLmodel", "platform.json"} {
		data, err := src.ReadFile(name, schema.MaxDescription)
		switch {
		case err == nil:
			files[name] = data
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return files, nil
}

// server is where a scoring server is.
type server interface {
	// base is its URL, or why it has none now.
	base() (*url.URL, error)
	// confirm is why an answer from that URL is not the server's; nil if it is.
	confirm(from *url.URL) error
	close() error
}

// fixed is an external server.
type fixed struct{ url *url.URL }

func (f fixed) base() (*url.URL, error) { return f.url, nil }
func (f fixed) confirm(*url.URL) error  { return nil }
func (f fixed) close() error            { return nil }

// answers are the names and types that package model finds a graph's answer by.
var answers = map[schema.Answer]runtime.Info{
	schema.AnswerNumber: {Name: "prediction", Type: runtime.Double, Dims: []int64{-1}},
	schema.AnswerClass:  {Name: "label", Type: runtime.Int64, Dims: []int64{-1}},
	schema.AnswerText:   {Name: "label", Type: runtime.String, Dims: []int64{-1}},
}

func unavailable(format string, a ...any) error {
	return &model.ServerError{Reason: fmt.Sprintf(format, a...)}
}
