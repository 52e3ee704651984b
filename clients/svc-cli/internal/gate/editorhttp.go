package gate

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

const (
	name      = "svc-gate-audit/0.1"
	auditPath = "/api/audit"

	// The limit of concurrent audits; others wait for their turn, limited by the connections. A matrix of 2 MiB keeps a
	// core busy for some time.
	maxAudits = 2
)

// server answers the requests of one editor. Its fields are set before it serves.
type server struct {
	token, version string
	matrix         string // the text that the editor opens with
	audit          auditor
	launches       loopback.Launches
}

// serve returns the handler; audits end with ctx.
func (s *server) serve(ctx context.Context) httpd.Handler {
	room := make(chan struct{}, maxAudits)
	return func(w *httpd.Writer, r *httpd.Request) {
		x := &exchange{server: s, ctx: ctx, room: room, w: w, r: r}
		defer func() {
			// A fault of ours costs one answer, never the editor.
			if recover() != nil {
				x.fail(http.StatusInternalServerError, "internal_error", "The editor failed on this request.")
			}
		}()
		x.route()
	}
}

// refused are the fields of answers to requests that could not be parsed.
func (s *server) refused(int) httpd.Header { return loopback.BaseHeaders(name, s.version) }

type exchange struct {
	*server
	ctx  context.Context
	room chan struct{}
	w    *httpd.Writer
	r    *httpd.Request
}

// route makes the checks in their order: Host, preflight, the open paths, token, path, method, query.
func (x *exchange) route() {
	r := x.r
	page := r.Path == "/" || r.Path == "/index.html"
	switch {
	case !loopback.GoodHost(r):
		x.fail(http.StatusForbidden, "invalid_host", "The Host field must be 127.0.0.1 or localhost.")
	case r.Method == http.MethodOptions:
		x.notAllowed("preflight_not_supported", "Other origins may not call this editor.")
	case page:
		x.page()
	case r.Path == "/healthz":
		if x.reading() && x.noQuery() {
			x.text("ok\n")
		}
	case strings.HasPrefix(r.Path, "/api/") && !loopback.TokenMatches(r, x.token):
		x.fail(http.StatusForbidden, "invalid_session_token", "The token is missing or wrong; it must be in the "+loopback.TokenHeader+" field.")
	case r.Path != auditPath:
		x.fail(http.StatusNotFound, "not_found", "Nothing is here. The editor is at /.")
	case r.Method != http.MethodPost:
		x.notAllowed("method_not_allowed", "Audits are requested by POST.")
	case x.noQuery():
		x.judge()
	}
}

func (x *exchange) page() {
	if !x.reading() {
		return
	}
	code, ok := "", true
	if x.r.RawQuery != "" {
		code, ok = strings.CutPrefix(x.r.RawQuery, "launch=")
	}
	if !ok || strings.Contains(code, "&") {
		x.fail(http.StatusBadRequest, "unexpected_query_parameters", "The page takes launch, once, and nothing else.")
		return
	}
	// A HEAD request spends no code: it shows no page.
	matrix, granted := "", x.r.Method == http.MethodGet && code != "" && x.launches.Redeem(code)
	if granted {
		matrix = x.matrix
	}
	nonce := loopback.NewNonce()
	html, err := renderPage(nonce, granted, x.token, matrix)
	if err != nil {
		panic(err) // becomes the answer about a fault of ours
	}
	h := append(loopback.PageHeaders(nonce), loopback.ServiceHeaders(name, x.version)...)
	x.send(http.StatusOK, h, "text/html; charset=utf-8", html)
}

func (x *exchange) reading() bool {
	if x.r.Method == http.MethodGet || x.r.Method == http.MethodHead {
		return true
	}
	x.notAllowed("method_not_allowed", "This is read by GET.")
	return false
}

func (x *exchange) noQuery() bool {
	if x.r.RawQuery == "" {
		return true
	}
	x.fail(http.StatusBadRequest, "unexpected_query_parameters", "This takes no query.")
	return false
}

