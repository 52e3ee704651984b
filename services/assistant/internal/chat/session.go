package chat

import (
	"net/http"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/fault"
)

// Headers of requests and answers.
const (
	SessionHeader   = "X-Session-ID"
	WebUIChatHeader = "X-OpenWebUI-Chat-Id"
	RequestIDHeader = "X-Request-ID"
)

const maxSessionID = 128

// maxQuoted limits the ids looked for in one message. A message with more ids quotes no prompt.
const maxQuoted = 256

// SessionHint identifies the session of a request. ID wins. Without it, the request belongs to a session if exactly one
// of the ids in Quoted is a waiting action of the caller. Otherwise the session is new.
type SessionHint struct {
	ID     string
	Quoted []string
}

// ValidSessionID reports whether s can name a session.
func ValidSessionID(s string) bool { return validID(s, maxSessionID, true) }

// HintOf reads the headers of a request whose body was r. The error is a problem: 422.
func HintOf(h http.Header, r Request) (SessionHint, error) {
	for _, name := range []string{SessionHeader, WebUIChatHeader} {
		values := slices.DeleteFunc(slices.Clone(h.Values(name)), func(v string) bool { return v == "" })
		switch {
		case len(values) == 0:
			continue
		case len(values) > 1:
			return SessionHint{}, fault.InvalidHeader(name, "must be sent once")
		case !ValidSessionID(values[0]):
			return SessionHint{}, fault.InvalidHeader(name, "must be 1 to 128 characters of A-Z a-z 0-9 . _ : -")
		}
		return SessionHint{ID: values[0]}, nil
	}
	return SessionHint{Quoted: r.QuotedIDs}, nil
}

// CallerRequestID is the request id that the caller sent, which identifies repeats; "" if it sent no valid one. The
// response id does not serve: the server makes one up for each request without.
func CallerRequestID(h http.Header) string {
	v := h.Values(RequestIDHeader)
	if len(v) != 1 || !validID(v[0], maxSessionID, false) {
		return ""
	}
	return v[0]
}

func validID(s string, most int, colon bool) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-', colon && c == ':':
		default:
			return false
		}
	}
	return true
}

// quotedIDs returns the distinct UUIDs of a text, lower-case, in order.
func quotedIDs(text string) []string {
	var ids []string
	seen := map[string]bool{}
	for len(text) > 0 {
		at := idExpr.FindStringIndex(text)
		if at == nil {
			break
		}
		id := lowerASCII(text[at[0]:at[1]])
		text = text[at[1]:]
		if seen[id] {
			continue
		}
		if len(ids) == maxQuoted {
			return nil
		}
		seen[id] = true
		ids = append(ids, id)
	}
	return ids
}
