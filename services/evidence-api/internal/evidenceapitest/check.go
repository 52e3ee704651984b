package evidenceapitest

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/openapi"
	"github.com/mlp-platform/platform/services/evidence-api/internal/route"
)

// fixed are the fields that every parsed answer has, with these values.
var fixed = map[string]string{
	"Cache-Control":                "no-store",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Permissions-Policy":           "camera=(), microphone=(), geolocation=(), payment=()",
	"Server":                       "svc-control-tower/0.1",
	"X-SVC-Service":                "svc-control-tower",
	"X-SVC-Service-Version":        "1.2.3-test",
	"X-SVC-API-Version":            "v1",
	"X-SVC-Read-Only":              "true",
}

const lockedDown = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var requestID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)

// checkResponse checks an answer against the promises common to all answers.
func checkResponse(t testing.TB, q Request, r *Response) {
	t.Helper()
	contentType := r.Header.Get("Content-Type")
	switch r.Status {
	case 414, 431, 505: // the parser's own
		if contentType != "text/plain; charset=utf-8" || !requestID.MatchString(r.Header.Get("X-Request-ID")) {
			t.Errorf(`%d: %v; want contentType == "text/plain; charset=utf-8" && requestID.MatchString(r.Header.Get("X-Request-ID"))`, r.Status, r.Header)
		}
		return
	}
	CheckFields(t, r)
	path, _, _ := strings.Cut(q.Target, "?")
	html := strings.HasPrefix(contentType, "text/html")
	if csp := r.Header.Get("Content-Security-Policy"); html && !strings.HasPrefix(csp, lockedDown+"; style-src 'nonce-") || !html && csp != lockedDown {
		t.Errorf(`%s: policy %q; want (!html || strings.HasPrefix(csp, lockedDown+"; style-src 'nonce-")) && (html || csp == lockedDown)`, q.Target, csp)
	}
	if strings.Contains(contentType, "json") {
		checkJSON(t, q, r)
	} else if r.Header.Get("ETag")+r.Header.Get("X-SVC-Content-Digest")+r.Header.Get("Vary") != "" {
		t.Errorf(`%s: the fields of a document on %s; want r.Header.Get("ETag") + r.Header.Get("X-SVC-Content-Digest") + r.Header.Get("Vary") == ""`, q.Target, contentType)
	}
	if retry := r.Header.Get("Retry-After"); (retry != "") != isRetryable(r) {
		t.Errorf(`%s: Retry-After %q on %s; want (retry != "") == isRetryable(r)`, q.Target, retry, r.Code())
	}
	if op, _ := route.Match(path); op != nil {
		if err := checkDocumented(op, q, r); err != nil {
			t.Errorf("%s %s: %v: %.300s", q.Method, q.Target, err, r.Body)
		}
	}
}

