package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Limits of bodies kept in memory to be rewritten.
type limits struct {
	body   int64 // decoded bytes of one body; larger ones pass as they are
	free   int64 // bytes of one body that count against nothing
	budget int64 // bytes of all larger bodies together; others wait
}

var defaultLimits = limits{body: 8 << 20, free: 256 << 10, budget: 128 << 20}

// slack is how much larger than its content a compressed body may be.
const slack = 64 << 10

// rewriter changes the links in a body and returns the rest unchanged.
type rewriter func(body []byte, links *linkMap) []byte

// chooseRewriter returns nil for types whose links are not rewritten.
func (x *exchange) chooseRewriter(h http.Header) rewriter {
	switch media := mediaType(h); {
	case media == "text/html" || media == "application/xhtml+xml":
		return func(body []byte, links *linkMap) []byte { return rewriteHTML(body, links, x.origin.tools) }
	case media == "text/css":
		return rewriteCSS
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		if isStream(h) {
			return nil
		}
		return rewriteJSON
	}
	return nil
}

// rewriteResponse rewrites the links of the answer's body where it can, and says so where it should but cannot.
func (x *exchange) rewriteResponse(res *http.Response) error {
	h := res.Header
	if res.StatusCode == http.StatusNotModified {
		if tag := h.Get("Etag"); x.stripped[tag] {
			h.Set("Etag", x.markTag(tag))
		}
		return nil
	}
	rewrite := x.chooseRewriter(h)
	if rewrite == nil {
		return nil
	}
	h.Add("Vary", "X-PLATFORM-Rewrite")
	switch {
	case x.raw:
		h.Set(headerRewrite, "off")
		return nil
	case res.StatusCode == http.StatusPartialContent, !decodable(h):
		h.Set(headerRewrite, "skipped")
		return nil
	}
	if x.in.Method == http.MethodHead || res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusResetContent {
		// The length of the GET response is known only once it is rewritten.
		h.Del("Content-Length")
		res.ContentLength = -1
		x.markBody(h)
		return nil
	}
	return x.rewriteBody(res, rewrite)
}

func (x *exchange) rewriteBody(res *http.Response, rewrite rewriter) error {
	h := res.Header
	b, err := x.readBody(res)
	if err != nil {
		return err
	}
	if b.plain == nil {
		res.Body = b.rest
		h.Set(headerRewrite, "skipped")
		return nil
	}
	x.markBody(h)
	out := b.sent
	if x.links == nil {
		x.links = x.newLinks()
	}
	if changed := rewrite(b.plain, x.links); !bytes.Equal(changed, b.plain) {
		for _, digest := range []string{"Content-Md5", "Digest", "Content-Digest", "Repr-Digest"} {
			h.Del(digest)
		}
		out = changed
		if b.compressed {
			if out, err = compress(changed); err != nil {
				return err
			}
		}
	}
	res.Body = readCloser{bytes.NewReader(out), b.rest}
	res.ContentLength, res.TransferEncoding = int64(len(out)), nil
	h.Set("Content-Length", strconv.Itoa(len(out)))
	return nil
}

// loaded is a body in memory.
type loaded struct {
	plain      []byte // decoded; nil if the body is too large or broken
	sent       []byte // as the service sent it
	compressed bool
	rest       io.ReadCloser // closes the service's body; without plain it also gives the whole body, as sent
}

// readBody reads a body up to the limit.
func (x *exchange) readBody(res *http.Response) (loaded, error) {
	limit := x.proxy.limits
	ctx := res.Request.Context()
	b := loaded{compressed: contentEncoding(res.Header) == "gzip", rest: res.Body}
	held := &heldMemory{budget: x.proxy.buffers, weight: limit.body}
	source := &meteredReader{ctx: ctx, r: res.Body, free: limit.free, held: held}
	var sent bytes.Buffer
	if n := res.ContentLength; n > 0 && n <= limit.free {
		sent.Grow(int(n) + bytes.MinRead)
	}
	whole := readCloser{io.MultiReader(&sent, res.Body), closers{res.Body, held}}
	b.rest = whole
	if !b.compressed {
		n, err := io.Copy(&sent, io.LimitReader(source, limit.body+1))
		if err != nil {
			held.Close()
			return loaded{}, err
		}
		if n <= limit.body {
			b.plain, b.sent = nonNil(sent.Bytes()), sent.Bytes()
		}
		return b, nil
	}
	if res.ContentLength > limit.body+slack {
		return b, nil
	}
	var plain bytes.Buffer
	err := decompress(&plain, io.TeeReader(io.LimitReader(source, limit.body+slack), &sent), limit.body+1)
	if source.err != nil {
		held.Close()
		return loaded{}, source.err
	}
	if err == nil && int64(plain.Len()) <= limit.body {
		b.plain, b.sent = nonNil(plain.Bytes()), sent.Bytes()
	}
	return b, nil // a body that is not gzip passes unchanged, as the service sent it
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}

// decompress copies at most limit decoded bytes, and reads the source to its end if it can.
func decompress(dst *bytes.Buffer, src io.Reader, limit int64) error {
	z := gzipReaders.Get().(*gzip.Reader)
	defer gzipReaders.Put(z)
	if err := z.Reset(src); err != nil {
		return err
	}
	_, err := io.Copy(dst, io.LimitReader(z, limit))
	return err
}

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is valid
	return w
}}

