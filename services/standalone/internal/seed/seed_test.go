package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/problem"
)

// services plays the control plane and inference: a run's fate is that of its key.
type services struct {
	mu       sync.Mutex // guards all below
	fate     map[string]string
	keys     []string
	promoted bool
	aliases  []string // asked of /models
	dispatch func()   // called on a dispatch without the lock, if set

	inputs  int               // how often the baseline of the inputs was set
	written map[string]string // bodies of the records, by method and path
	refuse  string            // method and path of a record that is refused
	known   map[string]string // answers of the lists of records; [] where none is given
}

func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.dispatch != nil && r.Method == "POST" && r.URL.Path == "/retrain" {
		s.dispatch()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	say := func(format string, a ...any) { fmt.Fprintf(w, format, a...) }
	const id = "00000000-0000-0000-0000-000000000001"
	switch p := r.Method + " " + r.URL.Path; {
	case p == "POST /retrain":
		key := r.Header.Get("Idempotency-Key")
		s.keys = append(s.keys, key)
		say(`{"flow_run_id":%q,"deployment":"d","parameters":{},"status_url":"u"}`, key)
	case strings.HasPrefix(p, "GET /retrain/"):
		key := strings.TrimPrefix(p, "GET /retrain/")
		fate := s.fate[key]
		if fate == "" {
			fate = "CRASHED"
		}
		say(`{"flow_run_id":%q,"is_terminal":true,"state_type":%q,"model_version":"7","stale":false}`, key, fate)
	case p == "GET /promotions":
		state := "pending"
		if s.promoted {
			state = "promoted"
		}
		say(`{"items":[{"id":%q,"approval_id":%q,"version":"7","state":%q}]}`, id, id, state)
	case p == "POST /promotions/"+id+"/approve":
		s.promoted = true
		say(`{}`)
	case p == "GET /models":
		s.aliases = append(s.aliases, r.URL.Query().Get("alias"))
		// The first answer has the version under another alias only.
		alias := "Staging"
		if len(s.aliases) > 1 {
			alias = "Production"
		}
		say(`[{"model_name":"JPCP","model_version":"7","alias":%q,"run_id":"t7","digest":%q}]`, alias, servedDigest)
	case p == "POST /predict/JPCP":
		say(`{}`)
	case p == "POST /drift/JPCP/baseline":
		say(`{"n":2}`)
	case p == "POST /drift/input/JPCP/baseline":
		s.inputs++
		say(`{"n":2}`)
	default:
		s.serveRecords(w, r)
	}
}

func setupServices(t *testing.T) (*services, Options) {
	s := &services{fate: map[string]string{}, written: map[string]string{}, known: map[string]string{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	return s, Options{
		Models:       []Model{{Name: "JPCP", Display: "JPCP", Dataset: "D", Alias: "Production", Readme: "models/t/JPCP/README.md"}},
		ControlPlane: srv.URL, Serving: srv.URL, HTTP: srv.Client(), StateFile: filepath.Join(dir, "seeded.json"), SamplesDir: dir,
		Heldout: func(context.Context, string, string, int) ([]Row, error) {
			return []Row{{ID: "1", Features: map[string]any{"a": 1}}, {ID: "2", Features: map[string]any{"a": 2}}}, nil
		},
		Begin: func(string) {}, Stage: func(string, string, float64) {}, End: func(string, string, bool) {},
	}
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	s, o := setupServices(t)
	s.fate["seed:JPCP:1"] = "COMPLETED"
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !s.promoted || !Complete(o.StateFile, o.Models) {
		t.Fatal("not promoted, or not remembered")
	}
	if s.inputs != 1 {
		t.Errorf("the baseline of the inputs was set %d times; want once", s.inputs)
	}
	if len(s.aliases) != 3 || s.aliases[0] != "Production" { // the last one for the records
		t.Fatalf(`aliases asked of inference: %q; want len(s.aliases) == 3 && s.aliases[0] == "Production"`, s.aliases)
	}
	if err := Run(t.Context(), o); err != nil || len(s.keys) != 1 {
		t.Fatalf("a second start dispatched again: %v, %q; want len(s.keys) == 1", err, s.keys)
	}
}

// The control plane never forgets keys: each start must continue with new ones, after checking the outcome of the last.
func TestGoesOnFromTheLastAttempt(t *testing.T) {
	t.Parallel()
	s, o := setupServices(t)
	for start, want := range []string{"1 2 3", "3 4 5 6"} {
		s.keys = nil
		if err := Run(t.Context(), o); err == nil {
			t.Fatal("dead runs seeded the sample")
		}
		if got := stripPrefixes(s.keys); got != want {
			t.Fatalf("start %d used the keys %s, want %s", start+1, got, want)
		}
	}
	s.keys, s.fate["seed:JPCP:8"] = nil, "COMPLETED"
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := stripPrefixes(s.keys); got != "6 7 8" {
		t.Fatalf("keys %s, want 6 7 8", got)
	}
}

func stripPrefixes(keys []string) string {
	keys = slices.Clone(keys)
	for i := range keys {
		keys[i] = strings.TrimPrefix(keys[i], "seed:JPCP:")
	}
	return strings.Join(keys, " ")
}

// The number is on the disk before the dispatch: a process killed right after it finds the same run.
func TestRemembersBeforeTheDispatch(t *testing.T) {
	t.Parallel()
	s, o := setupServices(t)
	ctx, cancel := context.WithCancel(t.Context())
	var data []byte
	s.dispatch = func() { data, _ = os.ReadFile(o.StateFile); cancel() }
	if err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatal(err, "want errors.Is(err, context.Canceled)")
	}
	var st state
	if err := json.Unmarshal(data, &st); err != nil || st.Attempts["JPCP"] != 1 {
		t.Fatalf(`at the dispatch the file held %q (%v); want st.Attempts["JPCP"] == 1`, data, err)
	}
}

func TestTemporary(t *testing.T) {
	t.Parallel()
	_, unreadable := wire.Decode[[]string](&http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("<html>")),
		Request: httptest.NewRequest("GET", "/models", nil)}, nil)
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"lost connection", io.ErrUnexpectedEOF, true},
		{"unreadable answer", unreadable, false},
		{"asked to end", context.Canceled, false},
		{"busy", problem.KindOf(503).New(""), true},
		{"not found", problem.KindOf(404).New(""), false},
	} {
		if got := temporaryError(tt.err); got != tt.want {
			t.Errorf("%s (%v): %v; want got == %v", tt.name, tt.err, got, tt.want)
		}
	}
}
