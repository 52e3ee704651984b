package mcpclient

import (
	"errors"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxAnswer limits one answer of a server on the wire, unpacked, in bytes.
const maxAnswer = 4 << 20

var (
	errTooLarge   = errors.New("the answer is too large")
	errRedirected = errors.New("the server redirects, which is not followed")
)

// link is a way to a server. closed frees what it holds; it may be called once, after the session has ended.
type link struct {
	transport mcp.Transport
	closed    func()
	// said is what a started server wrote last to its stderr; nil: there is none.
	said func() string
}

// dial makes a link; for a command it starts it.
func (s *Server) dial() (link, error) {
	if s.Command != "" {
		return s.start()
	}
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.MaxIdleConnsPerHost = maxCalls
	client := &http.Client{
		Transport: &guarded{next: own, server: s},
		// Over that of a call, whose context ends first; it is for what the library sends by itself.
		Timeout:       s.Timeout + connectLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected },
	}
	return link{
		transport: &mcp.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxAnswer},
		closed:    own.CloseIdleConnections,
	}, nil
}

// guarded adds the headers of the configuration and limits what comes back. It sends nothing else of ours: no request id
// and no trace.
type guarded struct {
	next   http.RoundTripper
	server *Server
}

// RoundTrip is part of http.RoundTripper.
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

// limitedBody fails once an answer is over its limit; a cut one could pass for whole.
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
