package controlplanetest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// digest is a tag that the gate accepts.
var Digest = strings.Repeat("ab", 32)

// failMoves makes the tracker answer reads and fail alias moves.
const FailMoves = "fail moves"

// HoldMoves makes the tracker signal an alias move on Seen and perform it once the channel Go is closed.
const HoldMoves = "hold moves"

// Tracker implements the part of the tracker's REST interface that the control plane calls, and fails on demand.
type Tracker struct {
	URL string

	Mu     sync.Mutex // guards those below
	mode   string     // as in the orchestrator; refusing refuses only alias moves
	Models map[string]*trackedModel
	Sets   int // alias moves carried out
	Looks  int // reads of the aliases of a model
	Seen   chan struct{}
	Go     chan struct{}
	Idle   bool // no trainer has begun a run for the requested flow runs
}

type trackedModel struct {
	Aliases  map[string]string
	Versions map[string]Version
}

type Version struct {
	Metrics  map[string]any // float64, or "NaN"
	Tags     map[string]string
	RunTags  map[string]string
	Unsigned bool
}

func NewTracker(t testing.TB) *Tracker {
	t.Helper()
	f := &Tracker{Models: map[string]*trackedModel{}, Seen: make(chan struct{}, 1000), Go: make(chan struct{})}
	s := httptest.NewServer(f)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	f.URL = s.URL
	return f
}

func (f *Tracker) Set(mode string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.mode = mode
}

// Add registers the next version of a model, as the trainer would.
func (f *Tracker) Add(model string, v Version) string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	m := f.Models[model]
	if m == nil {
		m = &trackedModel{Aliases: map[string]string{}, Versions: map[string]Version{}}
		f.Models[model] = m
	}
	if v.Tags == nil {
		v.Tags = map[string]string{"artifact_digest": Digest}
	}
	version := strconv.Itoa(len(m.Versions) + 1)
	m.Versions[version] = v
	return version
}

func (f *Tracker) Holder(model, alias string) string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if m := f.Models[model]; m != nil {
		return m.Aliases[alias]
	}
	return ""
}

// Looked returns how often the aliases of one model were read.
func (f *Tracker) Looked() int {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.Looks
}

// Move sets an alias as another client would; an empty version removes it.
func (f *Tracker) Move(model, alias, version string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if version == "" {
		delete(f.Models[model].Aliases, alias)
		return
	}
	f.Models[model].Aliases[alias] = version
}

// Change edits a version as any client of the tracker can.
func (f *Tracker) Change(model, version string, edit func(*Version)) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	v := f.Models[model].Versions[version]
	edit(&v)
	f.Models[model].Versions[version] = v
}

// Remove deletes a version and the aliases that it holds, as another client would.
func (f *Tracker) Remove(model, version string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	delete(f.Models[model].Versions, version)
	maps.DeleteFunc(f.Models[model].Aliases, func(_, holder string) bool { return holder == version })
}

