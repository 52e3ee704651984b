package controlplanetest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/clients/go/inference"
)

// ServingToken is the bearer secret that the stand-in for the inference service accepts.
const ServingToken = "serving-0123456789abcdef"

// Serving serves the inference service's drift documents, and fails on demand: Down, Hang, Broken and Garbage, or by
// Answer.
type Serving struct {
	URL string

	Mu     sync.Mutex // guards those below
	mode   string
	Answer string // if not empty, its answer to every request, with 200
	rows   map[string][]inference.DriftStatus
	// NoInput makes it a service that does not measure the drift of inputs.
	NoInput bool
	Asked   []string // paths with their query, in order
}

// NewServing starts a Serving without any drift.
func NewServing(t testing.TB) *Serving {
	t.Helper()
	f := &Serving{rows: map[string][]inference.DriftStatus{}}
	s := httptest.NewServer(f)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	f.URL = s.URL
	return f
}

// Env returns the environment that makes a control plane query it.
func (f *Serving) Env() []string {
	return []string{"SERVING_URL=" + f.URL, "SERVING_TOKEN=" + ServingToken}
}

// Set makes it fail; Well ends that.
func (f *Serving) Set(mode string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.mode = mode
}

// Drift sets the level of one kind, model and alias; z is nil where it is not a number.
func (f *Serving) Drift(kind, model, alias, status string, z *float64, reason string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	row := inference.DriftStatus{
		Model: model, Alias: alias, Version: "1", Status: inference.DriftLevel(status), Overall: inference.DriftLevel(status), ZScore: z,
		NSnapshots: 100, NBaseline: 500, Measures: map[string]inference.DriftMeasure{}, Recent: []any{},
	}
	if reason != "" {
		row.Reason = &reason
	}
	f.rows[kind] = slices.DeleteFunc(f.rows[kind], func(r inference.DriftStatus) bool { return r.Model == model && r.Alias == alias })
	f.rows[kind] = append(f.rows[kind], row)
}

// DriftBeside is Drift of predictions under Production whose z is normal and whose other measure is at the level.
func (f *Serving) DriftBeside(model, measure, level string, z float64) {
	f.Drift("prediction", model, "Production", "OK", &z, "")
	f.Mu.Lock()
	defer f.Mu.Unlock()
	row := &f.rows["prediction"][len(f.rows["prediction"])-1]
	row.Overall, row.DecidedBy = inference.DriftLevel(level), &measure
	row.Measures = map[string]inference.DriftMeasure{
		"z_score": {Status: "OK", Value: &z}, measure: {Status: inference.DriftLevel(level)},
	}
}

func (f *Serving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.Mu.Lock()
	mode, answer, noInput := f.mode, f.Answer, f.NoInput
	f.Asked = append(f.Asked, r.URL.RequestURI())
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
	kind := "prediction"
	if strings.HasSuffix(r.URL.Path, "/drift/input/status") {
		kind = "input"
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer "+ServingToken:
		replyJSON(w, http.StatusUnauthorized, map[string]any{"code": "invalid_credential"})
	case r.URL.Path != "/drift/status" && kind != "input" || kind == "input" && noInput:
		replyJSON(w, http.StatusNotFound, map[string]any{"code": "not_found"})
	case answer != "":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	default:
		f.page(w, r, kind)
	}
}

// page returns at most two rows, so that readers must follow the cursor.
func (f *Serving) page(w http.ResponseWriter, r *http.Request, kind string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	model := r.URL.Query().Get("model")
	rows := []inference.DriftStatus{}
	for _, row := range f.rows[kind] {
		if model == "" || row.Model == model {
			rows = append(rows, row)
		}
	}
	at, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	rows = rows[min(at, len(rows)):]
	if len(rows) > 2 {
		rows = rows[:2]
		w.Header().Set("X-Next-Cursor", strconv.Itoa(at+2))
	}
	replyJSON(w, http.StatusOK, rows)
}

// Clear removes all rows of a kind.
func (f *Serving) Clear(kind string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	delete(f.rows, kind)
}

// Count returns the number of requests.
func (f *Serving) Count() int {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return len(f.Asked)
}
