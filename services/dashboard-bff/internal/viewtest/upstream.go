package viewtest

import (
	"bytes"
	"embed"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/libs/service"
)

// exchange is a recorded answer.
type exchange struct {
	Status     int             `json:"status"`
	NextCursor string          `json:"next_cursor,omitempty"` // header X-Next-Cursor
	Body       json.RawMessage `json:"body"`
}

// recorded is read by tests of any folder.
//
//go:embed testdata/*.json
var recorded embed.FS

// recordings of each service, by "/path?query".
var recordings = struct {
	sync.Mutex // guards the fields below
	of         map[string]map[string]exchange
}{of: map[string]map[string]exchange{}}

func recording() bool { return os.Getenv("VIEWTEST_RECORD") != "" }

// Upstream is a fake service that replays recorded answers, or those that a test sets instead.
type Upstream struct {
	*httptest.Server
	t              testing.TB
	name           string
	live, liveAuth string // where VIEWTEST_RECORD records from

	mu      sync.Mutex // guards those below
	changed map[string]http.HandlerFunc
	calls   map[string]int
	hung    chan struct{} // closed to end the hang; nil if it does not hang
	broken  bool
}

func newUpstream(t testing.TB, name, urlVar, tokenVar string) *Upstream {
	t.Helper()
	u := &Upstream{t: t, name: name, live: strings.TrimSuffix(os.Getenv(urlVar), "/"), liveAuth: os.Getenv(tokenVar), changed: map[string]http.HandlerFunc{}, calls: map[string]int{}}
	u.Server = httptest.NewServer(u)
	t.Cleanup(func() {
		u.Resume()
		u.Close()
		service.HTTPClient(0).CloseIdleConnections() // all clients share its connections
		http.DefaultClient.CloseIdleConnections()
	})
	return u
}

// ServeHTTP answers.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	u.calls[r.URL.Path]++
	hung, broken, handler := u.hung, u.broken, u.changed[r.URL.Path]
	u.mu.Unlock()
	if hung != nil {
		select {
		case <-hung:
		case <-r.Context().Done():
		}
		return
	}
	if broken {
		panic(http.ErrAbortHandler) // the connection breaks
	}
	if handler != nil {
		handler(w, r)
		return
	}
	u.Replay(w, r)
}

// Replay replays a recorded answer; handlers of tests call it for requests that they do not change.
func (u *Upstream) Replay(w http.ResponseWriter, r *http.Request) {
	e, ok := u.find(r)
	if !ok {
		u.t.Errorf("%s: %s is not recorded; see the comment of package viewtest", u.name, r.URL)
		http.Error(w, "not recorded", http.StatusTeapot)
		return
	}
	send(w, e)
}

func send(w http.ResponseWriter, e exchange) {
	w.Header().Set("Content-Type", "application/json")
	if e.Status >= 400 {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	if e.NextCursor != "" {
		w.Header().Set("X-Next-Cursor", e.NextCursor)
	}
	w.WriteHeader(e.Status)
	_, _ = w.Write(e.Body)
}

// Answer replaces the answers to a path, whatever its query.
func (u *Upstream) Answer(path string, status int, body string) {
	u.Handle(path, func(w http.ResponseWriter, _ *http.Request) {
		send(w, exchange{Status: status, Body: json.RawMessage(body)})
	})
}

// Edit changes the recorded answers to a path.
func (u *Upstream) Edit(path string, edit func(body string) string) {
	u.Handle(path, func(w http.ResponseWriter, r *http.Request) {
		e, _ := u.find(r)
		e.Body = json.RawMessage(edit(string(e.Body)))
		send(w, e)
	})
}

// Handle answers a path by a function of the test.
func (u *Upstream) Handle(path string, h http.HandlerFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.changed[path] = h
}

// Hang keeps all answers back until Resume.
func (u *Upstream) Hang() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.hung = make(chan struct{})
}

// Break cuts all connections until Resume.
func (u *Upstream) Break() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.broken = true
}

// Resume ends Hang and Break.
func (u *Upstream) Resume() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.hung != nil {
		close(u.hung)
	}
	u.hung, u.broken = nil, false
}

// Calls returns how often a path was called; of all paths for "".
func (u *Upstream) Calls(path string) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if path != "" {
		return u.calls[path]
	}
	for count := range maps.Values(u.calls) {
		n += count
	}
	return n
}

// find returns the recorded answer to a request, recorded now if allowed.
func (u *Upstream) find(r *http.Request) (exchange, bool) {
	recordings.Lock()
	defer recordings.Unlock()
	all := recordings.of[u.name]
	if all == nil {
		all = map[string]exchange{}
		raw, err := recorded.ReadFile("testdata/" + u.name + ".json")
		if err == nil {
			err = json.Unmarshal(raw, &all)
		}
		if err != nil {
			u.t.Errorf("%s: %v", u.file(), err)
		}
		recordings.of[u.name] = all
	}
	key := r.URL.EscapedPath()
	if q := r.URL.Query(); len(q) > 0 {
		key += "?" + q.Encode() // sorted
	}
	e, ok := all[key]
	var compact bytes.Buffer // tests that edit an answer find it as the service sent it
	if json.Compact(&compact, e.Body) == nil {
		e.Body = compact.Bytes()
	}
	if !ok && recording() && u.live != "" {
		if e, ok = u.record(key); ok {
			all[key] = e
			u.save(all)
		}
	}
	return e, ok
}

func (u *Upstream) record(key string) (exchange, bool) {
	req, err := http.NewRequest(http.MethodGet, u.live+key, nil)
	if err != nil {
		return exchange{}, false
	}
	if u.liveAuth != "" {
		req.Header.Set("Authorization", "Bearer "+u.liveAuth)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		u.t.Errorf("record %s: %v", key, err)
		return exchange{}, false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return exchange{Status: resp.StatusCode, NextCursor: resp.Header.Get("X-Next-Cursor"), Body: bytes.TrimSpace(body)}, err == nil
}

// save writes an exchange a line, so that a new one is one line of a diff.
func (u *Upstream) save(all map[string]exchange) {
	var b bytes.Buffer
	for i, key := range slices.Sorted(maps.Keys(all)) {
		line, err := json.Marshal(map[string]exchange{key: all[key]})
		if err != nil {
			u.t.Errorf("save %s: %v", key, err)
			return
		}
		b.WriteString(map[bool]string{true: "{\n", false: ",\n"}[i == 0])
		b.Write(line[1 : len(line)-1])
	}
	b.WriteString("\n}\n")
	if err := os.WriteFile(u.file(), b.Bytes(), 0o644); err != nil {
		u.t.Errorf("save: %v", err)
	}
}

// file returns the path of the recording, shared by every package of this folder: tests run in their package's folder.
func (u *Upstream) file() string { return filepath.Join("..", "viewtest", "testdata", u.name+".json") }
