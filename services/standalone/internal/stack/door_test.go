package stack

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheDoorAsksForTheSecret(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host+" "+r.Header.Get("Authorization"))
	}))
	t.Cleanup(behind.Close)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("a-secret-of-the-door\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	to := strings.TrimPrefix(behind.URL, "http://")
	url := open(t, Door{To: to, TokenFile: file, Health: "/health"})
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		status int
		body   string
	}{
		"nothing":       {"/", func(*http.Request) {}, 401, ""},
		"wrong":         {"/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer other") }, 401, ""},
		"bearer":        {"/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer a-secret-of-the-door") }, 200, to + " "},
		"basic":         {"/", func(r *http.Request) { r.SetBasicAuth("anybody", "a-secret-of-the-door") }, 200, to + " "},
		"health":        {"/health", func(*http.Request) {}, 200, to + " "},
		"health, write": {"/health", func(r *http.Request) { r.Method = http.MethodPost }, 401, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			c.change(req)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status || c.status == 200 && string(body) != c.body {
				t.Errorf("got %d %q, %v; want %d %q", resp.StatusCode, body, err, c.status, c.body)
			}
		})
	}
}

func TestADoorWithoutASecretPassesBytes(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host)
	}))
	t.Cleanup(behind.Close)
	url := open(t, Door{To: strings.TrimPrefix(behind.URL, "http://")})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || "http://"+string(body) != url {
		t.Errorf("the server saw %q, %v; want the caller's own host %s", body, err, url)
	}
}

func TestADoorWithAnEmptySecretStaysShut(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Door{TokenFile: file}).handler(slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("got %v; want an error that says is empty", err)
	}
}

// A container ends with the server in it, so that the engine starts it again.
func TestTheDoorEndsWithTheServer(t *testing.T) {
	t.Parallel()
	err := Door{Listen: "127.0.0.1:0", To: "127.0.0.1:1", Server: []string{"false"}}.Run(t.Context(), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "false ended") {
		t.Errorf("got %v; want that false ended", err)
	}
}

func TestDoorArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--listen=:1", "--to=:2"}, {"--listen=:1", "--to=:2", "--"}, {"--lisen=:1", "--", "x"}, {"stray", "--", "x"}} {
		if d, err := ParseDoor(args); err == nil {
			t.Errorf("%q gave %+v; want an error", args, d)
		}
	}
}

// open serves a door to an external server and returns its address.
func open(t *testing.T, d Door) string {
	t.Helper()
	serve, err := d.handler(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}
