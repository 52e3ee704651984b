package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/config"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/cli/invocation"
)

// maxAnswer limits the bytes read from one answer.
const maxAnswer = 64 << 20

func newDialer(connect time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return (&net.Dialer{Timeout: connect}).DialContext
}

// remote is one of the platform's HTTP services as mlp calls it: every answer other than 2xx, every lost
// connection and every body that is not JSON becomes one sentence and the command that mends it.
type remote struct {
	name  string // as people know it
	key   string // configuration key of its address
	url   string
	token string
	http  *http.Client
	// renew returns the token to send, a new one if the stored one has expired; nil: the token does not expire, or
	// only a person can renew it.
	renew func(context.Context) (string, error)
	// probing marks requests as those of a tool that tries the service.
	probing bool
	changes *changes // records successful mutations; nil: none are recorded
}

func (e *Env) remote(r *config.Resolved, name, key, tokenKey string) *remote {
	s := &remote{name: name, key: key, url: r.Get(key), http: e.HTTP, changes: e.changes}
	if tokenKey != "" {
		s.token = r.Get(tokenKey)
	}
	return s
}

func (e *Env) controlPlane(r *config.Resolved) *remote {
	return e.remote(r, "control plane", "control_plane", "control_plane_token")
}

func (e *Env) serving(r *config.Resolved) *remote {
	return e.remote(r, "inference", "serving", "inference_token")
}

// get reads path into out.
func (s *remote) get(ctx context.Context, path string, out any) error {
	_, err := s.do(ctx, http.MethodGet, path, nil, out)
	return err
}

// post sends body and reads the answer into out. Mutations carry an idempotency key, so that the one
// retry after a lost connection cannot do anything twice.
func (s *remote) post(ctx context.Context, path string, body, out any) error {
	_, err := s.do(ctx, http.MethodPost, path, body, out)
	return err
}

// ask posts what changes nothing, such as a prediction: without an idempotency key, and without the retry,
// which would hide lost connections from a check or a benchmark. The payload is JSON already, so that a
// benchmark encodes it once.
func (s *remote) ask(ctx context.Context, path string, payload []byte, out any) error {
	_, err := s.once(ctx, http.MethodPost, path, "", payload, out)
	return err
}

// probe requests a prediction from made-up values, marked as such, so that the service does not count it as traffic.
func (s *remote) probe(ctx context.Context, path string, payload []byte, out any) error {
	marked := *s
	marked.probing = true
	return marked.ask(ctx, path, payload, out)
}

func (s *remote) do(ctx context.Context, method, path string, body, out any) (http.Header, error) {
	var payload []byte
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return nil, fault.New("bad_value", "cannot encode the request: %v", err)
		}
	}
	key := ""
	if method != http.MethodGet {
		key = uuid.Must(uuid.NewV7()).String()
	}
	for attempt := 0; ; attempt++ {
		header, err := s.once(ctx, method, path, key, payload, out)
		if attempt == 0 && key != "" && lostConnection(err) && ctx.Err() == nil {
			continue
		}
		return header, err
	}
}

// lostConnection reports whether an established connection was lost; a refused one is not retried.
func lostConnection(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

func (s *remote) once(ctx context.Context, method, path, key string, payload []byte, out any) (http.Header, error) {
	var body io.Reader
	if payload != nil {
		body = bytes.NewReader(payload)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		return nil, fault.New("bad_url", "cannot build a request for %s: %v", s.name, err)
	}
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, data, err := s.send(req)
	if err != nil {
		var header http.Header
		if resp != nil {
			header = resp.Header
		}
		return header, err
	}
	if out == nil {
		return resp.Header, nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, s.notJSON(resp)
	}
	return resp.Header, nil
}

// send signs a request, sends it once, and reads the whole answer.
func (s *remote) send(req *http.Request) (*http.Response, []byte, error) {
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	if s.probing {
		req.Header.Set("X-Platform-Probe", "1")
	}
	token := s.token
	if s.renew != nil {
		var err error
		if token, err = s.renew(req.Context()); err != nil {
			return nil, nil, err
		}
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, nil, s.unreachable(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return resp, nil, s.unreachable(err)
	}
	if len(data) > maxAnswer {
		return resp, nil, s.fault("answer_too_large", resp, "%s answered with more than %d MiB", s.name, maxAnswer>>20)
	}
	if resp.StatusCode/100 != 2 {
		return resp, data, s.refused(resp, data)
	}
	if req.Header.Get("Idempotency-Key") != "" && req.Header.Get("X-Platform-Probe") == "" {
		s.changes.note()
	}
	return resp, data, nil
}

// foreignAnswer returns the fault for an answer that did not come from the service: a proxy's page, or another
// program's.
func foreignAnswer(name, key, tokenKey, url string, status int) *fault.Error {
	code, what := fmt.Sprintf("http_%d", status), fmt.Sprintf("answered HTTP %d (%s) with something that is not its own answer", status, http.StatusText(status))
	switch {
	case status/100 == 2:
		code, what = "not_json", "answered with something that is not the expected JSON"
	case status/100 == 3:
		what = "redirects elsewhere, where mlp does not follow: the token would go along"
	}
	f := fault.New(code, "%s at %s %s", name, url, what)
	f.Service, f.Status = key, status
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return f.WithHint("set the token: mlp config set %s", tokenKey)
	case status/100 == 3:
		return f.WithHint("set the address that it redirects to: mlp config set %s <url>", key)
	case status/100 == 5:
		return f.WithHint("see which service is down: mlp status")
	}
	return f.WithHint("is %s the address of the %s? See: mlp config show", url, name)
}

func (s *remote) notJSON(resp *http.Response) error {
	return s.fault("not_json", resp, "%s at %s answered with something that is not the expected JSON", s.name, s.url).
		WithHint("is %s the address of the %s? See: mlp config show", s.url, s.name)
}

func (s *remote) fault(code string, resp *http.Response, format string, a ...any) *fault.Error {
	e := fault.New(code, format, a...)
	e.Service = s.key
	if resp != nil {
		e.Status = resp.StatusCode
		e.RequestID = resp.Header.Get("X-Request-ID")
	}
	return e
}

// notHTTP reports whether the error came from an answer of another protocol, such as that of a TLS server to plain
// HTTP or the other way round. net/http has no types for most of these.
func notHTTP(err error) bool {
	var record tls.RecordHeaderError
	return errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch) || strings.Contains(err.Error(), "malformed HTTP")
}