// judge audits the matrix of the body.
func (x *exchange) judge() {
	n, ok := x.length()
	if !ok {
		return
	}
	body, err := x.r.ReadBody(n)
	if err != nil {
		x.fail(http.StatusBadRequest, "incomplete_body", "The body ended or stalled before its stated length.")
		return
	}
	select {
	case x.room <- struct{}{}:
		defer func() { <-x.room }()
	case <-x.ctx.Done():
		x.fail(http.StatusServiceUnavailable, "shutting_down", "The editor is closing.")
		return
	}
	report, err := x.read(x.ctx, body)
	if err != nil {
		x.failed(err)
		return
	}
	x.document(http.StatusOK, struct {
		OK     bool    `json:"ok"`
		Report *Report `json:"report"`
	}{true, report})
}

// read audits the matrix that a text holds.
func (s *server) read(ctx context.Context, body []byte) (*Report, error) {
	doc, err := canon.Parse(body, canon.ObjectRoot())
	if err != nil {
		return nil, err
	}
	return s.audit(ctx, doc, Options{Version: s.version})
}

// length returns the length of the body, and answers faults of its framing.
func (x *exchange) length() (int64, bool) {
	if len(x.r.Header.Values("Transfer-Encoding")) > 0 {
		x.fail(http.StatusBadRequest, "unsupported_transfer_encoding", "Send the matrix with a Content-Length, not chunked.")
		return 0, false
	}
	stated := x.r.Header.Values("Content-Length")
	if len(stated) == 0 {
		x.fail(http.StatusLengthRequired, "length_required", "The Content-Length field is missing.")
		return 0, false
	}
	text := strings.Trim(stated[0], " \t")
	if len(stated) > 1 || text == "" || strings.Trim(text, "0123456789") != "" {
		x.fail(http.StatusBadRequest, "invalid_content_length", "The Content-Length field must be one number of plain digits.")
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > canon.MaxFile {
		x.fail(http.StatusRequestEntityTooLarge, "payload_too_large", "A matrix has at most "+strconv.Itoa(canon.MaxFile)+" bytes.")
		return 0, false
	}
	return n, true
}

// failure is the error of an error document.
type failure struct {
	Code    string `json:"code"`
	Path    string `json:"path,omitempty"` // JSON pointer into the matrix
	Message string `json:"message"`
}

func (x *exchange) refuse(status int, h httpd.Header, f failure) {
	x.document(status, struct {
		OK    bool    `json:"ok"`
		Error failure `json:"error"`
	}{false, f}, h...)
}

func (x *exchange) fail(status int, code, message string) {
	x.refuse(status, nil, failure{Code: code, Message: message})
}

// failed answers with the fault of the matrix.
func (x *exchange) failed(err error) {
	f := command.FaultOf(err)
	if errors.Is(err, context.Canceled) {
		x.fail(http.StatusServiceUnavailable, "shutting_down", "The editor is closing.")
		return
	}
	x.refuse(http.StatusBadRequest, nil, failure{Code: f.Code, Path: f.Path, Message: f.Message})
}

func (x *exchange) notAllowed(code, message string) {
	allow := "GET, HEAD"
	if x.r.Path == auditPath {
		allow = http.MethodPost
	}
	x.refuse(http.StatusMethodNotAllowed, httpd.Header{{Name: "Allow", Value: allow}}, failure{Code: code, Message: message})
}

// document answers with JSON in the form of the gate family's reports.
func (x *exchange) document(status int, v any, more ...httpd.Field) {
	value, err := canon.From(v)
	if err == nil {
		var body []byte
		if body, err = canon.R(value); err == nil {
			x.send(status, append(loopback.BaseHeaders(name, x.version), more...), "application/json; charset=utf-8", body)
			return
		}
	}
	panic(err) // the documents of this package are fit for JSON
}

func (x *exchange) text(body string) {
	x.send(http.StatusOK, loopback.BaseHeaders(name, x.version), "text/plain; charset=utf-8", []byte(body))
}

func (x *exchange) send(status int, h httpd.Header, contentType string, body []byte) {
	h = append(h, httpd.Field{Name: "Content-Type", Value: contentType}, httpd.Field{Name: "X-Request-ID", Value: loopback.RequestID(x.r)})
	// If the peer has gone, the answer is lost; there is no one else to report it to.
	_ = x.w.Answer(status, h, body)
}
