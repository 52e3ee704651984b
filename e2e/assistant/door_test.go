//go:build e2e

package assistant_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// door is a proxy between the assistant and the API server. It records every request, so that writes are known from the
// wire and not from the assistant's answers.
type door struct {
	url        string
	kubeconfig string

	mu     sync.Mutex
	calls  []call               // guarded by mu
	before func(*http.Request)  // guarded by mu: called before a write is forwarded
	after  func(*http.Response) // guarded by mu: called before the answer to a write goes back
}

// call is one request to the API server.
type call struct {
	method, path, query string
	body                string
	write               bool // a request that would change something
}

func (c call) String() string { return c.method + " " + c.path + "?" + c.query }

// openDoor serves until the test ends.
func openDoor(t testing.TB, to *rest.Config) *door {
	t.Helper()
	target, err := url.Parse(to.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(to)
	if err != nil {
		t.Fatal(err)
	}
	d := &door{}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // killed assistants cause errors
		ModifyResponse: func(r *http.Response) error {
			if after := d.hook(r.Request); after != nil {
				after(r)
			}
			return nil
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), isWrite{}, d.note(r))))
	}))
	t.Cleanup(server.Close)
	d.url = server.URL
	d.kubeconfig = writeKubeconfig(t, map[string]*door{"e2e": d})
	return d
}

// writeKubeconfig returns a file with a context for each door.
func writeKubeconfig(t testing.TB, doors map[string]*door) string {
	t.Helper()
	cfg := clientcmdapi.NewConfig()
	for name, d := range doors {
		cfg.Clusters[name] = &clientcmdapi.Cluster{Server: d.url}
		cfg.Contexts[name] = &clientcmdapi.Context{Cluster: name}
		cfg.CurrentContext = name
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// isWrite is the context key for the result of [door.note]: its input, the body, is gone after the request.
type isWrite struct{}

func (d *door) note(r *http.Request) (write bool) {
	c := call{method: r.Method, path: r.URL.Path, query: r.URL.RawQuery}
	if r.Body != nil {
		body, _ := io.ReadAll(r.Body) // the API server refuses a truncated body
		c.body = string(body)
		r.Body = io.NopCloser(strings.NewReader(c.body))
	}
	c.write = changesCluster(r, c.body)
	d.mu.Lock()
	d.calls = append(d.calls, c)
	before := d.before
	d.mu.Unlock()
	if c.write && before != nil {
		before(r)
	}
	return c.write
}

// hook returns the function to call before the response to this request is sent.
func (d *door) hook(r *http.Request) func(*http.Response) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Context().Value(isWrite{}) != true {
		return nil
	}
	return d.after
}

// changesCluster reports whether a request would change the cluster: a dry run and a review do not.
func changesCluster(r *http.Request, body string) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Query().Get("dryRun") == "All" {
		return false
	}
	if strings.Contains(r.URL.Path, "/apis/authorization.k8s.io/") {
		return false
	}
	// Deletions and evictions have it in their body.
	return !strings.Contains(body, `"dryRun":["All"]`)
}

// written returns the writes since mark, of one namespace or, with none, of all.
func (d *door) written(mark int, namespace string) []call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.calls[mark:]), func(c call) bool {
		return !c.write || namespace != "" && !strings.Contains(c.path+"/", "/namespaces/"+namespace+"/")
	})
}

// mark returns the current position in the calls.
func (d *door) mark() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.calls)
}

// since returns all calls since mark.
func (d *door) since(mark int) []call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls[mark:])
}

// atWrite sets functions to call around writes; nil does nothing.
func (d *door) atWrite(before func(*http.Request), after func(*http.Response)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before, d.after = before, after
}

// holdWrite holds the next write before the API server, or its answer after it, until the sender is gone. reached is
// closed when it is held.
func (d *door) holdWrite(behind bool) (reached chan struct{}) {
	reached = make(chan struct{})
	var once sync.Once
	hold := func(ctx context.Context) {
		once.Do(func() {
			close(reached)
			<-ctx.Done()
			d.atWrite(nil, nil)
		})
	}
	if behind {
		d.atWrite(nil, func(r *http.Response) { hold(r.Request.Context()) })
	} else {
		d.atWrite(func(r *http.Request) { hold(r.Context()); panic(http.ErrAbortHandler) }, nil)
	}
	return reached
}

// holdAnswers holds the answers of the next n writes until their senders are gone. reached is closed when all are held.
func (d *door) holdAnswers(n int) (reached chan struct{}) {
	reached = make(chan struct{})
	var held atomic.Int32
	d.atWrite(nil, func(r *http.Response) {
		switch now := held.Add(1); {
		case now > int32(n):
			return
		case now == int32(n):
			close(reached)
		}
		<-r.Request.Context().Done()
	})
	return reached
}

// loseAnswers cuts the connection instead of sending each answer to a write.
func (d *door) loseAnswers() { d.atWrite(nil, func(*http.Response) { panic(http.ErrAbortHandler) }) }

func formatCalls(calls []call) string {
	var b strings.Builder
	for _, c := range calls {
		fmt.Fprintln(&b, c)
	}
	return b.String()
}

// logTail returns the end of a file, for failures.
func logTail(path string) string {
	text, _ := os.ReadFile(path)
	return string(text[max(0, len(text)-4000):])
}