func (f *Tracker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.Mu.Lock()
	mode := f.mode
	f.Mu.Unlock()
	switch mode {
	case Down:
		panic(http.ErrAbortHandler)
	case Hang:
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the caller has gone
		<-r.Context().Done()
		return
	case Broken:
		http.Error(w, "no", http.StatusInternalServerError)
		return
	case Garbage:
		_, _ = w.Write([]byte("<html>"))
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/2.0/mlflow")
	q := r.URL.Query()
	f.Mu.Lock()
	defer f.Mu.Unlock()
	switch {
	case path == "/registered-models/get":
		f.Looks++
		if m, ok := f.Models[q.Get("name")]; ok {
			replyJSON(w, 200, map[string]any{"registered_model": f.registered(q.Get("name"), m)})
			return
		}
		replyNotFound(w)
	case path == "/registered-models/search":
		list := []any{}
		for name, m := range f.Models {
			list = append(list, f.registered(name, m))
		}
		replyJSON(w, 200, map[string]any{"registered_models": list})
	case path == "/registered-models/alias":
		f.setAlias(w, r, mode)
	case path == "/model-versions/get-download-uri":
		replyJSON(w, 200, map[string]any{"artifact_uri": "mlflow-artifacts:/" + q.Get("name") + "-" + q.Get("version") + "/model"})
	case path == "/model-versions/set-tag":
		var in struct{ Name, Version, Key, Value string }
		if json.NewDecoder(r.Body).Decode(&in) != nil || f.Models[in.Name] == nil {
			replyNotFound(w)
			return
		}
		v := f.Models[in.Name].Versions[in.Version]
		if v.Tags = maps.Clone(v.Tags); v.Tags == nil {
			v.Tags = map[string]string{}
		}
		v.Tags[in.Key] = in.Value
		f.Models[in.Name].Versions[in.Version] = v
		replyJSON(w, 200, map[string]any{})
	case r.URL.Path == "/api/2.0/mlflow-artifacts/artifacts":
		files := []any{}
		if strings.HasSuffix(q.Get("path"), "/model") {
			files = append(files, map[string]any{"path": "MLmodel", "is_dir": false, "file_size": 10})
		}
		replyJSON(w, 200, map[string]any{"files": files})
	case path == "/model-versions/get":
		f.version(w, q.Get("name"), q.Get("version"))
	case path == "/experiments/get-by-name":
		replyJSON(w, 200, map[string]any{"experiment": map[string]any{"experiment_id": "1", "name": q.Get("experiment_name")}})
	case path == "/runs/search":
		f.begunRuns(w, r)
	case path == "/runs/get":
		f.run(w, q.Get("run_id"))
	case strings.HasPrefix(r.URL.Path, "/api/2.0/mlflow-artifacts/artifacts/"):
		f.artifact(w, strings.TrimPrefix(r.URL.Path, "/api/2.0/mlflow-artifacts/artifacts/"))
	default:
		replyJSON(w, 404, map[string]any{"error_code": "ENDPOINT_NOT_FOUND", "message": path})
	}
}

func replyJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func replyNotFound(w http.ResponseWriter) {
	replyJSON(w, 404, map[string]any{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "not found"})
}

func (f *Tracker) registered(name string, m *trackedModel) map[string]any {
	aliases := []any{}
	for a, v := range m.Aliases {
		aliases = append(aliases, map[string]any{"alias": a, "version": v})
	}
	return map[string]any{"name": name, "aliases": aliases}
}

func (f *Tracker) setAlias(w http.ResponseWriter, r *http.Request, mode string) {
	var in struct{ Name, Alias, Version string }
	if json.NewDecoder(r.Body).Decode(&in) != nil || f.Models[in.Name] == nil {
		replyNotFound(w)
		return
	}
	if mode == FailMoves {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	if mode == Refusing {
		replyJSON(w, 400, map[string]any{"error_code": "INVALID_PARAMETER_VALUE", "message": "no such alias today"})
		return
	}
	if mode == HoldMoves {
		f.Seen <- struct{}{}
		f.Mu.Unlock()
		select {
		case <-f.Go:
		case <-r.Context().Done():
		}
		f.Mu.Lock()
	}
	if r.Method == http.MethodDelete {
		delete(f.Models[in.Name].Aliases, in.Alias)
		replyJSON(w, 200, map[string]any{})
		return
	}
	if _, ok := f.Models[in.Name].Versions[in.Version]; !ok {
		replyNotFound(w)
		return
	}
	f.Models[in.Name].Aliases[in.Alias] = in.Version
	f.Sets++
	f.Seen <- struct{}{}
	if mode == Swallow {
		f.Mu.Unlock()
		<-r.Context().Done()
		f.Mu.Lock()
		return
	}
	replyJSON(w, 200, map[string]any{})
}

func (f *Tracker) version(w http.ResponseWriter, name, version string) {
	m := f.Models[name]
	if m == nil {
		replyNotFound(w)
		return
	}
	v, ok := m.Versions[version]
	if !ok {
		replyNotFound(w)
		return
	}
	id := name + "-" + version
	replyJSON(w, 200, map[string]any{"model_version": map[string]any{
		"name": name, "version": version, "run_id": id, "status": "READY", "source": "mlflow-artifacts:/" + id + "/model", "tags": keyValuePairs(v.Tags),
	}})
}

func (f *Tracker) find(id string) (Version, bool) {
	i := strings.LastIndex(id, "-")
	if i < 0 || f.Models[id[:i]] == nil {
		return Version{}, false
	}
	v, ok := f.Models[id[:i]].Versions[id[i+1:]]
	return v, ok
}

func (f *Tracker) run(w http.ResponseWriter, id string) {
	v, ok := f.find(id)
	if !ok {
		replyNotFound(w)
		return
	}
	metrics := []any{}
	for k, value := range v.Metrics {
		metrics = append(metrics, map[string]any{"key": k, "value": value, "timestamp": 1, "step": 0})
	}
	replyJSON(w, 200, map[string]any{"run": map[string]any{
		"info": map[string]any{"run_id": id, "status": "FINISHED", "artifact_uri": "mlflow-artifacts:/" + id},
		"data": map[string]any{"metrics": metrics, "tags": keyValuePairs(v.RunTags)},
	}})
}

// begunRuns answers as if the trainer began a run in the tracker as soon as its flow run starts.
func (f *Tracker) begunRuns(w http.ResponseWriter, r *http.Request) {
	var in struct{ Filter string }
	if json.NewDecoder(r.Body).Decode(&in) != nil || f.Idle {
		replyJSON(w, 200, map[string]any{"runs": []any{}})
		return
	}
	_, id, _ := strings.Cut(in.Filter, "'")
	replyJSON(w, 200, map[string]any{"runs": []any{map[string]any{
		"info": map[string]any{"run_id": "tracked-" + strings.TrimSuffix(id, "'"), "status": "RUNNING"}, "data": map[string]any{},
	}}})
}

// SetIdle sets whether the trainer has yet to begin its runs.
func (f *Tracker) SetIdle(idle bool) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Idle = idle
}

func keyValuePairs(m map[string]string) []any {
	out := []any{}
	for k, v := range m {
		out = append(out, map[string]any{"key": k, "value": v})
	}
	return out
}

func (f *Tracker) artifact(w http.ResponseWriter, path string) {
	id, rest, _ := strings.Cut(path, "/")
	v, ok := f.find(id)
	if !ok || rest != "model/MLmodel" {
		replyNotFound(w)
		return
	}
	signature := "signature:\n  inputs: '[{\"name\": \"x\", \"type\": \"double\"}]'\n"
	if v.Unsigned {
		signature = ""
	}
	_, _ = fmt.Fprintf(w, "flavors:\n  onnx:\n    data: model.onnx\n%s", signature)
}
