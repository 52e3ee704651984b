package app

import (
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/negotiate"
)

// encodeDocument gives a document in the form in which it is sent and digested.
func encodeDocument(document any) ([]byte, error) { return canon.C1(document) }

// named are the fields that tie an answer to its request.
func (x *exchange) named(h httpd.Header) httpd.Header {
	h = append(h, httpd.Field{Name: "X-Request-ID", Value: x.id})
	if trace, ok := loopback.Traceparent(x.r); ok {
		h = append(h, httpd.Field{Name: "traceparent", Value: trace})
	}
	return h
}

// head begins the fields of an answer; there is room for those of a document.
func (x *exchange) head() httpd.Header {
	h := make(httpd.Header, len(x.app.fields), len(x.app.fields)+8)
	copy(h, x.app.fields)
	return x.named(h)
}

// send answers with a body and remembers what was sent.
func (x *exchange) send(status int, h httpd.Header, body []byte) {
	x.answered, x.status = true, status
	x.app.counters.Answered(status, time.Since(x.began))
	if x.w.Answer(status, h, body) == nil && x.r.Method != "HEAD" {
		x.sent = int64(len(body))
	}
}

// json answers with a document that is in form C1.
func (x *exchange) json(status int, body []byte, more ...httpd.Field) {
	mediaType, _ := negotiate.Accept(x.r.Header.Values("Accept"), true)
	digest := canon.DigestBytes(body)
	h := append(x.head(),
		httpd.Field{Name: "Content-Type", Value: mediaType + "; charset=utf-8"},
		httpd.Field{Name: "Vary", Value: "Accept"},
		httpd.Field{Name: "X-SVC-Content-Digest", Value: digest},
		httpd.Field{Name: "ETag", Value: `"` + digest[len("sha256:"):] + `"`})
	x.send(status, append(h, more...), body)
}

// text answers with plain text.
func (x *exchange) text(mediaType, body string) {
	x.send(200, append(x.head(), httpd.Field{Name: "Content-Type", Value: mediaType}), []byte(body))
}

// document answers 200 with a document.
func (x *exchange) document(document any) {
	body, err := encodeDocument(document)
	if err != nil {
		x.fail(&catalogue.Fault{Code: catalogue.InternalError, Cause: err})
		return
	}
	x.json(200, body)
}

// fail answers with a fault.
func (x *exchange) fail(f *catalogue.Fault) {
	x.report(f)
	body, err := encodeDocument(f.Envelope())
	if err != nil { // a stored text in the details that no document can hold
		f = &catalogue.Fault{Code: catalogue.InternalError, Cause: err}
		x.report(f)
		if body, err = encodeDocument(f.Envelope()); err != nil {
			panic(err) // the envelope is constant
		}
	}
	var more []httpd.Field
	if f.Allow != "" {
		more = append(more, httpd.Field{Name: "Allow", Value: f.Allow})
	}
	if after := f.RetryAfter(); after != "" {
		more = append(more, httpd.Field{Name: "Retry-After", Value: after})
	}
	x.json(f.Entry().Status, body, more...)
}
