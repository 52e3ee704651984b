package controltower

import (
	"fmt"
	"mime"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Metadata holds the status, request id and digest of an answer.
type Metadata struct {
	StatusCode    int
	RequestID     string
	ContentDigest string
}

// Result is a verified answer. Document is the same as Value with nothing lost;
// among the results of [Client.Runs] it is the run's own.
type Result[T any] struct {
	Value    T
	Document *canon.Object
	Metadata Metadata
}

// RequestID is the id under which the server answered.
func (r Result[T]) RequestID() string { return r.Metadata.RequestID }

// Media types of an answer.
const (
	typeJSON   = "application/json"
	typeVendor = "application/vnd.svc.control-tower.v1+json"
	typeStream = "text/event-stream"
)

var (
	requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)
	codePattern      = regexp.MustCompile(`^[a-z][a-z0-9_]{2,63}$`)
)

// mediaType is the media type of an answer, if it is one of these in UTF-8.
func (x *exchange) mediaType(allowed ...string) (string, error) {
	if values := x.values("Content-Type"); len(values) == 1 {
		name, params, err := mime.ParseMediaType(values[0])
		charset, stated := params["charset"]
		if err == nil && slices.Contains(allowed, name) && (len(params) == 0 || len(params) == 1 && stated && strings.EqualFold(charset, "utf-8")) {
			return name, nil
		}
	}
	return "", &ProtocolError{Detail: fmt.Sprintf("the answer (%d) is not %s in UTF-8; it does not come from the evidence API or was refused before it",
		x.StatusCode, strings.Join(allowed, " or "))}
}

func (x *exchange) requestID() (string, error) {
	if values := x.values("X-Request-ID"); len(values) == 1 && requestIDPattern.MatchString(values[0]) {
		return values[0], nil
	}
	return "", &ProtocolError{Detail: "the answer carries no well-formed X-Request-ID"}
}

// documentReply is a verified answer whose kind and identity are being checked.
type documentReply struct {
	meta Metadata
	doc  *canon.Object
	c1   []byte
}

func (a *documentReply) broken(format string, args ...any) error {
	return &ProtocolError{Detail: fmt.Sprintf(format, args...), RequestID: a.meta.RequestID}
}

func (a *documentReply) tampered(format string, args ...any) error {
	return &IntegrityError{&ProtocolError{Detail: fmt.Sprintf(format, args...), RequestID: a.meta.RequestID}}
}

// readAnswer reads and verifies a JSON answer. An error envelope is an *APIError.
func readAnswer(x *exchange) (*documentReply, error) {
	if _, err := x.mediaType(typeJSON, typeVendor); err != nil {
		return nil, err
	}
	id, err := x.requestID()
	if err != nil {
		return nil, err
	}
	a := &documentReply{meta: Metadata{StatusCode: x.StatusCode, RequestID: id}}
	body, err := x.body()
	if err != nil {
		return nil, err
	}
	digests := x.values("X-SVC-Content-Digest")
	if len(digests) != 1 || !spine.IsDigest(digests[0]) {
		return nil, a.broken("the answer carries no well-formed X-SVC-Content-Digest")
	}
	a.meta.ContentDigest = digests[0]
	value, err := canon.Parse(body, canon.ObjectRoot())
	if err != nil {
		return nil, a.broken("the answer is no acceptable JSON: %v", err)
	}
	a.doc, _ = value.(*canon.Object)
	if a.c1, err = canon.C1(a.doc); err != nil {
		return nil, a.broken("the answer is no acceptable JSON: %v", err)
	}
	if canon.DigestBytes(a.c1) != digests[0] {
		return nil, a.tampered("the answer does not have the digest its header states")
	}
	switch {
	case x.StatusCode >= 400:
		return nil, a.apiError(x)
	case x.StatusCode != 200:
		return nil, a.broken("the answer has status %d, which the API never gives", x.StatusCode)
	}
	return a, nil
}

func (a *documentReply) apiError(x *exchange) error {
	var e document.Error
	inner, _ := a.doc.Get("error")
	body, _ := inner.(*canon.Object)
	_, hasDetails := body.Get("details")
	keys := 3
	if hasDetails {
		keys = 4
	}
	if !a.hasKeys(a.doc, 5, "api_version", "schema_version", "kind", "ok", "error") || !a.hasKeys(body, keys, "code", "message", "retryable") ||
		a.into(&e, a.doc, a.c1) != nil || e.APIVersion != document.APIVersion || e.SchemaVersion != spine.SchemaVersion ||
		e.Kind != document.KindError || e.OK || !codePattern.MatchString(e.Error.Code) || e.Error.Message == "" ||
		hasDetails && e.Error.Details == nil {
		return a.broken("the answer has status %d and is no error envelope", x.StatusCode)
	}
	return &APIError{
		StatusCode: x.StatusCode, Code: e.Error.Code, Message: e.Error.Message, Retryable: e.Error.Retryable,
		Details: e.Error.Details, RequestID: a.meta.RequestID, RetryAfter: retryAfter(x),
	}
}

// hasKeys reports whether an object has exactly n keys, including these, none of
// them null.
func (a *documentReply) hasKeys(o *canon.Object, n int, keys ...string) bool {
	if o.Len() != n {
		return false
	}
	for _, k := range keys {
		if v, _ := o.Get(k); v == nil {
			return false
		}
	}
	return true
}

func retryAfter(x *exchange) int {
	if values := x.values("Retry-After"); len(values) == 1 && len(values[0]) <= 9 {
		if n, err := strconv.ParseUint(values[0], 10, 31); err == nil {
			return int(n)
		}
	}
	return -1
}

// ofKind checks the fields that every document has; head reports whether it
// begins like an answer about one object.
func (a *documentReply) ofKind(kind string, head bool) error {
	if a.text("kind") != kind || a.text("schema_version") != spine.SchemaVersion {
		return a.broken("the answer is not %s of schema version %s", kind, spine.SchemaVersion)
	}
	if ok, _ := a.doc.Get("ok"); head && (a.text("api_version") != document.APIVersion || ok != true) {
		return a.broken("the answer is not a success of API version %s", document.APIVersion)
	}
	return nil
}

// at returns the value at a path of keys, nil if there is none.
func (a *documentReply) at(path ...string) canon.Value {
	var v canon.Value = a.doc
	for _, key := range path {
		o, _ := v.(*canon.Object)
		v, _ = o.Get(key)
	}
	return v
}

func (a *documentReply) text(path ...string) string {
	s, _ := a.at(path...).(string)
	return s
}

// same checks that the answer is about the requested object.
func (a *documentReply) same(what, asked string, path ...string) error {
	if a.at(path...) != canon.Value(asked) {
		return a.broken("the answer is about another %s than the one requested", what)
	}
	return nil
}

// digest checks a digest inside the answer against the value it was computed
// over.
func (a *documentReply) digest(of canon.Value, path ...string) error {
	if _, ok := of.(*canon.Object); !ok {
		return a.broken("the answer holds no value for its %s", path[len(path)-1])
	}
	if canon.Digest(of) != a.text(path...) {
		return a.tampered("%s is not the digest of its value", path[len(path)-1])
	}
	return nil
}
