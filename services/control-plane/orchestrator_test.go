package controlplane_test

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

// How the stand-in for the orchestrator misbehaves.
const (
	well     = ""
	down     = "down"     // closes the connection
	hang     = "hang"     // answers when the caller has given up
	broken   = "broken"   // 500
	garbage  = "garbage"  // 200 with something else
	nameless = "nameless" // 201 without an id, and no run
	refusing = "refusing" // 409
	swallow  = "swallow"  // does what it is told and never answers
)

// fakeOrchestrator speaks as much of the orchestrator's REST interface as the
// control plane calls, and fails on demand. It outlives a killed control plane.
type fakeOrchestrator struct {
	URL string

	mu         sync.Mutex // guards those below
	mode       string
	deployment *uuid.UUID // nil: not registered
	lacks      string     // a parameter the deployment does not declare
	runs       map[string]*flowRun
	byKey      map[string]string
	creates    int // calls of create_flow_run
	bodies     []map[string]any
	created    chan struct{} // a token for each call of create_flow_run that was carried out
}

type flowRun struct {
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

func newOrchestrator(t testing.TB) *fakeOrchestrator {
	t.Helper()
	id := uuid.New()
	f := &fakeOrchestrator{deployment: &id, runs: map[string]*flowRun{}, byKey: map[string]string{}, created: make(chan struct{}, 1000)}
	s := httptest.NewServer(f)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	f.URL = s.URL + "/api"
	return f
}

func (f *fakeOrchestrator) set(mode string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mode = mode
}

func (f *fakeOrchestrator) all() []flowRun {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []flowRun{}
	for _, r := range f.runs {
		out = append(out, *r)
	}
	return out
}

// state puts a run into a state, as the executor would.
func (f *fakeOrchestrator) state(id, typ, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
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

func (f *fakeOrchestrator) forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.runs, id)
}

func (f *fakeOrchestrator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
		http.Error(w, `{"detail":"no"}`, http.StatusInternalServerError)
		return
	case garbage:
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
		f.mu.Lock()
		_, ok := f.runs[id]
		f.mu.Unlock()
		if !ok {
			f.answer(w, 404, map[string]any{"detail": "no such run"})
			return
		}
		f.state(id, "CANCELLING", "")
		f.answer(w, 201, map[string]any{"status": "ACCEPT", "state": map[string]any{"type": "CANCELLING"}})
	case strings.HasPrefix(path, "/flow_runs/"):
		f.mu.Lock()
		defer f.mu.Unlock()
		if run, ok := f.runs[strings.TrimPrefix(path, "/flow_runs/")]; ok {
			f.answer(w, 200, run)
			return
		}
		f.answer(w, 404, map[string]any{"detail": "no such run"})
	default:
		f.answer(w, 404, map[string]any{"detail": "no such path " + path})
	}
}

func (f *fakeOrchestrator) answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (f *fakeOrchestrator) readDeployment(w http.ResponseWriter, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deployment == nil || path != "/deployments/name/training_flow/platform-dispatch" {
		f.answer(w, 404, map[string]any{"detail": "Deployment not found"})
		return
	}
	props := map[string]any{}
	for _, name := range []string{"model_name", "dataset_cls_name", "is_dummy", "backend_name", "commit_sha", "tenant", "request_id", "requested_by", "approval_id", "parameters"} {
		if name != f.lacks {
			props[name] = map[string]any{}
		}
	}
	f.answer(w, 200, map[string]any{
		"id": f.deployment, "name": "platform-dispatch", "flow_id": uuid.New(), "status": "READY",
		"parameter_openapi_schema": map[string]any{"type": "object", "properties": props},
	})
}

func (f *fakeOrchestrator) create(w http.ResponseWriter, r *http.Request, path, mode string) {
	var in struct {
		Parameters     map[string]any `json:"parameters"`
		IdempotencyKey string         `json:"idempotency_key"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		f.answer(w, 422, map[string]any{"detail": err.Error()})
		return
	}
	f.mu.Lock()
	f.creates++
	if mode == refusing {
		f.mu.Unlock()
		f.answer(w, 409, map[string]any{"detail": "Error creating flow run: paused"})
		return
	}
	if mode == nameless {
		f.mu.Unlock()
		f.answer(w, 201, map[string]any{})
		return
	}
	if f.deployment == nil || path != "/deployments/"+f.deployment.String()+"/create_flow_run" {
		f.mu.Unlock()
		f.answer(w, 404, map[string]any{"detail": "Deployment not found"})
		return
	}
	status := 200
	id, known := f.byKey[in.IdempotencyKey]
	if !known {
		status, id = 201, uuid.NewString()
		f.byKey[in.IdempotencyKey] = id
		f.runs[id] = &flowRun{
			ID: id, Name: "run", FlowID: uuid.NewString(), Parameters: in.Parameters, IdempotencyKey: in.IdempotencyKey,
			StateType: "SCHEDULED", StateName: "Scheduled",
		}
		f.bodies = append(f.bodies, in.Parameters)
	}
	run := *f.runs[id]
	f.mu.Unlock()
	f.created <- struct{}{}
	if mode == swallow {
		<-r.Context().Done()
		return
	}
	f.answer(w, status, run)
}

func (f *fakeOrchestrator) filter(w http.ResponseWriter, r *http.Request) {
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
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []*flowRun{}
	for _, id := range in.FlowRuns.ID.Any {
		if run, ok := f.runs[id]; ok {
			out = append(out, run)
		}
	}
	f.answer(w, 200, out)
}
