package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
)

// Envelope is a CloudEvents 1.0 event in the JSON format, with this platform's
// extensions. Members without a value are absent.
type Envelope struct {
	SpecVersion     string          `json:"specversion"`
	ID              uuid.UUID       `json:"id"`
	Source          string          `json:"source"`            // /services/<name>
	Type            string          `json:"type"`              // platform.<namespace>.<name>
	Subject         string          `json:"subject,omitempty"` // the entity the fact concerns
	Time            time.Time       `json:"time"`
	DataContentType string          `json:"datacontenttype"`
	DataSchema      string          `json:"dataschema"` // urn:platform:event:<namespace>.<name>:1
	Tenant          string          `json:"tenant"`
	Actor           string          `json:"actor,omitempty"`
	RequestID       string          `json:"requestid,omitempty"`
	Traceparent     string          `json:"traceparent,omitempty"`
	Data            json.RawMessage `json:"data"`
}

const (
	specVersion = "1.0"
	typePrefix  = "platform."
	// maxType limits a type, in bytes: others than relays may publish, and types name spans and log lines.
	maxType = 128
)

// Namespace is the second part of the type, such as deploy.
func (e Envelope) Namespace() string {
	ns, _, _ := strings.Cut(strings.TrimPrefix(e.Type, typePrefix), ".")
	return ns
}

// Name is the third part of the type, such as alias_changed.
func (e Envelope) Name() string {
	_, name, _ := strings.Cut(strings.TrimPrefix(e.Type, typePrefix), ".")
	return name
}

// Decode reads the member data into dst.
func (e Envelope) Decode(dst any) error {
	if err := json.Unmarshal(e.Data, dst); err != nil {
		return fmt.Errorf("outbox: data of %s %s: %w", e.Type, e.ID, err)
	}
	return nil
}

// ParseEnvelope parses a message body; it refuses anything but a CloudEvents 1.0 event of this platform.
func ParseEnvelope(body []byte) (Envelope, error) {
	var e Envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return Envelope{}, fmt.Errorf("outbox: the message is not an event: %w", err)
	}
	switch {
	case e.SpecVersion != specVersion:
		return Envelope{}, fmt.Errorf("outbox: the message has specversion %q, not %q", e.SpecVersion, specVersion)
	case e.ID == uuid.Nil:
		return Envelope{}, errors.New("outbox: the message has no id")
	case len(e.Type) > maxType || strings.ContainsFunc(e.Type, func(r rune) bool { return r != '.' && (r > unicode.MaxASCII || !plain(byte(r))) }):
		return Envelope{}, fmt.Errorf("outbox: the message has a type of %d bytes, %.*q, not of up to %d letters, digits, dots, _ and -", len(e.Type), maxType, e.Type, maxType)
	case !strings.HasPrefix(e.Type, typePrefix) || e.Namespace() == "" || e.Name() == "":
		return Envelope{}, fmt.Errorf("outbox: the message has type %q, not platform.<namespace>.<name>", e.Type)
	}
	return e, nil
}

// Subject is the subject of an event. A tenant is one token: characters that NATS gives a meaning in subjects, or
// refuses there, are percent-encoded.
func Subject(tenant, namespace, name string) string {
	return typePrefix + escapeToken(tenant) + "." + namespace + "." + name
}

func escapeToken(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if plain(s[i]) {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
	}
	return b.String()
}

// plain reports whether c is a letter, a digit, _ or -, which mean nothing else anywhere.
func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
