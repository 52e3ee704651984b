package upstream

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

// AuditFunc records in the ledger what who did. It returns once the fact is durable.
type AuditFunc func(ctx context.Context, who caller.Caller, action, target string, details map[string]any) error

// ActionTokenUsed is the audit fact of a call that a configured token made for a person.
const ActionTokenUsed = "upstream.token_used"

// replayable limits a request body that is kept in memory so that the request can be sent again with the token.
const replayable = 1 << 20

// Authorize returns a transport that adds to each request the credential for s in the name of who, a fresh one each
// time: a delegation is valid for a minute only, and for one write. A service that answers a delegation with 401 does
// not support it: where a token is configured and may act for who, the request is sent once more with the token. The
// service then sees the token's owner, so an audit fact of the same request id names the person; if it cannot be
// written, the token is not used. A viewer's requests get the token for reading only, since it may write.
func (c *Clients) Authorize(s Service, who caller.Caller, next http.RoundTripper) http.RoundTripper {
	return &authorizer{clients: c, service: c.Resolve(s), who: who, next: next}
}

type authorizer struct {
	clients *Clients
	service Service
	who     caller.Caller
	next    http.RoundTripper
}

// RoundTrip sends the request, with another credential once more if need be.
func (a *authorizer) RoundTrip(req *http.Request) (*http.Response, error) {
	token, again := a.fallback(req)
	if token != "" && a.clients.delegator == nil {
		if err := a.recordUse(req); err != nil {
			return nil, err
		}
		return a.next.RoundTrip(withBearer(req, token))
	}
	bearer, err := a.clients.Bearer(a.service, a.who)
	if err != nil {
		return nil, err
	}
	if audiences[a.service] != "" && a.clients.delegator == nil {
		bearer = "" // fallback refused the token
	}
	if token == "" || !again {
		return a.next.RoundTrip(withBearer(req, bearer))
	}
	body, err := keepBody(req)
	if err != nil {
		return nil, err
	}
	resp, err := a.next.RoundTrip(withBearer(body(), bearer))
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	if err := a.recordUse(req); err != nil {
		resp.Body.Close()
		return nil, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, replayable)) // so that the connection is used again
	resp.Body.Close()
	return a.next.RoundTrip(withBearer(body(), token))
}

// fallback returns the configured token, if the request may be made with it; again reports that the request can be
// sent twice.
func (a *authorizer) fallback(req *http.Request) (token string, again bool) {
	if audiences[a.service] == "" || a.who.Role == caller.Viewer && !reads(req.Method) {
		return "", false
	}
	if a.clients.delegator != nil && (a.clients.audit == nil || a.clients.local == "") {
		return "", false
	}
	return a.clients.token(a.service, a.who), req.Body == nil || req.Body == http.NoBody || req.ContentLength > 0 && req.ContentLength <= replayable
}

func reads(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// recordUse writes the audit fact. A page that is open reads every few seconds: of reads, the first in a minute is
// recorded for each session and service; services keep no facts of reads that these would have to explain.
func (a *authorizer) recordUse(req *http.Request) error {
	c := a.clients
	if c.audit == nil || a.who.Subject == "" {
		return nil
	}
	key := ""
	if reads(req.Method) {
		key = string(a.service) + " " + a.who.Tenant + " " + a.who.Subject + " " + a.who.SessionID
		if c.reads.recent(key) {
			return nil
		}
	}
	details := map[string]any{"method": req.Method, "service": string(a.service)}
	if err := c.audit(req.Context(), a.who, ActionTokenUsed, string(a.service)+req.URL.Path, details); err != nil {
		return fmt.Errorf("record who uses the token of %s: %w", a.service, err)
	}
	if key != "" {
		c.reads.add(key)
	}
	return nil
}

// withBearer returns a copy of the request: a RoundTripper must not change its own.
func withBearer(req *http.Request, bearer string) *http.Request {
	out := req.Clone(req.Context())
	out.Header.Del("Authorization")
	if bearer != "" {
		out.Header.Set("Authorization", "Bearer "+bearer)
	}
	return out
}

// keepBody reads the body of the request and returns what makes a request with it, any number of times.
func keepBody(req *http.Request) (func() *http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return func() *http.Request { return req }, nil
	}
	raw := make([]byte, req.ContentLength)
	_, err := io.ReadFull(req.Body, raw)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	return func() *http.Request {
		out := *req
		out.Body = io.NopCloser(bytes.NewReader(raw))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
		return &out
	}, nil
}

// readLog remembers whose reads were recorded lately.
type readLog struct {
	mu   sync.Mutex // guards seen
	seen map[string]time.Time
}

const (
	readEvery = time.Minute
	readKeys  = 10_000 // forgotten all at once beyond: a fact too many does no harm
)

// recent reports whether key was added within the last minute.
func (l *readLog) recent(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.seen[key]
	return ok && time.Since(at) < readEvery
}

func (l *readLog) add(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil || len(l.seen) >= readKeys {
		l.seen = make(map[string]time.Time)
	}
	l.seen[key] = time.Now()
}