// CheckFields checks the headers that every parsed answer has.
func CheckFields(t testing.TB, r *Response) {
	t.Helper()
	for name, value := range fixed {
		if got := r.Header.Values(name); len(got) != 1 || got[0] != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	if got := r.Header.Values("X-Request-ID"); len(got) != 1 || !requestID.MatchString(got[0]) {
		t.Errorf("X-Request-ID %q; want len(got) == 1 && requestID.MatchString(got[0])", got)
	}
	for _, never := range []string{"Transfer-Encoding", "Content-Encoding", "Set-Cookie", "Location", "Accept-Ranges", "Access-Control-Allow-Origin"} {
		if r.Header.Get(never) != "" {
			t.Errorf("%s was sent", never)
		}
	}
}

func isRetryable(r *Response) bool {
	e, _ := catalogue.Lookup(catalogue.Code(r.Code()))
	return e.Retryable
}

func checkJSON(t testing.TB, q Request, r *Response) {
	t.Helper()
	digest := r.Header.Get("X-SVC-Content-Digest")
	if r.Header.Get("ETag") != `"`+strings.TrimPrefix(digest, "sha256:")+`"` || r.Header.Get("Vary") != "Accept" {
		t.Errorf("%s: digest %q, ETag %q, Vary %q; want r.Header.Get(\"ETag\") == `\"` + strings.TrimPrefix(digest, \"sha256:\") + `\"` && r.Header.Get(\"Vary\") == \"Accept\"", q.Target, digest, r.Header.Get("ETag"), r.Header.Get("Vary"))
	}
	if q.Method == "HEAD" {
		if len(r.Body) > 0 {
			t.Errorf("HEAD %s has a body; want len(r.Body) <= 0", q.Target)
		}
		return
	}
	doc := r.JSON()
	if c1, err := canon.C1(doc); err != nil || !bytes.Equal(c1, r.Body) || canon.Digest(doc) != digest {
		t.Errorf("%s: the body is not canonical, or not what the digest is of: %v; want bytes.Equal(c1, r.Body) && canon.Digest(doc) == digest", q.Target, err)
	}
	if schema := schemaOf(r); schema != "" {
		if err := schematest.ValidateBytes(t, schema, r.Body); err != nil {
			t.Errorf("%s: %v", q.Target, err)
		}
	}
	if e, ok := catalogue.Lookup(catalogue.Code(r.Code())); r.Status >= 400 && (!ok || e.Status != r.Status) {
		t.Errorf("%s: %d with the code %q; want (r.Status < 400 || !!ok || e.Status != r.Status)", q.Target, r.Status, r.Code())
	}
}

// schemaOf finds the schema of a document by its kind.
func schemaOf(r *Response) string {
	// The OpenAPI document has none.
	kind := strings.Trim(r.At("kind"), `"`)
	return strings.TrimPrefix(kind, "svc-")
}

// document is the OpenAPI document, as far as answers are held against it.
type document struct {
	root    map[string]any
	schemas *jsonschema.Compiler
	mu      sync.Mutex // guards made
	made    map[string]*jsonschema.Schema
}

const base = "https://evidenceapitest.invalid/openapi.json"

var loaded = sync.OnceValues(func() (*document, error) {
	text, err := openapi.Document("evidenceapitest")
	if err != nil {
		return nil, err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource(base, v); err != nil {
		return nil, err
	}
	return &document{root: v.(map[string]any), schemas: c, made: map[string]*jsonschema.Schema{}}, nil
})

// at follows keys, and references on the way.
func (d *document) at(v any, keys ...string) map[string]any {
	m, _ := v.(map[string]any)
	for _, k := range keys {
		m, _ = m[k].(map[string]any)
		if ref, ok := m["$ref"].(string); ok && !strings.HasPrefix(ref, "#/components/schemas/") {
			m = d.at(d.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
	}
	return m
}

func (d *document) schema(ref string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made[ref] == nil {
		s, err := d.schemas.Compile(base + ref)
		if err != nil {
			return nil, err
		}
		d.made[ref] = s
	}
	return d.made[ref], nil
}

// checkDocumented returns where an answer departs from the OpenAPI document of its endpoint.
func checkDocumented(op *route.Op, q Request, r *Response) error {
	d, err := loaded()
	if err != nil {
		return err
	}
	answer := d.at(d.root, "paths", op.Path, strings.ToLower(op.Method), "responses", strconv.Itoa(r.Status))
	if answer == nil {
		return fmt.Errorf("the status %d is not documented", r.Status)
	}
	if code := r.Code(); r.Status >= 400 && q.Method != "HEAD" {
		codes, _ := answer["x-svc-codes"].([]any)
		if !slices.Contains(codes, any(code)) {
			return fmt.Errorf("the code %q is not documented", code)
		}
	}
	headers := d.at(answer, "headers")
	for name := range headers {
		h := d.at(headers, name)
		if h["required"] != true {
			continue
		}
		pattern := d.at(h, "schema")["pattern"].(string)
		if value := r.Header.Get(name); !regexp.MustCompile(pattern).MatchString(value) {
			return fmt.Errorf("%s is %q", name, value)
		}
	}
	mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	content := d.at(answer, "content", mediaType)
	if content == nil {
		return fmt.Errorf("the media type %q is not documented", mediaType)
	}
	ref, _ := d.at(content, "schema")["$ref"].(string)
	if ref == "" || q.Method == "HEAD" {
		return nil
	}
	s, err := d.schema(ref)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(r.Body))
	if err != nil {
		return err
	}
	return s.Validate(v)
}
