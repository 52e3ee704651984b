package tracker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/tracker"
)

// The suite in trackertest checks the client against servers that behave. These
// are servers that do not, which cannot be tested with a real one.
func brokenServer(t *testing.T, h http.HandlerFunc) *tracker.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return tracker.New(srv.URL, srv.Client(), tracker.Backoff(time.Millisecond), tracker.MaxDownload(1000))
}

func TestReadsAreRepeatedWritesAreNot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		fail   int // so many answers with the status
		status int
		call   func(context.Context, *tracker.Client) error
		calls  int64
		ok     bool
	}{
		{"read, busy twice", 2, 503, readRun, 3, true},
		{"read, busy for good", 9, 503, readRun, 3, false},
		{"read, too many", 1, 429, readRun, 2, true},
		{"read, refused", 9, 400, readRun, 1, false},
		{"read, broken server", 9, 500, readRun, 1, false},
		{"search, busy", 1, 502, searchAll, 2, true},
		{"write, busy", 1, 503, writeTag, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			client := brokenServer(t, func(w http.ResponseWriter, r *http.Request) {
				if calls.Add(1) <= int64(c.fail) {
					w.WriteHeader(c.status)
					return
				}
				fmt.Fprint(w, "{}")
			})
			err := c.call(t.Context(), client)
			if (err == nil) != c.ok || calls.Load() != c.calls {
				t.Errorf("%v after %d calls, want %d", err, calls.Load(), c.calls)
			}
			if busy := c.status != 400 && c.status != 500; err != nil && errors.Is(err, tracker.ErrUnavailable) != busy {
				t.Errorf("%v: unavailable should be %v", err, busy)
			}
		})
	}
}

func readRun(ctx context.Context, c *tracker.Client) error { _, err := c.GetRun(ctx, "r"); return err }

func searchAll(ctx context.Context, c *tracker.Client) error {
	_, _, err := c.SearchRuns(ctx, tracker.RunQuery{})
	return err
}

func writeTag(ctx context.Context, c *tracker.Client) error { return c.SetTag(ctx, "r", "a", "b") }

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://user:s3cret@" + l.Addr().String()
	l.Close()
	c := tracker.New(url, nil, tracker.Backoff(time.Millisecond))
	for name, err := range map[string]error{"read": readRun(t.Context(), c), "write": writeTag(t.Context(), c), "health": c.Health(t.Context()),
		"download": c.DownloadArtifact(t.Context(), "mlflow-artifacts:/x", io.Discard)} {
		if !errors.Is(err, tracker.ErrUnavailable) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf(`%s: %v; want errors.Is(err, tracker.ErrUnavailable) && !strings.Contains(err.Error(), "s3cret")`, name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := readRun(ctx, c); !errors.Is(err, context.Canceled) || errors.Is(err, tracker.ErrUnavailable) {
		t.Errorf("cancelled by the caller: %v; want errors.Is(err, context.Canceled) && !errors.Is(err, tracker.ErrUnavailable)", err)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	c := brokenServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := readRun(ctx, c); !errors.Is(err, tracker.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v; want errors.Is(err, tracker.ErrUnavailable) && errors.Is(err, context.DeadlineExceeded)", err)
	}
}

func TestAnswersOfOtherServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status      int
		body, wants string
	}{
		{404, "<!doctype html><title>404 Not Found</title>", "HTTP 404: <!doctype html>"},
		{404, `{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "Run with id=r not found", "sqlstate": "KAM00"}`, "RESOURCE_DOES_NOT_EXIST: Run with id=r not found"},
		{400, strings.Repeat("é", 1<<20), "HTTP 400: é"},
		{400, "", "HTTP 400: Bad Request"},
		{200, "<html>", "is the address right?"},
		{200, strings.Repeat(" ", 33<<20), "over 33554432 bytes"},
		{302, "", "HTTP 302"},
	} {
		client := brokenServer(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.status == 302 {
				w.Header().Set("Location", "http://elsewhere.invalid/")
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body) // the client hangs up on the largest
		})
		if c.status == 302 { // the default client follows none
			client = tracker.New(client.URL(), nil)
		}
		err := readRun(t.Context(), client)
		if err == nil || !strings.Contains(err.Error(), c.wants) || len(err.Error()) > 1000 {
			t.Errorf("%d %.40q: %.200v, want %q", c.status, c.body, err, c.wants)
		}
	}
}

