package route

import (
	"strings"

	"github.com/mlp-platform/platform/services/evidence-api/internal/query"
)

// fixed are the endpoints whose path has no id, by path.
var fixed = func() map[string]string {
	m := map[string]string{}
	for _, o := range table {
		if !o.hasID() {
			m[o.Path] = o.ID
		}
	}
	return m
}()

func (o *Op) hasID() bool { return strings.Contains(o.Path, "{") }

// Negotiates reports whether the endpoint checks the Accept header.
func (o *Op) Negotiates() bool { return strings.HasPrefix(o.Path, Prefix) }

// resources maps the prefix of an id to the endpoint that reads it.
var resources = []struct{ prefix, op string }{
	{Prefix + "runs/", Run},
	{Prefix + "work-units/", WorkUnit},
	{Prefix + "projects/", Project},
	{Prefix + "connections/", Connection},
}

// parts are the words that may follow a run's id. An id that ends in one of them is
// reached by writing its last slash as %2F.
var parts = []struct{ suffix, op string }{
	{"/attempts", RunAttempts},
	{"/evidence", RunEvidence},
	{"/decisions", ""}, // planned, and not there
}

// Match returns the endpoint of a raw path and the id in it. The path is not cleaned: the
// id is its text, decoded once.
func Match(path string) (op *Op, id string) {
	if name, ok := fixed[path]; ok {
		return byID[name], ""
	}
	for _, r := range resources {
		rest, ok := strings.CutPrefix(path, r.prefix)
		if !ok || rest == "" {
			continue
		}
		name := r.op
		if name == Run {
			for _, p := range parts {
				if head, ok := strings.CutSuffix(rest, p.suffix); ok && head != "" {
					rest, name = head, p.op
					break
				}
			}
		}
		if name == "" {
			return nil, ""
		}
		return byID[name], decodeSegment(rest)
	}
	if rest, ok := strings.CutPrefix(path, Prefix+"events/"); ok {
		if id, ok := strings.CutSuffix(rest, "/proof"); ok && id != "" {
			return byID[Proof], decodeSegment(id)
		}
	}
	return nil, ""
}

// decodeSegment decodes the escapes of an id. If one is malformed it returns the raw text,
// which is no identifier because of its "%", so the resource is not found.
func decodeSegment(raw string) string {
	if !strings.Contains(raw, "%") {
		return raw
	}
	b := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '%' {
			b = append(b, raw[i])
			continue
		}
		c, ok := query.Escape(raw[i:])
		if !ok {
			return raw
		}
		b = append(b, c)
		i += 2
	}
	return string(b)
}
