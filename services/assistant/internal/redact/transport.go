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

// maxBody is the most that is read of one answer: a list page of 500 objects of the largest size an API server takes.
const maxBody = 512 << 20

// Transport redacts the values of Secrets in every JSON answer. It asks for JSON whatever the request says, and
// answers in another encoding are errors: what cannot be looked into does not get past. So are watches, whose stream
// has no end to look for, and writes to Secrets: what was read of one is redacted, and writing it back would destroy it.
// count, which may be nil, hears how many values were taken out.
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

// WrappedRoundTripper lets client-go find the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ofSecrets := ofSecrets(r.URL.Path)
	if err := checkAllowed(r, ofSecrets); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a transport closes the body on every way out
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Accept", onlyJSON(r.Header.Get("Accept")))
	r.Header.Del("Accept-Encoding") // so that the transport below unpacks
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := t.clean(resp, ofSecrets, sinkOf(r.Context())); err != nil {
		_ = resp.Body.Close() // the answer is given up
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	return resp, nil
}

var version = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)

// ofSecrets reports whether a path is of the resource secrets; namespaces and objects may have that name too. A proxy may
// stand before the API, so each place where its root can be counts, and a path without one is not trusted.
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

// onlyJSON leaves of an Accept header what is JSON, tables and partial objects among it, and the wildcard that logs
// are asked for with.
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

// clean puts the redacted body in the place of the response's own. sink, which may be nil, hears of the certificates in it.
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
		return nil // logs, and what proxies answer
	case resp.ContentLength == 0:
		return nil
	default:
		return fmt.Errorf("the cluster answers %s in %q, not in JSON", resp.Status, resp.Header.Get("Content-Type"))
	}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return fmt.Errorf("the cluster answers packed as %s, which was not asked for", enc)
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
	resp.Header.Del("Content-Length") // the decoder goes by the body
	return nil
}

// readAll reads the body in one piece, closes it, and gives up where it is longer than any list.
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
		return nil, fmt.Errorf("the cluster's answer is longer than %d bytes; ask for less", maxBody)
	}
	return buf.Bytes(), resp.Body.Close()
}
