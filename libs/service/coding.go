package service

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/mlp-platform/platform/libs/problem"
)

// acceptedCodings are the content codings of a request body, as a 415 lists them (RFC 9110, section 15.5.16).
const acceptedCodings = "gzip, deflate, identity"

// DecodeBody decodes the content coding of the request's body as it is read, by any reader: it returns at most limit
// bytes, which a small body could otherwise exceed a thousand times. An unknown coding, or an invalid body, is a
// problem that the first read returns: refusals that need no body come before it.
func DecodeBody(w http.ResponseWriter, r *http.Request, limit int64) {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(r.Header["Content-Encoding"], ",")))
	if coding == "" || coding == "identity" || r.ContentLength == 0 {
		return
	}
	r.Body = http.MaxBytesReader(w, &codedBody{ReadCloser: r.Body, header: w.Header(), coding: coding}, limit)
	r.Header.Del("Content-Encoding")
	r.Header.Del("Content-Length")
	r.ContentLength = -1 // not known before it is decoded
}

// LimitBody is http.MaxBytesReader and DecodeBody over the request's body, for a handler without a Server.
func LimitBody(w http.ResponseWriter, r *http.Request, limit int64) {
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	DecodeBody(w, r, limit)
}

// codedBody decodes a body from its first read on.
type codedBody struct {
	io.ReadCloser // of the request; closing it closes the body
	header        http.Header
	coding        string
	plain         io.Reader // nil before the first read
	err           error     // the first one
}

func (b *codedBody) Read(p []byte) (int, error) {
	if b.err == nil && b.plain == nil {
		b.plain, b.err = b.decoder()
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.plain.Read(p)
	if err != nil {
		b.err = b.explain(err)
	}
	return n, b.err
}

func (b *codedBody) decoder() (r io.Reader, err error) {
	switch b.coding {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(b.ReadCloser)
	case "deflate": // which is the zlib format, RFC 9110, section 8.4.1.2
		r, err = zlib.NewReader(b.ReadCloser)
	default:
		b.header.Set("Accept-Encoding", acceptedCodings)
		return nil, problem.UnsupportedMedia.New(fmt.Sprintf("The Content-Encoding %q is not read here; send the body in one of: %s.", problem.Shorten(b.coding), acceptedCodings))
	}
	if err != nil {
		return nil, b.explain(err)
	}
	return r, nil
}

// explain distinguishes a body that does not match its header from one that could not be read.
func (b *codedBody) explain(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case err == io.EOF && b.plain != nil, errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &tooLarge):
		return err
	}
	return problem.BadRequest.New(fmt.Sprintf("The Content-Encoding is %s, and the body is incomplete or not in this coding.", b.coding)).WithCause(err)
}
