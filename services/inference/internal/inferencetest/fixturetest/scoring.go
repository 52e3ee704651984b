package fixturetest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// Python is an artifact that needs Python: columns and answer are those of an MLflow signature, and there is no graph.
func Python(inputs, outputs string) map[string][]byte {
	mlmodel := "flavors:\n  python_function:\n    loader_module: mlflow.sklearn\n    python_version: 3.11.2\n  sklearn:\n    pickled_model: model.pkl\n" +
		"signature:\n  inputs: '" + inputs + "'\n"
	if outputs != "" {
		mlmodel += "  outputs: '" + outputs + "'\n"
	}
	return map[string][]byte{"MLmodel": []byte(mlmodel), "model.pkl": []byte("never unpickled here")}
}

// Scoring speaks MLflow's scoring protocol as mlflow models serve does. It answers the sum of a row's numbers; a row with
// the value 13 fails its whole request.
type Scoring struct {
	URL string

	mu       sync.Mutex // guards all below
	behave   func(w http.ResponseWriter, r *http.Request) bool
	requests int
	rows     int
}

// NewScoring starts a scoring server that ends with the test.
func NewScoring(t testing.TB) *Scoring {
	s := &Scoring{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Behave makes the server answer POST /invocations otherwise: by behave, where that returns true. nil ends it.
func (s *Scoring) Behave(behave func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave = behave
}

// Requests counts the requests for predictions, and their rows.
func (s *Scoring) Requests() (requests, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.rows
}

// ServeHTTP implements http.Handler.
func (s *Scoring) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/ping":
		return
	case "/invocations":
	default:
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	behave := s.behave
	s.mu.Unlock()
	if behave != nil && behave(w, r) {
		return
	}
	var body struct {
		Split struct {
			Columns []any   `json:"columns"`
			Data    [][]any `json:"data"`
		} `json:"dataframe_split"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, `{"error_code": "BAD_REQUEST"}`, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.requests, s.rows = s.requests+1, s.rows+len(body.Split.Data)
	s.mu.Unlock()
	sums := []float64{}
	for _, row := range body.Split.Data {
		sum := 0.0
		for _, v := range row {
			f, _ := v.(float64)
			if f == 13 {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"error_code": "BAD_REQUEST", "message": "thirteen is unlucky"}`))
				return
			}
			sum += f
		}
		sums = append(sums, sum)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"predictions": sums})
}

// ScoringVerb makes a test binary a scoring server, as PYFUNC_COMMAND starts one.
const ScoringVerb = "fixture-scoring-server"

// ServeScoring serves if the arguments are the verb, a port, and the model's folder. It answers until it is killed; a
// row with the value 666 kills it.
func ServeScoring(args []string) bool {
	if len(args) != 3 || args[0] != ScoringVerb {
		return false
	}
	if _, err := os.Stat(args[2] + "/MLmodel"); err != nil {
		fmt.Println("no model:", err)
		os.Exit(1)
	}
	s := &Scoring{}
	s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		for _, name := range os.Environ() {
			if strings.Contains(name, "CREDENTIALS") || strings.Contains(name, "DATABASE_URL") {
				os.Exit(2)
			}
		}
		var raw json.RawMessage
		if json.NewDecoder(r.Body).Decode(&raw) != nil || strings.Contains(string(raw), "666") {
			fmt.Println("the beast has come")
			os.Exit(3)
		}
		r.Body = http.NoBody
		again, _ := http.NewRequest(http.MethodPost, "/invocations", strings.NewReader(string(raw)))
		again.Header = r.Header
		(&Scoring{}).ServeHTTP(w, again)
		return true
	})
	ln, err := net.Listen("tcp", "127.0.0.1:"+args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_ = http.Serve(ln, s)
	return true
}
