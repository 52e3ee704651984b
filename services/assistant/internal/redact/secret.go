package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// lastApplied is the annotation in which kubectl stores the whole object as JSON.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// maxDepth of nested annotations that hold objects with annotations.
const maxDepth = 8

var marked = regexp.MustCompile(`^\[redacted [0-9]+ bytes\]$`)

// redactionMark returns the replacement for n bytes.
func redactionMark(n int) string { return fmt.Sprintf("[redacted %d bytes]", n) }

// mayHoldSecret reports whether JSON may contain a Secret. It has no false negatives: without the word in quotes, plain
// or escaped, there is none. Letters and quotes as \u escapes are never written by an API server, so they count as a
// hit.
func mayHoldSecret(body []byte) bool {
	if bytes.Contains(body, []byte(`"Secret`)) {
		return true
	}
	for rest := body; ; {
		at := bytes.IndexByte(rest, '\\')
		if at < 0 || at+1 >= len(rest) {
			return false
		}
		rest = rest[at+1:]
		if len(rest) < 5 || rest[0] != 'u' || rest[1] != '0' || rest[2] != '0' {
			continue
		}
		if rest[3] >= '4' && rest[3] <= '7' || rest[3] == '2' && rest[4] == '2' {
			return true // \u0040 to \u007f, or a quote
		}
	}
}

// redactSecrets redacts every Secret in a JSON body of one or more documents, and returns the body unchanged if it has
// none. all means that the body consists of Secrets whatever kind it declares.
func redactSecrets(body []byte, all bool, sink CertificateSink) (out []byte, n int, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // numbers must not change
	var docs []any
	for {
		var v any
		if err := dec.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			return nil, 0, fmt.Errorf("decode the cluster's JSON: %w", err)
		}
		var k int
		v, k = secretWalk{remember: true, sink: sink}.walkSecrets(v, all, maxDepth)
		n += k
		docs = append(docs, v)
	}
	if n == 0 {
		return body, 0, nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for _, v := range docs {
		if err := enc.Encode(v); err != nil {
			return nil, 0, fmt.Errorf("encode the redacted JSON: %w", err)
		}
	}
	return buf.Bytes(), n, nil
}

// secretWalk redacts the values of Secrets. remember means that these come from a cluster: they are then searched for
// in all later texts. Values that people write into a manifest are not. sink, which may be nil, receives the
// certificates.
type secretWalk struct {
	remember bool
	sink     CertificateSink
}

// walkSecrets redacts in place a Secret, or a list of them; secret means that v is one. It returns v, or its
// replacement.
func (w secretWalk) walkSecrets(v any, secret bool, depth int) (any, int) {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		items := secret || isKind(v, "SecretList")
		secret = secret || isKind(v, "Secret")
		if secret && w.sink != nil {
			tellCertificate(v, w.sink)
		}
		for key, value := range v {
			var k int
			switch name := strings.ToLower(key); {
			case secret && (name == "data" || name == "stringdata"):
				v[key], k = w.redactValues(value, name == "data")
			case key == lastApplied:
				v[key], k = w.redactApplied(value, depth)
			case items && name == "items":
				v[key], k = w.redactItems(value, depth)
			default:
				v[key], k = w.walkSecrets(value, false, depth)
			}
			n += k
		}
	case []any:
		for i := range v {
			var k int
			v[i], k = w.walkSecrets(v[i], secret, depth)
			n += k
		}
	}
	return v, n
}

// redactItems redacts the items of a list of Secrets, which do not declare their kind.
func (w secretWalk) redactItems(v any, depth int) (any, int) {
	list, ok := v.([]any)
	if !ok {
		return w.walkSecrets(v, true, depth)
	}
	n := 0
	for i := range list {
		var k int
		list[i], k = w.walkSecrets(list[i], true, depth)
		n += k
	}
	return list, n
}

// isKind reports whether any decoder would take m for an object of the kind: some ignore the case of names.
func isKind(m map[string]any, kind string) bool {
	if m["kind"] == kind {
		return true
	}
	for key, v := range m {
		if v == kind && strings.EqualFold(key, "kind") {
			return true
		}
	}
	return false
}

// redactValues redacts the values of a Secret in data or stringData; the names stay.
func (w secretWalk) redactValues(v any, encoded bool) (any, int) {
	switch v := v.(type) {
	case nil:
		return nil, 0
	case map[string]any:
		n := 0
		for key, value := range v {
			var k int
			if text, ok := value.(string); w.remember && ok && !marked.MatchString(text) {
				seen.addSecret(key, text, encoded)
			}
			v[key], k = w.redactValues(value, encoded)
			n += k
		}
		return v, n
	case string:
		if marked.MatchString(v) {
			return v, 0
		}
		size := len(v)
		if encoded {
			if plain, err := base64.StdEncoding.DecodeString(v); err == nil {
				size = len(plain)
			}
		}
		return redactionMark(size), 1
	}
	raw, err := json.Marshal(v)
	if err != nil { // cannot happen: it was JSON
		raw = nil
	}
	return redactionMark(len(raw)), 1
}

// redactApplied redacts the object stored as text in the annotation. Text that is not JSON may contain anything.
func (w secretWalk) redactApplied(v any, depth int) (any, int) {
	text, ok := v.(string)
	if !ok {
		return w.walkSecrets(v, false, depth)
	}
	if !mayHoldSecret([]byte(text)) || marked.MatchString(text) {
		return text, 0
	}
	if depth == 0 {
		return redactionMark(len(text)), 1
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var inner any
	if err := dec.Decode(&inner); err != nil || dec.More() {
		return redactionMark(len(text)), 1
	}
	w.sink = nil // it describes the Secret's earlier state
	inner, n := w.walkSecrets(inner, false, depth-1)
	if n == 0 {
		return text, 0
	}
	var buf strings.Builder
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(inner); err != nil {
		return redactionMark(len(text)), 1
	}
	return buf.String(), n // with the line feed that kubectl writes, too
}
