package steward

import (
	"net/http"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
)

const (
	requestTimeout = 10 * time.Second
	maxConns       = 64
)

// site is one page at one address.
type site struct {
	name    string // of the service, and of its interface
	version string // of the build
	page    []byte
}

func (s site) server() *httpd.Server {
	return &httpd.Server{Handler: s.serve, RequestTimeout: requestTimeout, MaxConns: maxConns, Refused: func(int) httpd.Header { return s.base() }}
}

func (s site) base() httpd.Header { return loopback.BaseHeaders(s.name+"/0.1", s.version) }

// serve answers one request. If the answer cannot be written, its reader has gone.
func (s site) serve(w *httpd.Writer, r *httpd.Request) {
	switch {
	case !loopback.GoodHost(r):
		s.refuse(w, r, http.StatusForbidden, "invalid_host", "This page is served to this machine only, as 127.0.0.1 or localhost.")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		s.refuse(w, r, http.StatusMethodNotAllowed, "method_not_allowed", "This page can be read only.", httpd.Field{Name: "Allow", Value: "GET, HEAD"})
	case r.Path != "/":
		s.refuse(w, r, http.StatusNotFound, "not_found", "There is one page, at /.")
	default:
		s.answer(w, r, http.StatusOK, "text/html; charset=utf-8", s.page)
	}
}

func (s site) refuse(w *httpd.Writer, r *httpd.Request, status int, code, message string, more ...httpd.Field) {
	type failure struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	body, err := canon.C1(struct {
		OK    bool    `json:"ok"`
		Error failure `json:"error"`
	}{false, failure{code, message}})
	if err != nil {
		panic(err) // constant texts are always fit
	}
	s.answer(w, r, status, "application/json; charset=utf-8", body, more...)
}

func (s site) answer(w *httpd.Writer, r *httpd.Request, status int, media string, body []byte, more ...httpd.Field) {
	h := s.base()
	for i := range h {
		if h[i].Name == "Content-Security-Policy" && status == http.StatusOK {
			h[i].Value += "; style-src " + styleSource() + "; img-src data:"
		}
	}
	h = append(h, httpd.Field{Name: "X-Request-ID", Value: loopback.RequestID(r)}, httpd.Field{Name: "Content-Type", Value: media})
	_ = w.Answer(status, append(h, more...), body)
}
