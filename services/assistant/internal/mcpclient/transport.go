package mcpclient

import (
	"errors"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxAnswer limits one response of a server, decompressed, in bytes.
const maxAnswer = 4 << 20

var (
	errTooLarge   = errors.New("the answer is too large")
	errRedirected = errors.New("the server redirects, which is not followed")
)

// link is a connection to a server. closed frees its resources; it may be called once, after the session has ended.
type link struct {
	transport mcp.Transport
	closed    func()
	// said returns the latest output of a started server to its stderr; nil: there is none.
	said func() string
}

// dial opens a link; for a command it starts the process.
func (s *Server) dial() (link, error) {
	if s.Command != "" {
		return s.start()
	}
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.MaxIdleConnsPerHost = maxCalls
	client := &http.Client{
		Transport: &guarded{next: own, server: s},
		// Longer than that of a call, whose context ends first; it is for requests that the library makes on its own.
		Timeout:       s.Timeout + connectLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected },
	}
	return link{
		transport: &mcp.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxAnswer},
		closed:    own.CloseIdleConnections,
	}, nil
}

// guarded adds the configured headers and limits the response. It sends no other data of the assistant: no request id
// and no trace.
type guarded struct {
	next   http.RoundTripper
	server *Server
}

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, v := range g.server.Headers {
		r.Header.Set(name, v.Reveal())
	}
	resp, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &limitedBody{resp.Body, maxAnswer}
	return resp, nil
}

// limitedBody fails once a response exceeds its limit; a truncated one could pass for complete.
type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
