package proxy

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// bufferSize is that of a copy, per exchange.
const bufferSize = 32 << 10

// bufferPool lends the copies their buffers.
type bufferPool struct{ pool sync.Pool }

func newBufferPool() *bufferPool {
	return &bufferPool{sync.Pool{New: func() any { return new([bufferSize]byte) }}}
}

func (b *bufferPool) Get() []byte { return b.pool.Get().(*[bufferSize]byte)[:] }
func (b *bufferPool) Put(buffer []byte) {
	if len(buffer) == bufferSize {
		b.pool.Put((*[bufferSize]byte)(buffer))
	}
}

// deadlineSteps is how often a deadline is moved at most while it lasts; each move costs a little.
const deadlineSteps = 60

// responseWriter keeps the service's headers apart until they are final: an informational answer (103) would otherwise
// put headers of the service into the response unchecked, and remove the dashboard's own. Each write has a deadline,
// so that a caller who reads nothing is cut off.
type responseWriter struct {
	under      http.ResponseWriter
	controller *http.ResponseController
	header     http.Header
	idle       time.Duration
	moved      time.Time
	wrote      bool
}

// Header returns the service's headers, cleaned.
func (w *responseWriter) Header() http.Header { return w.header }

// Unwrap lets [http.ResponseController] flush and hijack.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.under }

// WriteHeader sends the headers; informational answers are dropped.
func (w *responseWriter) WriteHeader(status int) {
	if status < http.StatusOK || w.wrote {
		return
	}
	w.wrote = true
	final := w.under.Header()
	for name, values := range w.header {
		final[name] = values
	}
	w.under.WriteHeader(status)
}

// sendTrailers hands on the headers that came after the body.
func (w *responseWriter) sendTrailers() {
	if !w.wrote {
		return
	}
	announced := strings.Split(w.header.Get("Trailer"), ", ")
	for name, values := range w.header {
		if strings.HasPrefix(name, http.TrailerPrefix) || slices.Contains(announced, name) {
			w.under.Header()[name] = values
		}
	}
}

func (w *responseWriter) Write(b []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	if now := time.Now(); now.Sub(w.moved) > w.idle/deadlineSteps {
		w.moved = now
		_ = w.controller.SetWriteDeadline(now.Add(w.idle)) // a test's recorder has none
	}
	return w.under.Write(b)
}

// requestBody gives each part of a request's body its own time to arrive. The whole may take longer.
type requestBody struct {
	io.ReadCloser
	controller *http.ResponseController
	idle       time.Duration
	moved      time.Time
}

func (b *requestBody) Read(p []byte) (int, error) {
	if now := time.Now(); now.Sub(b.moved) > b.idle/deadlineSteps {
		b.moved = now
		_ = b.controller.SetReadDeadline(now.Add(b.idle))
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.controller.SetReadDeadline(time.Time{}) // else it would end a long answer
	}
	return n, err
}

// watchedBody ends the exchange when the service sends nothing for too long while its answer is being read.
type watchedBody struct {
	io.ReadCloser
	timer *time.Timer // nil: an event stream, which may be silent
	idle  time.Duration
	res   *http.Response
}

// watchBody watches the answer's body. An event stream is watched for the end of the session instead.
func (x *exchange) watchBody(res *http.Response) io.ReadCloser {
	b := &watchedBody{ReadCloser: res.Body, idle: x.proxy.timeouts.idle, res: res}
	if isStream(res.Header) {
		x.stopWatch = x.endWithSession(res.Request.Context())
		return b
	}
	b.timer = time.AfterFunc(b.idle, func() { x.cancel(errIdle) })
	b.timer.Stop()
	return b
}

func (b *watchedBody) Read(p []byte) (int, error) {
	if b.timer != nil {
		b.timer.Reset(b.idle)
	}
	n, err := b.ReadCloser.Read(p)
	if b.timer != nil {
		b.timer.Stop()
	}
	if err != nil {
		for name := range b.res.Trailer { // headers hidden in the head are hidden in the trailer
			if hiddenFromBrowser[name] {
				delete(b.res.Trailer, name)
			}
		}
	}
	return n, err
}

func (b *watchedBody) Close() error {
	if b.timer != nil {
		b.timer.Stop()
	}
	return b.ReadCloser.Close()
}

// isStream reports whether an answer is a stream of events, whose parts come when something happens.
func isStream(h http.Header) bool {
	switch mediaType(h) {
	case "text/event-stream", "application/x-ndjson", "application/stream+json", "multipart/x-mixed-replace":
		return true
	}
	return false
}

// mediaType returns the answer's type in lower case, without parameters.
func mediaType(h http.Header) string {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return media
}
