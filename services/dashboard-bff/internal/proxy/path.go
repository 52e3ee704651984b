package proxy

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// root is where proxied paths begin, on both origins.
const root = "/api/proxy/"

// proxied are the services of the contract, in the order in which an address that two of them share is assigned.
var proxied = [...]upstream.Service{
	upstream.Tracker, upstream.Orchestrator, upstream.Serving, upstream.ServingDashboard,
	upstream.MetricsStore, upstream.Dashboards, upstream.ControlPlane,
}

// prefix returns where a service's paths begin, without the final slash.
func prefix(s upstream.Service) string { return root + string(s) }

// parseService finds a proxied service by its name.
func parseService(name string) (upstream.Service, error) {
	for _, s := range proxied {
		if string(s) == name {
			return s, nil
		}
	}
	return "", fault.UnknownService.New(fmt.Sprintf("There is no service %.60q behind the proxy; it is one of %s.", name, listNames()))
}

func listNames() string {
	names := make([]string, len(proxied))
	for i, s := range proxied {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// splitPath cuts an escaped path below root into the service and the service's own path.
func splitPath(escaped string) (upstream.Service, string, error) {
	rest, found := strings.CutPrefix(escaped, root)
	if !found {
		return "", "", fault.NotFound.New("Proxied paths begin with " + root + " and a service.")
	}
	name, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		name, path = rest[:i], rest[i:]
	}
	service, err := parseService(name)
	return service, path, err
}

// decodings is how often a path is decoded to check every possible result: once by the service, and once more by a
// service behind that or by a careless handler.
const decodings = 2

// checkPath refuses an escaped path that a service could read as another one: dot segments, backslashes, control
// characters and a leading //, raw and in every decoding. The path itself is forwarded as it came.
func checkPath(escaped string) error {
	text := escaped
	for level := 0; ; level++ {
		if what := findHazard(text); what != "" {
			if level > 0 {
				what += ", percent-encoded"
			}
			return fault.BadProxyPath.New("The path holds " + what + "; send the path as the service itself writes it.")
		}
		next := decodeOnce(text)
		if level == decodings || next == text {
			return nil
		}
		text = next
	}
}

// findHazard names what is wrong with a path at one level of decoding.
func findHazard(path string) string {
	if strings.HasPrefix(path, "//") {
		return "two slashes at its beginning"
	}
	for i := 0; i < len(path); {
		r, size := utf8.DecodeRuneInString(path[i:])
		switch {
		case r == '\\':
			return "a backslash"
		case r == utf8.RuneError && size == 1 && (path[i] == 0xC0 || path[i] == 0xC1):
			return "an overlong encoding" // of an ASCII character, which some decoders take for one
		case unicode.IsControl(r):
			return "a control character"
		}
		i += size
	}
	for segment := range strings.SplitSeq(path, "/") {
		// Some servers treat the text after a semicolon as parameters: "..;x" is ".." to them.
		if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
			return "a dot segment"
		}
	}
	return ""
}

// decodeOnce decodes valid escapes and leaves the rest, as lenient servers do.
func decodeOnce(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if decoded, err := url.PathUnescape(text[i : i+3]); err == nil {
				out = append(out, decoded...)
				i += 2
				continue
			}
		}
		out = append(out, text[i])
	}
	return string(out)
}
