package redact

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxBody limits the bytes read of one response: a list page of 500 objects of the largest size that an API server
// accepts.
const maxBody = 512 << 20

// Transport redacts the values of Secrets in every JSON response. It requests JSON whatever the caller's Accept header,
// and responses in another encoding are errors: a body that cannot be parsed does not get past. So are watches, whose
// stream has no end, and writes to Secrets: the values read from one are redacted, and writing them back would destroy
// it. count, which may be nil, receives the number of redacted values.
func Transport(next http.RoundTripper, count func(kind string, n int)) http.RoundTripper {
	if count == nil {
		count = func(string, int) {}
	}
	return &transport{next, count}
}

type transport struct {
	next  http.RoundTripper
	count func(string, int)
}

// WrappedRoundTripper gives client-go access to the underlying transport.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ofSecrets := ofSecrets(r.URL.Path)
	if err := checkAllowed(r, ofSecrets); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a transport must always close the body
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Accept", onlyJSON(r.Header.Get("Accept")))
	r.Header.Del("Accept-Encoding") // so that the underlying transport decompresses
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := t.clean(resp, ofSecrets, sinkOf(r.Context())); err != nil {
		_ = resp.Body.Close() // the response is abandoned
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	return resp, nil
}

var version = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)

// ofSecrets reports whether a path is of the resource secrets; namespaces and objects may have that name too. A proxy
// may precede the API, so each possible position of its root counts, and a path without one is not trusted.
func ofSecrets(of string) bool {
	parts := strings.Split(strings.Trim(path.Clean("/"+of), "/"), "/")
	rooted := false
	for i, part := range parts {
		below := parts[i+1:]
		if part == "apis" && len(below) > 0 {
			below = below[1:] // the group
		}
		if part != "api" && part != "apis" || len(below) == 0 || !version.MatchString(below[0]) {
			continue
		}
		rooted = true
		if below = below[1:]; len(below) > 0 && below[0] == "watch" {
			below = below[1:]
		}
		if len(below) > 2 && below[0] == "namespaces" {
			below = below[2:]
		}
		if len(below) > 0 && below[0] == "secrets" {
			return true
		}
	}
	return !rooted && slices.Contains(parts, "secrets")
}

func checkAllowed(r *http.Request, ofSecrets bool) error {
	query := r.URL.Query()
	if watch := query.Get("watch"); r.Method == http.MethodGet && (watch == "1" || strings.EqualFold(watch, "true")) {
		return fmt.Errorf("%s %s: watches are not redacted, so there are none", r.Method, r.URL.Path)
	}
	if ofSecrets && r.Method != http.MethodGet && r.Method != http.MethodHead && query.Get("dryRun") != "All" {
		return fmt.Errorf("%s %s: secrets are read here, never written", r.Method, r.URL.Path)
	}
	return nil
}

// onlyJSON keeps of an Accept header the JSON types, including tables and partial objects, and the wildcard with which
// logs are requested.
func onlyJSON(accept string) string {
	var kept []string
	for part := range strings.SplitSeq(accept, ",") {
		kind, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		if kind == "application/json" || kind == "*/*" {
			kept = append(kept, strings.TrimSpace(part))
		}
	}
	if !slices.ContainsFunc(kept, func(s string) bool { return strings.HasPrefix(s, "application/json") }) {
		kept = append([]string{"application/json"}, kept...)
	}
	return strings.Join(kept, ", ")
}

// clean replaces the response's body by the redacted one. sink, which may be nil, receives the certificates in it.
func (t *transport) clean(resp *http.Response, ofSecrets bool, sink CertificateSink) error {
	if resp.Body == nil || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified || resp.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	isText := err == nil && (kind == "text/plain" || kind == "text/html")
	isJSON := err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
	switch {
	case isJSON:
	case isText && !ofSecrets:
		return nil // logs, and responses of proxies
	case resp.ContentLength == 0:
		return nil
	default:
		return fmt.Errorf("the cluster answers %s in %q, not in JSON", resp.Status, resp.Header.Get("Content-Type"))
	}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return fmt.Errorf("the cluster sent the response with content encoding %s, which was not requested", enc)
	}
	body, err := readAll(resp)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(body)) > 0 && (ofSecrets || mayHoldSecret(body)) {
		var n int
		if body, n, err = redactSecrets(body, ofSecrets, sink); err != nil {
			return err
		}
		if n > 0 {
			t.count("secret", n)
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Del("Content-Length") // the decoder relies on the body
	return nil
}

// readAll reads the whole body, closes it, and fails if it is longer than any list.
func readAll(resp *http.Response) ([]byte, error) {
	var buf bytes.Buffer
	if resp.ContentLength > 0 && resp.ContentLength <= maxBody {
		buf.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the cluster's answer: %w", err)
	}
	if n > maxBody {
		return nil, fmt.Errorf("the cluster's response is longer than %d bytes; request less", maxBody)
	}
	return buf.Bytes(), resp.Body.Close()
}
