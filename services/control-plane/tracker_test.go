package controlplane_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// digest is a tag that the gate takes.
var digest = strings.Repeat("ab", 32)

// failMoves makes the tracker answer reads and fail alias moves.
const failMoves = "fail moves"

// fakeTracker speaks as much of the tracker's REST interface as the control
// plane calls, and fails on demand.
type fakeTracker struct {
	URL string

	mu     sync.Mutex // guards those below
	mode   string     // as of the orchestrator; refusing refuses only alias moves
	models map[string]*trackedModel
	sets   int // alias moves carried out
	seen   chan struct{}
}

type trackedModel struct {
	aliases  map[string]string
	versions map[string]trackedVersion
}

type trackedVersion struct {
	metrics  map[string]any // float64, or "NaN"
	tags     map[string]string
	runTags  map[string]string
	unsigned bool
}

func newTracker(t testing.TB) *fakeTracker {
	t.Helper()
	f := &fakeTracker{models: map[string]*trackedModel{}, seen: make(chan struct{}, 1000)}
	s := httptest.NewServer(f)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	f.URL = s.URL
	return f
}

func (f *fakeTracker) set(mode string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mode = mode
}

// add registers the next version of a model, as the trainer would.
func (f *fakeTracker) add(model string, v trackedVersion) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.models[model]
	if m == nil {
		m = &trackedModel{aliases: map[string]string{}, versions: map[string]trackedVersion{}}
		f.models[model] = m
	}
	if v.tags == nil {
		v.tags = map[string]string{"artifact_digest": digest}
	}
	version := strconv.Itoa(len(m.versions) + 1)
	m.versions[version] = v
	return version
}

func (f *fakeTracker) holder(model, alias string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.models[model]; m != nil {
		return m.aliases[alias]
	}
	return ""
}

// move sets an alias as somebody else would; an empty version removes it.
func (f *fakeTracker) move(model, alias, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if version == "" {
		delete(f.models[model].aliases, alias)
		return
	}
	f.models[model].aliases[alias] = version
}

func (f *fakeTracker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	mode := f.mode
	f.mu.Unlock()
	switch mode {
	case down:
		panic(http.ErrAbortHandler)
	case hang:
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the caller has gone
		<-r.Context().Done()
		return
	case broken:
		http.Error(w, "no", http.StatusInternalServerError)
		return
	case garbage:
		_, _ = w.Write([]byte("<html>"))
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/2.0/mlflow")
	q := r.URL.Query()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case path == "/registered-models/get":
		if m, ok := f.models[q.Get("name")]; ok {
			reply(w, 200, map[string]any{"registered_model": f.registered(q.Get("name"), m)})
			return
		}
		missing(w)
	case path == "/registered-models/search":
		list := []any{}
		for name, m := range f.models {
			list = append(list, f.registered(name, m))
		}
		reply(w, 200, map[string]any{"registered_models": list})
	case path == "/registered-models/alias":
		f.setAlias(w, r, mode)
	case path == "/model-versions/get":
		f.version(w, q.Get("name"), q.Get("version"))
	case path == "/runs/get":
		f.run(w, q.Get("run_id"))
	case strings.HasPrefix(r.URL.Path, "/api/2.0/mlflow-artifacts/artifacts/"):
		f.artifact(w, strings.TrimPrefix(r.URL.Path, "/api/2.0/mlflow-artifacts/artifacts/"))
	default:
		reply(w, 404, map[string]any{"error_code": "ENDPOINT_NOT_FOUND", "message": path})
	}
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func missing(w http.ResponseWriter) {
	reply(w, 404, map[string]any{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "not found"})
}

func (f *fakeTracker) registered(name string, m *trackedModel) map[string]any {
	aliases := []any{}
	for a, v := range m.aliases {
		aliases = append(aliases, map[string]any{"alias": a, "version": v})
	}
	return map[string]any{"name": name, "aliases": aliases}
}

func (f *fakeTracker) setAlias(w http.ResponseWriter, r *http.Request, mode string) {
	var in struct{ Name, Alias, Version string }
	if json.NewDecoder(r.Body).Decode(&in) != nil || f.models[in.Name] == nil {
		missing(w)
		return
	}
	if mode == failMoves {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	if mode == refusing {
		reply(w, 400, map[string]any{"error_code": "INVALID_PARAMETER_VALUE", "message": "no such alias today"})
		return
	}
	f.models[in.Name].aliases[in.Alias] = in.Version
	f.sets++
	f.seen <- struct{}{}
	if mode == swallow {
		f.mu.Unlock()
		<-r.Context().Done()
		f.mu.Lock()
		return
	}
	reply(w, 200, map[string]any{})
}

func (f *fakeTracker) version(w http.ResponseWriter, name, version string) {
	m := f.models[name]
	if m == nil {
		missing(w)
		return
	}
	v, ok := m.versions[version]
	if !ok {
		missing(w)
		return
	}
	id := name + "-" + version
	reply(w, 200, map[string]any{"model_version": map[string]any{
		"name": name, "version": version, "run_id": id, "status": "READY", "source": "mlflow-artifacts:/" + id + "/model", "tags": pairs(v.tags),
	}})
}

func (f *fakeTracker) find(id string) (trackedVersion, bool) {
	i := strings.LastIndex(id, "-")
	if i < 0 || f.models[id[:i]] == nil {
		return trackedVersion{}, false
	}
	v, ok := f.models[id[:i]].versions[id[i+1:]]
	return v, ok
}

func (f *fakeTracker) run(w http.ResponseWriter, id string) {
	v, ok := f.find(id)
	if !ok {
		missing(w)
		return
	}
	metrics := []any{}
	for k, value := range v.metrics {
		metrics = append(metrics, map[string]any{"key": k, "value": value, "timestamp": 1, "step": 0})
	}
	reply(w, 200, map[string]any{"run": map[string]any{
		"info": map[string]any{"run_id": id, "status": "FINISHED", "artifact_uri": "mlflow-artifacts:/" + id},
		"data": map[string]any{"metrics": metrics, "tags": pairs(v.runTags)},
	}})
}

func pairs(m map[string]string) []any {
	out := []any{}
	for k, v := range m {
		out = append(out, map[string]any{"key": k, "value": v})
	}
	return out
}

func (f *fakeTracker) artifact(w http.ResponseWriter, path string) {
	id, rest, _ := strings.Cut(path, "/")
	v, ok := f.find(id)
	if !ok || rest != "model/MLmodel" {
		missing(w)
		return
	}
	signature := "signature:\n  inputs: '[{\"name\": \"x\", \"type\": \"double\"}]'\n"
	if v.unsigned {
		signature = ""
	}
	_, _ = fmt.Fprintf(w, "flavors:\n  onnx:\n    data: model.onnx\n%s", signature)
}
