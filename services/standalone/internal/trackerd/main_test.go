package trackerd_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// bench is a server with its database and folder.
type bench struct {
	url  string
	dir  string
	pool *pgxpool.Pool
}

func setupBench(t testing.TB, opts ...trackerd.Option) bench {
	t.Helper()
	ctx := t.Context()
	url := testenv.Postgres(t)
	if err := postgres.Migrate(ctx, url, trackerd.Schema, trackerd.Migrations()); err != nil {
		t.Fatal(err)
	}
	pool, err := postgres.Open(ctx, url, trackerd.Schema, postgres.MaxConns(8))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := bench{dir: filepath.Join(t.TempDir(), "artifacts"), pool: pool}
	s, err := trackerd.New(ctx, pool, b.dir, slog.New(slog.NewTextHandler(t.Output(), nil)), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(func() { srv.Close(); http.DefaultClient.CloseIdleConnections() })
	b.url = srv.URL
	return b
}

// answer is a response that was read.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) json(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(a.body, &m); err != nil {
		t.Fatalf("%d, not a JSON object: %v\n%s", a.status, err, a.body)
	}
	return m
}

// do sends a request; body may be nil, a string that is sent as it is, or a value.
func (b bench) do(t testing.TB, method, path string, body any, header ...string) answer {
	t.Helper()
	var r io.Reader
	switch v := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(v)
	default:
		buf, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		r = bytes.NewReader(buf)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, b.url+path, r)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, got}
}

const api = "/api/2.0/mlflow/"

// want calls and fails unless the status is the wanted one.
func (b bench) want(t testing.TB, status int, method, path string, body any) map[string]any {
	t.Helper()
	a := b.do(t, method, path, body)
	if a.status != status {
		t.Fatalf("%s %s %v: %d, want %d\n%s", method, path, body, a.status, status, a.body)
	}
	return a.json(t)
}

type obj = map[string]any

// run makes an experiment and a run in it.
func (b bench) run(t testing.TB) (id, experiment string) {
	t.Helper()
	e := b.want(t, 200, "POST", api+"experiments/create", obj{"name": "e-" + strings.ReplaceAll(t.Name(), "/", "-")})
	experiment = e["experiment_id"].(string)
	r := b.want(t, 200, "POST", api+"runs/create", obj{"experiment_id": experiment, "run_name": "r", "start_time": 1700000000000})
	return r["run"].(obj)["info"].(obj)["run_id"].(string), experiment
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
