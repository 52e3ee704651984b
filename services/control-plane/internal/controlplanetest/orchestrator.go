package controlplanetest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The faults that the stand-in for the orchestrator simulates.
const (
	Well     = ""
	Down     = "down"     // closes the connection
	Hang     = "hang"     // answers after the caller has given up
	Broken   = "broken"   // 500
	Garbage  = "garbage"  // 200 with something else
	Nameless = "nameless" // 201 without an id, and no run
	Refusing = "refusing" // 409
	Swallow  = "swallow"  // does as requested and never answers
)

// Orchestrator implements the part of the orchestrator's REST interface that the control plane calls, and fails on
// demand. It outlives a killed control plane.
type Orchestrator struct {
	URL string

	Mu         sync.Mutex // guards those below
	mode       string
	Deployment *uuid.UUID // nil: not registered
	Lacks      string     // a parameter the deployment does not declare
	Refuses    string     // a model whose runs are refused
	runs       map[string]*FlowRun
	byKey      map[string]string
	Creates    int // calls of create_flow_run
	Bodies     []map[string]any
	Created    chan struct{} // a token for each executed call of create_flow_run
	// Began is called with a new run before its maker has the answer: a short training may have ended by then.
	Began func(run string)
}

type FlowRun struct {
	ID             string         `json:"id"`
	Name           string         `json:"name"`
	FlowID         string         `json:"flow_id"`
	Parameters     map[string]any `json:"parameters"`
	IdempotencyKey string         `json:"idempotency_key"`
	StateType      string         `json:"state_type"`
	StateName      string         `json:"state_name"`
	State          map[string]any `json:"state"`
	StartTime      *time.Time     `json:"start_time"`
	EndTime        *time.Time     `json:"end_time"`
}

func NewOrchestrator(t testing.TB) *Orchestrator {
	t.Helper()
	id := uuid.New()
	f := &Orchestrator{Deployment: &id, runs: map[string]*FlowRun{}, byKey: map[string]string{}, Created: make(chan struct{}, 1000)}
	s := httptest.NewServer(f)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	f.URL = s.URL + "/api"
	return f
}

func (f *Orchestrator) Set(mode string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.mode = mode
}

func (f *Orchestrator) All() []FlowRun {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	out := []FlowRun{}
	for _, r := range f.runs {
		out = append(out, *r)
	}
	return out
}

// State puts a run into a state, as the executor would.
func (f *Orchestrator) State(id, typ, message string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	r := f.runs[id]
	r.StateType, r.StateName = typ, strings.ToUpper(typ[:1])+strings.ToLower(typ[1:])
	r.State = map[string]any{"type": typ, "name": r.StateName, "message": message}
	now := time.Now().UTC()
	if typ == "RUNNING" {
		r.StartTime = &now
	} else if typ != "CANCELLING" {
		r.EndTime = &now
	}
}

func (f *Orchestrator) Forget(id string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	delete(f.runs, id)
}

func (f *Orchestrator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
		http.Error(w, `{"detail":"no"}`, http.StatusInternalServerError)
		return
	case Garbage:
		_, _ = w.Write([]byte("<html>hello</html>"))
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/api")
	switch {
	case path == "/health":
		f.answer(w, 200, true)
	case strings.HasPrefix(path, "/deployments/name/"):
		f.readDeployment(w, path)
	case strings.HasSuffix(path, "/create_flow_run"):
		f.create(w, r, path, mode)
	case path == "/flow_runs/filter":
		f.filter(w, r)
	case strings.HasSuffix(path, "/set_state"):
		id := strings.Split(path, "/")[2]
		f.Mu.Lock()
		_, ok := f.runs[id]
		f.Mu.Unlock()
		if !ok {
			f.answer(w, 404, map[string]any{"detail": "no such run"})
			return
		}
		f.State(id, "CANCELLING", "")
		f.answer(w, 201, map[string]any{"status": "ACCEPT", "state": map[string]any{"type": "CANCELLING"}})
	case strings.HasPrefix(path, "/flow_runs/"):
		f.Mu.Lock()
		defer f.Mu.Unlock()
		if run, ok := f.runs[strings.TrimPrefix(path, "/flow_runs/")]; ok {
			f.answer(w, 200, run)
			return
		}
		f.answer(w, 404, map[string]any{"detail": "no such run"})
	default:
		f.answer(w, 404, map[string]any{"detail": "no such path " + path})
	}
}

func (f *Orchestrator) answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // as the real one answers
	_ = e.Encode(v)
}

func (f *Orchestrator) readDeployment(w http.ResponseWriter, path string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Deployment == nil || path != "/deployments/name/training_flow/platform-dispatch" {
		f.answer(w, 404, map[string]any{"detail": "Deployment not found"})
		return
	}
	props := map[string]any{}
	for _, name := range []string{"model_name", "dataset_cls_name", "is_dummy", "backend_name", "commit_sha", "tenant", "request_id", "requested_by", "approval_id", "parameters"} {
		if name != f.Lacks {
			props[name] = map[string]any{}
		}
	}
	f.answer(w, 200, map[string]any{
		"id": f.Deployment, "name": "platform-dispatch", "flow_id": uuid.New(), "status": "READY",
		"parameter_openapi_schema": map[string]any{"type": "object", "properties": props},
	})
}

func (f *Orchestrator) create(w http.ResponseWriter, r *http.Request, path, mode string) {
	var in struct {
		Parameters     map[string]any `json:"parameters"`
		IdempotencyKey string         `json:"idempotency_key"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		f.answer(w, 422, map[string]any{"detail": err.Error()})
		return
	}
	f.Mu.Lock()
	f.Creates++
	if mode == Refusing || (f.Refuses != "" && in.Parameters["model_name"] == f.Refuses) {
		f.Mu.Unlock()
		f.answer(w, 409, map[string]any{"detail": "Error creating flow run: paused"})
		return
	}
	if mode == Nameless {
		f.Mu.Unlock()
		f.answer(w, 201, map[string]any{})
		return
	}
	if f.Deployment == nil || path != "/deployments/"+f.Deployment.String()+"/create_flow_run" {
		f.Mu.Unlock()
		f.answer(w, 404, map[string]any{"detail": "Deployment not found"})
		return
	}
	status := 200
	id, known := f.byKey[in.IdempotencyKey]
	if !known {
		status, id = 201, uuid.NewString()
		f.byKey[in.IdempotencyKey] = id
		f.runs[id] = &FlowRun{
			ID: id, Name: "run", FlowID: uuid.NewString(), Parameters: in.Parameters, IdempotencyKey: in.IdempotencyKey,
			StateType: "SCHEDULED", StateName: "Scheduled",
		}
		f.Bodies = append(f.Bodies, in.Parameters)
	}
	run, began := *f.runs[id], f.Began
	f.Mu.Unlock()
	if began != nil {
		began(id)
	}
	f.Created <- struct{}{}
	if mode == Swallow {
		<-r.Context().Done()
		return
	}
	f.answer(w, status, run)
}

func (f *Orchestrator) filter(w http.ResponseWriter, r *http.Request) {
	var in struct {
		FlowRuns struct {
			ID struct {
				Any []string `json:"any_"`
			} `json:"id"`
		} `json:"flow_runs"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		f.answer(w, 422, map[string]any{"detail": err.Error()})
		return
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	out := []*FlowRun{}
	for _, id := range in.FlowRuns.ID.Any {
		if run, ok := f.runs[id]; ok {
			out = append(out, run)
		}
	}
	f.answer(w, 200, out)
}
