// Package otlptest is a collector that takes spans by OTLP over HTTP and keeps them.
package otlptest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is one span, with the name of the service that sent it.
type Span struct {
	Service string
	*traces.Span
}

// Collector keeps the spans it receives until the test ends.
type Collector struct {
	URL string // for OTEL_EXPORTER_OTLP_ENDPOINT

	mu    sync.Mutex // guards what follows
	token string
	spans map[string]Span // by id: an exporter may send one twice
}

// Start starts a collector. A request other than a batch of spans fails the test.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{spans: map[string]Span{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		batch, err := readBatch(r)
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v; want spans at /v1/traces", r.URL, err)
			return
		}
		c.keep(batch, r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

func readBatch(r *http.Request) (*collector.ExportTraceServiceRequest, error) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = unzipped
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	batch := &collector.ExportTraceServiceRequest{}
	return batch, proto.Unmarshal(raw, batch)
}

func (c *Collector) keep(batch *collector.ExportTraceServiceRequest, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = token
	for _, resource := range batch.ResourceSpans {
		service := ""
		for _, a := range resource.Resource.GetAttributes() {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans[string(s.SpanId)] = Span{service, s}
			}
		}
	}
}

// Token is the Authorization header of the last batch.
func (c *Collector) Token() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// Spans are all that have come, in no order.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Span, 0, len(c.spans))
	for _, s := range c.spans {
		all = append(all, s)
	}
	return all
}