func TestPagesWithoutEnd(t *testing.T) {
	t.Parallel()
	c := brokenServer(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"registered_models": [{"name": "m"}], "next_page_token": "same"}`)
	})
	n := 0
	for _, err := range c.SearchRegisteredModels(t.Context(), "") {
		if n++; n > 5 {
			t.Fatal("no end")
		}
		if err != nil {
			return
		}
	}
	t.Error("no error")
}

func TestNumbersAsStrings(t *testing.T) {
	t.Parallel()
	c := brokenServer(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"run": {"info": {"run_id": "r", "start_time": "1700000000000", "end_time": 1700000000001},
			"data": {"metrics": [{"key": "a", "value": "NaN", "timestamp": "1", "step": "2"}, {"key": "b", "value": "-Infinity", "timestamp": 1, "step": 0},
			{"key": "c", "value": 1e3, "timestamp": 1, "step": 0}]}}}`)
	})
	r, err := c.GetRun(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	if r.Start.UnixMilli() != 1700000000000 || r.End.UnixMilli() != 1700000000001 || !math.IsNaN(r.Metrics["a"]) || !math.IsInf(r.Metrics["b"], -1) || r.Metrics["c"] != 1000 {
		t.Errorf(`%+v; want r.Start.UnixMilli() == 1700000000000 && r.End.UnixMilli() == 1700000000001 && math.IsNaN(r.Metrics["a"]) && math.IsInf(r.Metrics["b"], -1) && r.Metrics["c"] == 1000`, r)
	}
}

// TestHostileModel lists files whose names lead out of the folder, or that are
// too many, too deep or too large.
func TestHostileModel(t *testing.T) {
	t.Parallel()
	type file map[string]any
	endless := func(string) []file { return []file{{"path": "d", "is_dir": true}} }
	for name, list := range map[string]func(path string) []file{
		"climbs":       func(string) []file { return []file{{"path": "../../evil"}} },
		"absolute":     func(string) []file { return []file{{"path": "/tmp/evil"}} },
		"other folder": func(string) []file { return []file{{"path": "x/evil"}} },
		"dots":         func(string) []file { return []file{{"path": "..", "is_dir": true}} },
		"empty name":   func(string) []file { return []file{{"path": ""}} },
		"backslash":    func(string) []file { return []file{{"path": `..\evil`}} },
		"no end":       endless,
		"twice":        func(string) []file { return []file{{"path": "a"}, {"path": "a"}} },
		"too large":    func(string) []file { return []file{{"path": "a"}, {"path": "big"}} },
		"too many": func(string) []file {
			out := make([]file, 10_001)
			for i := range out {
				out[i] = file{"path": fmt.Sprint(i)}
			}
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := brokenServer(t, func(w http.ResponseWriter, r *http.Request) {
				var err error
				switch {
				case strings.Contains(r.URL.Path, "get-download-uri"):
					_, err = fmt.Fprint(w, `{"artifact_uri": "mlflow-artifacts:/1/r/artifacts/model"}`)
				case r.URL.Query().Has("path"):
					err = json.NewEncoder(w).Encode(map[string]any{"files": list(r.URL.Query().Get("path"))})
				case strings.HasSuffix(r.URL.Path, "/big"):
					_, err = w.Write(bytes.Repeat([]byte("x"), 2000))
				}
				if err != nil && !strings.HasSuffix(r.URL.Path, "/big") { // whose reader hangs up
					t.Error(err, `want (err == nil || strings.HasSuffix(r.URL.Path, "/big"))`)
				}
			})
			parent := t.TempDir()
			dir := filepath.Join(parent, "a", "model")
			files, err := c.DownloadModel(t.Context(), tracker.ModelVersion{Name: "m", Version: "1"}, dir)
			if err == nil {
				t.Fatalf("got %v; want an error", files)
			}
			if name == "too large" && !errors.Is(err, tracker.ErrTooLarge) {
				t.Errorf(`%v; want (name != "too large" || errors.Is(err, tracker.ErrTooLarge))`, err)
			}
			left := 0
			if err := filepath.WalkDir(parent, func(_ string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					left++
				}
				return err
			}); err != nil || left > 0 {
				t.Errorf("%d files left, %v; want left <= 0", left, err)
			}
		})
	}
}

// TestCutOffDownload ends a transfer early: that is an error, never a short file.
func TestCutOffDownload(t *testing.T) {
	t.Parallel()
	c := brokenServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	})
	var got bytes.Buffer
	if err := c.DownloadArtifact(t.Context(), "mlflow-artifacts:/x", &got); !errors.Is(err, tracker.ErrUnavailable) || got.String() != "half" {
		t.Errorf(`%q, %v; want errors.Is(err, tracker.ErrUnavailable) && got.String() == "half"`, got.String(), err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestOwnDiskIsNotTheTracker(t *testing.T) {
	t.Parallel()
	c := brokenServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x") })
	if err := c.DownloadArtifact(t.Context(), "mlflow-artifacts:/x", fullDisk{}); err == nil || errors.Is(err, tracker.ErrUnavailable) {
		t.Errorf("%v; want an error && !errors.Is(err, tracker.ErrUnavailable)", err)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	// printf 'MLmodel\0aa\nmodel.onnx\0bb\n' | sha256sum
	got := tracker.Digest(map[string]string{"model.onnx": "bb", "MLmodel": "aa"})
	if want := "df4a1f3011460a289ff8f4c6a39d049bcef3c41a2e9c3392755ef555588b0161"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"a": "'a'", "it's": `"it's"`, `a"b`: `'a"b'`, `it's "x"`: `'its "x"'`, "": "''"} {
		if got := tracker.Quote(in); got != want {
			t.Errorf("%s gives %s, want %s", in, got, want)
		}
	}
}
