package pyfunc

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
)

// Faults are public, so they contain no address of the network and no output of Python.
func TestFaultsTellNoAddress(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(cut.Close)
	for address, want := range map[string]string{
		gone.URL: "the connection was refused",
		cut.URL:  "the connection was reset",
		strings.Replace(cut.URL, "http", "https", 1): "the connection",
		"http://169.254.169.254":                     "a link-local address",
		"http://inner.name.invalid:5001":             "its name is not found",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		s := &schema.Schema{Columns: []schema.Column{{Name: "a", Kind: schema.Number}}}
		g := newGraph(s, 10*time.Second, 1)
		g.server = fixed{u}
		_, err = g.invoke([]byte("{}"), 1)
		var fault *model.ServerError
		if !errors.As(err, &fault) || !strings.Contains(fault.Reason, want) && want != "the connection" || strings.Contains(g.Fault(), u.Hostname()) || strings.Contains(g.Fault(), "dial") {
			t.Errorf("%s: got %q (%v), want %q and no address", address, g.Fault(), err, want)
		}
	}
}

func TestFaultsTellNothingThatTheServerWrote(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ping" {
			http.Error(w, "row 4711 is no good", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(refusing.Close)
	u, err := url.Parse(refusing.URL)
	if err != nil {
		t.Fatal(err)
	}
	files := modelFiles{"MLmodel": []byte("flavors: {python_function: {}}\nsignature:\n  inputs: '[{\"type\":\"double\",\"name\":\"a\"}]'\n  outputs: '[{\"type\":\"double\"}]'\n")}
	for name, cfg := range map[string]Config{
		"refused row": {Endpoints: map[string]*url.URL{"M": u}},
		"death":       {Command: []string{"/bin/sh", "-c", "echo row 4711 from 10.1.2.3 >&2; exit 3 # {model} {port}"}},
		"no program":  {Command: []string{"/row/4711/{model}", "{port}"}},
	} {
		var log strings.Builder
		cfg.Dir, cfg.RunLimit, cfg.Sessions, cfg.Log = t.TempDir(), 10*time.Second, 1, slog.New(slog.NewTextHandler(&log, nil))
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Open(context.Background(), Version{Name: "m", Version: "1", Files: files, Rows: 1})
		if err == nil || strings.Contains(err.Error(), "4711") {
			t.Errorf("%s: got %v, want an error without what the server wrote", name, err)
		}
		if !strings.Contains(log.String(), "4711") { // the server has ended, and nothing writes any more
			t.Errorf("%s: got the log %q, want what the server wrote", name, log.String())
		}
	}
}

// Folders left by a killed process are removed at the next start, and those of another process are not.
func TestFoldersOfKilledProcessesAreRemoved(t *testing.T) {
	t.Parallel()
	parent, old := t.TempDir(), time.Now().Add(-time.Hour)
	for _, name := range []string{".scoring-left", ".scoring-used", ".scoring-new", "digest"} {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if name == ".scoring-new" {
			continue
		}
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), os.Chtimes(dir, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	used, err := os.Open(filepath.Join(parent, ".scoring-used")) // as another process does
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = used.Close() })
	if err := syscall.Flock(int(used.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Command: []string{"{model}", "{port}"}, Dir: parent, RunLimit: time.Second, Sessions: 1, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	var got []string
	left, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		got = append(got, e.Name())
	}
	if want := ".scoring-new .scoring-used digest"; strings.Join(got, " ") != want {
		t.Errorf("got %v left, want %s", got, want)
	}
}
