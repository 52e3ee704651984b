package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/orchestrator"
	"github.com/mlp-platform/platform/libs/testenv"
)

// pool answers as an orchestrator whose pool has these runs, soonest first. It takes every state and keeps them.
type pool struct {
	runs []orchestrator.FlowRun
	mu   sync.Mutex
	set  map[string]orchestrator.State
}

func (p *pool) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/get_scheduled_flow_runs"):
		var in struct {
			After *time.Time `json:"scheduled_after"`
			Limit int        `json:"limit"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		page := []orchestrator.ScheduledRun{}
		for _, run := range p.runs {
			if (in.After == nil || run.NextStart.After(*in.After)) && len(page) < in.Limit {
				page = append(page, orchestrator.ScheduledRun{FlowRun: run})
			}
		}
		_ = json.NewEncoder(rw).Encode(page)
	case strings.HasSuffix(path, "/set_state"):
		var in struct{ State orchestrator.State }
		_ = json.NewDecoder(r.Body).Decode(&in)
		p.set[strings.Split(path, "/")[3]] = in.State
		rw.WriteHeader(http.StatusCreated)
		_, _ = rw.Write([]byte(`{"status":"ACCEPT"}`))
	case strings.HasSuffix(path, "/flow_runs/filter"):
		_ = json.NewEncoder(rw).Encode(p.runs)
	default:
		_, _ = rw.Write([]byte("[]"))
	}
}

func newWorkerOf(t *testing.T, p *pool) *Worker {
	t.Helper()
	p.set = map[string]orchestrator.State{}
	srv := httptest.NewServer(p)
	t.Cleanup(srv.Close)
	w, err := New(Config{
		Client: orchestrator.New(srv.URL+"/api", srv.Client()), Name: "gpu", Limit: 1, StateDir: filepath.Join(t.TempDir(), "state"), ModelRepoDir: "/nowhere",
		Command: []string{"/bin/false"}, Poll: time.Second, Heartbeat: time.Second, LostAfter: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if w.journal, err = openJournal(w.cfg.StateDir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.journal.close)
	w.name = "gpu-00000001"
	return w
}

// However many runs ahead cannot be started, the one behind them is found.
func TestBlockedRunsDoNotStarveOthers(t *testing.T) {
	t.Parallel()
	ours, other := uuid.New(), uuid.New()
	p := &pool{}
	now := time.Now().Add(-time.Hour)
	for i := range 301 {
		at, of := now.Add(time.Duration(i/60)*time.Second), other // many at the same moment, as schedules make them
		if i == 300 {
			of = ours
		}
		p.runs = append(p.runs, orchestrator.FlowRun{ID: uuid.New(), DeploymentID: &of, NextStart: &at})
	}
	w := newWorkerOf(t, p)
	w.deployments[ours] = deployment{}
	var running sync.WaitGroup
	if err := w.take(t.Context(), &running); err != nil {
		t.Fatal(err)
	}
	running.Wait()
	if want := p.runs[300].ID.String(); len(p.set) != 1 || p.set[want].Type == "" {
		t.Errorf("claimed %v; want the run behind 300 others, %s", p.set, want)
	}
}

// A run that this worker claimed, but that its journal lost, ends; one that the journal has does not, nor does a run of
// a worker that was not seen before LostAfter has gone by.
func TestRunsWithoutARecordEnd(t *testing.T) {
	t.Parallel()
	of := uuid.New()
	run := func(message string) orchestrator.FlowRun {
		return orchestrator.FlowRun{ID: uuid.New(), DeploymentID: &of, StateType: orchestrator.Running, State: &orchestrator.State{Type: orchestrator.Running, Message: message}}
	}
	p := &pool{runs: []orchestrator.FlowRun{run("Worker gpu-00000001: training"), run("Worker gpu-00000001: training"), run("Worker absent: training")}}
	w := newWorkerOf(t, p)
	if err := w.journal.write(entry{ID: p.runs[1].ID}); err != nil {
		t.Fatal(err)
	}
	if err := w.crashLost(t.Context()); err != nil || len(p.set) != 0 {
		t.Fatalf("at first sight: ended %v, %v; want none", p.set, err)
	}
	for key, s := range w.lost.seen { // a minute passes
		s.since = s.since.Add(-2 * w.cfg.LostAfter)
		w.lost.seen[key] = s
	}
	if err := w.crashLost(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(p.set) != 2 || p.set[p.runs[0].ID.String()].Type != orchestrator.Crashed || p.set[p.runs[2].ID.String()].Type != orchestrator.Crashed {
		t.Errorf("ended %v; want the first and the last run CRASHED", p.set)
	}
}

// Whether a worker lives is told by its signs changing, not by comparing clocks.
func TestAbsence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAbsence()
		longAgo := time.Now().Add(-24 * time.Hour) // the clock of the orchestrator is behind
		for i := range 10 {
			if got := a.unchanged("w", longAgo.Add(time.Duration(i)*time.Minute)); got != 0 {
				t.Errorf("a sign that changes: unchanged for %v; want 0", got)
			}
			testenv.Advance(time.Minute)
		}
		if got := a.unchanged("w", longAgo.Add(9*time.Minute)); got != time.Minute {
			t.Errorf("unchanged for %v; want a minute", got)
		}
		if got := a.unchanged("never heard of", time.Time{}); got != 0 {
			t.Errorf("without any sign: absent for %v at first sight; want 0", got)
		}
	})
}

func TestStateFolderMustBeOnesOwn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	j, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	id, err := j.instance()
	if err != nil || len(id) != 8 {
		t.Fatalf("instance %q, %v; want 8 characters", id, err)
	}
	if again, err := j.instance(); again != id || err != nil {
		t.Errorf("instance %q, %v; want %q again", again, err, id)
	}
	j.close()
	link := dir + "-link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	open := dir + "-open"
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o770); err != nil {
		t.Fatal(err)
	}
	refused := []string{link, open}
	if os.Geteuid() == 0 {
		foreign := dir + "-foreign"
		if err := os.Mkdir(foreign, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		refused = append(refused, foreign)
	}
	for _, d := range refused {
		if j, err := openJournal(d); err == nil || !strings.Contains(err.Error(), "WORKER_STATE_DIR") {
			t.Errorf("%s: %v; want a refusal that names WORKER_STATE_DIR", filepath.Base(d), err)
			if err == nil {
				j.close()
			}
		}
	}
}

// A slow registration does not keep the heartbeat from being sent, and one is sent before the first run is claimed.
func TestHeartbeatsDuringASlowRegistration(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var calls []string
	beats := make(chan struct{}, 100)
	hang := make(chan struct{})
	defer close(hang)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		calls = append(calls, r.URL.Path)
		began := slices.Contains(calls, "/api/work_pools/platform/workers/heartbeat")
		mu.Unlock()
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/heartbeat"):
			rw.WriteHeader(http.StatusNoContent)
			beats <- struct{}{}
		case strings.HasSuffix(path, "/filter"), strings.HasSuffix(path, "/get_scheduled_flow_runs"):
			_, _ = rw.Write([]byte("[]"))
		case began: // the second registration
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		default:
			_, _ = rw.Write([]byte(`{"id":"` + uuid.NewString() + `"}`))
		}
	}))
	defer srv.Close()
	w, err := New(Config{
		Client: orchestrator.New(srv.URL+"/api", srv.Client()), Name: "gpu", Limit: 1, StateDir: filepath.Join(t.TempDir(), "state"),
		ModelRepoDir: "../../../../deploy/modelrepo", Command: []string{"/bin/false"}, Poll: time.Second, Heartbeat: time.Second, LostAfter: time.Minute,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for n := range 3 {
		select {
		case <-beats:
		case <-time.After(time.Minute):
			t.Fatalf("%d heartbeats; want three while the registration hangs", n)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if beat, claim := slices.Index(calls, "/api/work_pools/platform/workers/heartbeat"), slices.Index(calls, "/api/work_pools/platform/get_scheduled_flow_runs"); claim >= 0 && claim < beat {
		t.Errorf("calls %q; want a heartbeat before the first look for runs", calls)
	}
}
