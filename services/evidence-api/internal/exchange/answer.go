package exchange

import (
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/negotiate"
)

// EncodeDocument writes a document in the form in which it is sent and digested.
func EncodeDocument(document any) ([]byte, error) { return canon.C1(document) }

// withRequest adds the fields that tie an answer to its request.
func (x *Exchange) withRequest(h httpd.Header) httpd.Header {
	h = append(h, httpd.Field{Name: "X-Request-ID", Value: x.id})
	if trace, ok := loopback.Traceparent(x.Request); ok {
		h = append(h, httpd.Field{Name: "traceparent", Value: trace})
	}
	return h
}

// newHeader starts the fields of an answer, with room for those of a document.
func (x *Exchange) newHeader() httpd.Header {
	h := make(httpd.Header, len(x.server.fields), len(x.server.fields)+8)
	copy(h, x.server.fields)
	return x.withRequest(h)
}

// send answers with a body and records the answer.
func (x *Exchange) send(status int, h httpd.Header, body []byte) {
	x.countAnswer(status)
	if x.w.Answer(status, h, body) == nil && x.Request.Method != "HEAD" {
		x.sent = int64(len(body))
	}
}

func (x *Exchange) countAnswer(status int) {
	x.answered, x.status = true, status
	x.server.Counters.Answered(status, time.Since(x.began))
}

// JSON answers with a document that is already in form C1.
func (x *Exchange) JSON(status int, body []byte, more ...httpd.Field) {
	mediaType, _ := negotiate.Accept(x.Request.Header.Values("Accept"), true)
	digest := canon.DigestBytes(body)
	h := append(x.newHeader(),
		httpd.Field{Name: "Content-Type", Value: mediaType + "; charset=utf-8"},
		httpd.Field{Name: "Vary", Value: "Accept"},
		httpd.Field{Name: "X-SVC-Content-Digest", Value: digest},
		httpd.Field{Name: "ETag", Value: `"` + digest[len("sha256:"):] + `"`})
	x.send(status, append(h, more...), body)
}

// Text answers with plain text.
func (x *Exchange) Text(mediaType, body string) {
	x.send(200, append(x.newHeader(), httpd.Field{Name: "Content-Type", Value: mediaType}), []byte(body))
}

// Page answers with an HTML page whose Content-Security-Policy names the nonce.
func (x *Exchange) Page(nonce string, html []byte) {
	h := append(loopback.PageHeaders(nonce), loopback.ServiceHeaders(Interface, x.server.Version)...)
	h = x.withRequest(append(h, aboutFields...))
	x.send(200, append(h, httpd.Field{Name: "Content-Type", Value: "text/html; charset=utf-8"}), html)
}

// Document answers 200 with a document.
func (x *Exchange) Document(document any) {
	body, err := EncodeDocument(document)
	if err != nil {
		x.Fail(&catalogue.Fault{Code: catalogue.InternalError, Cause: err})
		return
	}
	x.JSON(200, body)
}

// Stream answers with an event stream, which send writes. Each write may take as long as
// writeTimeout. A stream counts as answered when it begins.
func (x *Exchange) Stream(writeTimeout time.Duration, send func(*Stream)) {
	h := append(x.newHeader(),
		httpd.Field{Name: "Content-Type", Value: "text/event-stream; charset=utf-8"},
		httpd.Field{Name: "X-Accel-Buffering", Value: "no"})
	x.countAnswer(200)
	out, err := x.w.Stream(200, h, writeTimeout)
	if err != nil { // the client left
		return
	}
	counted := &Stream{Stream: out}
	send(counted)
	x.sent = counted.sent
}

// Stream is the body of an event stream. It counts its bytes for the access log.
type Stream struct {
	*httpd.Stream
	sent int64
}

// Write sends p or fails for good.
func (s *Stream) Write(p []byte) (int, error) {
	n, err := s.Stream.Write(p)
	s.sent += int64(n)
	return n, err
}

// Fail answers with a fault.
func (x *Exchange) Fail(f *catalogue.Fault) {
	x.logFault(f)
	body, err := EncodeDocument(f.Envelope())
	if err != nil { // a stored text in the details that no document can hold
		f = &catalogue.Fault{Code: catalogue.InternalError, Cause: err}
		x.logFault(f)
		if body, err = EncodeDocument(f.Envelope()); err != nil {
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
	x.JSON(f.Entry().Status, body, more...)
}
