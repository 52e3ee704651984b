package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// BenchmarkHop compares the proxy with a bare [httputil.ReverseProxy] to the same service: both are called in turns, so
// that what else the machine does meets both. It reports the time per call and their ratio.
func BenchmarkHop(b *testing.B) {
	for name, body := range map[string]struct{ media, text string }{
		"text-1KiB": {"text/plain", strings.Repeat("x", 1<<10)}, "json-4KiB": {"application/json", `{"rows":[` + strings.Repeat(`{"id":12345,"name":"model","value":0.25},`, 99) + `{}]}`},
		"html-8KiB": {"text/html", strings.Repeat(linkRow, 140)}, "binary-1MiB": {"application/octet-stream", strings.Repeat("\x00\x01", 1<<19)},
	} {
		b.Run(name, func(b *testing.B) { compareHops(b, body.media, body.text) })
	}
}

func compareHops(b *testing.B, media, text string) {
	bench := newBench(b)
	srv := bench.behind(upstream.Tracker, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		_, _ = io.WriteString(w, text)
	})
	target, err := url.Parse(srv.URL)
	if err != nil {
		b.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64 // as the proxy's
	bare := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) { pr.SetURL(target) }, Transport: transport})
	b.Cleanup(func() { bare.CloseClientConnections(); bare.Close(); transport.CloseIdleConnections() })
	// The handler alone, without the dashboard's guards: those are measured with the service's stack.
	hop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := bench.proxy.serve(w, r, bench.proxy.dashboard, admin); err != nil {
			b.Error(err)
		}
	}))
	b.Cleanup(func() { hop.CloseClientConnections(); hop.Close() })
	var spent [2]time.Duration
	urls := [2]string{bare.URL + "/x", hop.URL + "/api/proxy/tracker/x"}
	b.ResetTimer()
	for n := b.N; n > 0; n -= hopsPerTurn {
		for i, u := range urls {
			spent[i] += callMany(b, u, min(n, hopsPerTurn))
		}
	}
	b.ReportMetric(float64(spent[0].Nanoseconds())/float64(b.N), "bare-ns/op")
	b.ReportMetric(float64(spent[1].Nanoseconds())/float64(b.N), "proxy-ns/op")
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "ratio")
}

const (
	hopsPerTurn = 200
	hopClients  = 8
)

func callMany(b *testing.B, url string, n int) time.Duration {
	c := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: hopClients, DisableCompression: true}}
	defer c.CloseIdleConnections()
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	start := time.Now()
	var wg sync.WaitGroup
	for range hopClients {
		wg.Go(func() {
			for range work {
				res, err := c.Get(url)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusOK {
					b.Errorf("%d; want 200", res.StatusCode)
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// BenchmarkRewriteHTML measures the translation of a page's links alone: a page of links, like the hop's, and one as
// tools send it, mostly text and scripts.
func BenchmarkRewriteHTML(b *testing.B) {
	links := newLinkMap(upstream.Tracker, "http", "", place{"http://10.0.0.1:5000", "", upstream.Tracker}, place{"http://10.0.0.2:4200", "", upstream.Orchestrator})
	for name, text := range map[string]string{
		"links": strings.Repeat(linkRow, 140),
		"app": `<!doctype html><html><head><link rel="stylesheet" href="/static/app.css"><script>` + strings.Repeat("var a = 1 < 2;\n", 200) +
			`</script></head><body>` + strings.Repeat("<div class=\"cell wide\" id=\"x\"><span>some text</span></div>\n", 80) + `</body></html>`,
	} {
		b.Run(name, func(b *testing.B) {
			body := []byte(text)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				rewriteHTML(body, links, true)
			}
		})
	}
}

// linkRow is a row of a page that is full of links.
const linkRow = `<p class="row"><a href="/models/x">x</a> text of a row</p>` + "\n"