func compress(b []byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(z)
	z.Reset(&out)
	if _, err := z.Write(b); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// heldMemory is a body's share of the budget.
type heldMemory struct {
	budget *semaphore.Weighted
	weight int64
	mu     sync.Mutex // guards held
	held   bool
}

func (m *heldMemory) acquire(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held {
		return nil
	}
	if err := m.budget.Acquire(ctx, m.weight); err != nil {
		return err
	}
	m.held = true
	return nil
}

// Close gives the share back.
func (m *heldMemory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held {
		m.held = false
		m.budget.Release(m.weight)
	}
	return nil
}

// meteredReader takes a share of the budget once a body turns out to be large. It keeps the source's error apart from
// those of the decoder.
type meteredReader struct {
	ctx  context.Context
	r    io.Reader
	free int64
	held *heldMemory
	err  error
}

func (m *meteredReader) Read(p []byte) (int, error) {
	if m.free <= 0 {
		if err := m.held.acquire(m.ctx); err != nil {
			m.err = err
			return 0, err
		}
	}
	n, err := m.r.Read(p)
	m.free -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}

// readCloser reads from one and closes another.
type readCloser struct {
	io.Reader
	io.Closer
}

type closers []io.Closer

func (cs closers) Close() error {
	var err error
	for _, c := range cs {
		err = errors.Join(err, c.Close())
	}
	return err
}

// contentEncoding returns "" for a plain body.
func contentEncoding(h http.Header) string {
	switch e := strings.ToLower(strings.TrimSpace(strings.Join(h["Content-Encoding"], ","))); e {
	case "identity":
		return ""
	case "x-gzip":
		return "gzip"
	default:
		return e
	}
}

// wideCharsets are encodings in which ASCII characters are not themselves.
var wideCharsets = []string{"utf-16", "utf-32", "utf-7", "iso-2022", "hz-", "ucs-", "iso-10646", "unicode", "csunicode", "csutf"}

// decodable reports whether the links of a body can be found.
func decodable(h http.Header) bool {
	if e := contentEncoding(h); e != "" && e != "gzip" {
		return false
	}
	_, parameters, _ := strings.Cut(strings.ToLower(h.Get("Content-Type")), ";")
	_, charset, _ := strings.Cut(parameters, "charset=")
	charset = strings.Trim(charset, " \"'")
	for _, wide := range wideCharsets {
		if strings.HasPrefix(charset, wide) {
			return false
		}
	}
	return true
}

// markBody sets the headers of a body that is rewritten, or would be for GET.
func (x *exchange) markBody(h http.Header) {
	h.Del("Accept-Ranges") // ranges would refer to the service's own bytes
	if tag := h.Get("Etag"); tag != "" {
		h.Set("Etag", x.markTag(tag))
	}
}

// tagMark parts a service's entity tag from what marks it as that of the rewritten body.
const tagMark = "~rw-"

// markTag derives the tag of the rewritten body from the service's own. It changes when links are rewritten
// differently.
func (x *exchange) markTag(tag string) string {
	if !strings.HasSuffix(tag, `"`) {
		return tag
	}
	return strings.TrimSuffix(tag, `"`) + tagMark + x.fingerprint() + `"`
}

// rewriteVersion changes when the same links become others.
const rewriteVersion = "1"

// fingerprint returns a value that changes when links are rewritten differently.
func (x *exchange) fingerprint() string {
	if x.links == nil {
		x.links = x.newLinks()
	}
	hash := sha256.New()
	for _, at := range append([]place{{x.links.scheme, x.links.base, x.links.own}, {rewriteVersion, strconv.FormatBool(x.origin.tools), ""}}, x.links.places...) {
		_, _ = io.WriteString(hash, at.origin+"\x00"+at.base+"\x00"+string(at.service)+"\x00")
	}
	return hex.EncodeToString(hash.Sum(nil)[:4])
}

// translateValidators gives the service back the tags that are its own.
func (x *exchange) translateValidators(h http.Header) {
	if x.raw {
		return
	}
	for _, name := range []string{"If-None-Match", "If-Match"} {
		if values := h[name]; len(values) > 0 && strings.Contains(strings.Join(values, ","), tagMark) {
			x.stripTags(h, name)
		}
	}
	if strings.Contains(h.Get("If-Range"), tagMark) {
		h.Del("If-Range") // a part of the service's bytes does not continue the rewritten ones
		h.Del("Range")
	}
}

func (x *exchange) stripTags(h http.Header, name string) {
	mark := tagMark + x.fingerprint() + `"`
	var tags []string
	for tag := range strings.SplitSeq(strings.Join(h[name], ","), ",") {
		tag = strings.TrimSpace(tag)
		own, marked := strings.CutSuffix(tag, mark)
		switch {
		case marked:
			if x.stripped == nil {
				x.stripped = map[string]bool{}
			}
			own += `"`
			x.stripped[own] = true
			tags = append(tags, own)
		case !strings.Contains(tag, tagMark): // those of another fingerprint no longer match
			tags = append(tags, tag)
		}
	}
	if len(tags) == 0 && name == "If-Match" {
		tags = []string{`"` + tagMark + `"`} // without any, the condition would hold
	}
	if h.Del(name); len(tags) > 0 {
		h.Set(name, strings.Join(tags, ", "))
	}
}