func (s *remote) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return unreachableFault(s.name, s.key, s.url, err)
}

// unreachableFault returns the fault for a call without an answer, or with one that is not HTTP.
func unreachableFault(name, key, url string, err error) *fault.Error {
	var netErr net.Error
	what, code, hint := "cannot be reached", "unreachable", invocation.Current().StartHint()+"; or set the address with: mlp config set "+key+" <url>"
	switch {
	case notHTTP(err):
		what, code, hint = "answered with something that is not HTTP", "not_http", "set the service's own address, with http:// or https:// as it has it: mlp config set "+key+" <url>"
	case errors.Is(err, syscall.ECONNREFUSED):
		what = "refused the connection"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		what, code = "did not answer in time", "timeout"
	}
	f := fault.New(code, "%s at %s %s", name, url, what).WithHint("%s", hint)
	f.Service, f.Cause = key, err
	return f
}

// refused converts an answer other than 2xx to a fault, from its problem document where there is one.
func (s *remote) refused(resp *http.Response, data []byte) error {
	var p struct {
		Detail, Title, Code string
		Message             string `json:"message"` // the tracker's errors
		ErrorCode           string `json:"error_code"`
		Errors              []struct {
			Loc []any  `json:"loc"`
			Msg string `json:"msg"`
		} `json:"errors"`
		Reasons []string `json:"reasons"`
	}
	_ = json.Unmarshal(data, &p) // not JSON: the status says enough
	detail := p.Detail
	for _, d := range []string{p.Message, p.Title, http.StatusText(resp.StatusCode)} {
		if detail == "" {
			detail = d
		}
	}
	for i, e := range p.Errors {
		if i == 5 {
			detail += fmt.Sprintf("; and %d more", len(p.Errors)-i)
			break
		}
		loc := make([]string, len(e.Loc))
		for j, l := range e.Loc {
			loc[j] = fmt.Sprint(l)
		}
		if more := strings.Join(loc, ".") + ": " + e.Msg; !strings.Contains(p.Detail, more) { // a detail may be its first error
			detail = strings.TrimSuffix(detail, ".") + "; " + more
		}
	}
	if len(p.Reasons) > 0 {
		detail += ": " + strings.Join(p.Reasons, "; ")
	}
	code := p.Code
	if code == "" {
		code = strings.ToLower(p.ErrorCode)
	}
	if code == "" {
		code = fmt.Sprintf("http_%d", resp.StatusCode)
	}
	f := s.fault(code, resp, "%s: %s", s.name, detail)
	if resp.StatusCode/100 == 3 {
		where := resp.Header.Get("Location")
		f = s.fault(code, resp, "%s at %s redirects to %s, where mlp does not follow: the token would go along", s.name, s.url, cmpOr(where, "another address"))
		return f.WithHint("set the address that answers: mlp config set %s <url>", s.key)
	}
	tokenEnv, tokenKey := "CONTROL_PLANE_TOKEN", "control_plane_token"
	switch s.key {
	case "serving":
		tokenEnv, tokenKey = "SERVING_TOKEN", "inference_token"
	case "dashboard":
		tokenEnv, tokenKey = "DASHBOARD_TOKEN", "dashboard_token"
	case "assistant":
		tokenEnv, tokenKey = "ASSISTANT_KEY", "assistant_key"
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		if s.key == "dashboard" {
			return f.WithHint("sign in: mlp auth login; or set %s", tokenEnv)
		}
		return f.WithHint("set %s, or run: mlp config set %s", tokenEnv, tokenKey)
	case http.StatusForbidden:
		if code == "own_request" {
			return f.WithHint("ask another person to approve it")
		}
		return f.WithHint("this credential is not allowed to; use another: mlp config set %s", tokenKey)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if after := resp.Header.Get("Retry-After"); after != "" {
			return f.WithHint("try again in %s s", after)
		}
		return f.WithHint("try again shortly; see: mlp status")
	case http.StatusNotFound:
		switch {
		case s.key == "dashboard":
		case s.key == "serving":
			return f.WithHint("see what is served: mlp models list")
		case code == "no_pending_approval":
			return f.WithHint("see what is pending: mlp approvals list")
		}
	case http.StatusBadGateway:
		return f.WithHint("see which service is down: mlp status")
	}
	return f
}

// escapeSegment escapes one path segment.
func escapeSegment(s string) string { return url.PathEscape(s) }
