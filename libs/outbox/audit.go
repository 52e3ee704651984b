package outbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// AuditFact is an entry of the audit ledger before it has a place in it.
type AuditFact struct {
	Tenant    string
	Actor     string // the real principal, never just a role
	Action    string // such as approval.approved
	Target    string // such as model:JPCP
	Outcome   string // ok, denied or failed
	Source    string // the service
	Details   map[string]any
	RequestID string    // the context's of Insert when empty
	Time      time.Time // of the act; now when zero
}

// auditRecord is the member data of audit.recorded.
type auditRecord struct {
	Tenant    string          `json:"tenant"`
	EventID   uuid.UUID       `json:"event_id"`
	TS        string          `json:"ts"`
	Source    string          `json:"source"`
	Actor     string          `json:"actor"`
	Action    string          `json:"action"`
	Target    string          `json:"target"`
	Outcome   string          `json:"outcome"`
	RequestID *string         `json:"request_id"`
	Details   json.RawMessage `json:"details"`
}

// Audit is the event audit.recorded, to insert in the transaction of the act.
func Audit(a AuditFact) Event {
	if a.Tenant == "" {
		a.Tenant = PlatformTenant
	}
	if a.Time.IsZero() {
		a.Time = time.Now()
	}
	// Ids and principals are within the limit; longer texts may come from a
	// stranger.
	a.Actor, a.Action, a.Target = truncateText(a.Actor), truncateText(a.Action), truncateText(a.Target)
	id := uuid.Must(uuid.NewV7()) // fails only without a source of randomness, as the runtime would
	rec := auditRecord{
		Tenant: a.Tenant, EventID: id, TS: a.Time.UTC().Format("2006-01-02T15:04:05.000000Z"), Source: a.Source,
		Actor: a.Actor, Action: a.Action, Target: a.Target, Outcome: a.Outcome, Details: encodeDetails(a.Details),
	}
	if a.RequestID != "" {
		rec.RequestID = &a.RequestID
	}
	return Event{
		ID: id, Tenant: a.Tenant, Namespace: "audit", Name: "recorded", SubjectID: a.Target,
		Payload: rec, Actor: a.Actor, RequestID: a.RequestID,
	}
}

// Limits of a fact. A fact that is too large for the broker would never reach the
// ledger, so an act could be hidden by the size of its details. In the envelope a
// character takes up to six bytes, \u003c for one; 16 KiB of the worst are a tenth
// of the broker's limit.
const (
	maxText    = 512      // bytes of an actor, action or target
	maxDetails = 16 << 10 // bytes of the details' JSON
	maxMember  = 4 << 10  // bytes that a member of larger details may have
	maxDepth   = 32       // objects and lists in each other; readers bound theirs too
)

// truncateText returns s, or its beginning and its digest when it is too long.
func truncateText(s string) string {
	if len(s) <= maxText {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	end := "… sha256:" + hex.EncodeToString(sum[:])
	cut := maxText - len(end)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + end
}

// encodeDetails encodes details within their limits, with integers beyond 2^53 as
// strings: the ledger hashes the form of RFC 8785, whose numbers are doubles. A
// value that JSON cannot express becomes a note, since an act must not go unrecorded
// for it.
func encodeDetails(details map[string]any) json.RawMessage {
	if details == nil {
		return json.RawMessage("{}")
	}
	b, err := compactJSON(details)
	if err != nil {
		details = map[string]any{"unencodable": err.Error()}
		b, _ = compactJSON(details)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		return b // just encoded, so it decodes
	}
	stringifyLargeIntegers(v)
	if b, err = compactJSON(boundDetails(v, len(b))); err != nil {
		return json.RawMessage("{}")
	}
	return b
}

// compactJSON encodes v, members in order, without spaces and HTML escapes.
func compactJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// boundDetails replaces values that are too deep by digests, and in details of more
// than maxDetails their large members, else the whole.
func boundDetails(v map[string]any, size int) map[string]any {
	var whole map[string]any
	if size > maxDetails {
		whole = digestValue(v)
		whole["members"] = memberNames(v)
	}
	for k, e := range v {
		if deeperThan(e, maxDepth-1) {
			v[k] = digestValue(e)
		} else if size > maxDetails {
			if d := digestValue(e); d["bytes"].(int) > maxMember {
				v[k] = d
			}
		}
	}
	if size > maxDetails {
		if b, err := compactJSON(v); err != nil || len(b) > maxDetails {
			return whole
		}
	}
	return v
}

// memberNames are the members' names, of all together at most maxMember bytes.
func memberNames(v map[string]any) []string {
	all := slices.Sorted(maps.Keys(v))
	room := maxMember
	for i, name := range all {
		if room -= len(name); room < 0 {
			return all[:i]
		}
	}
	return all
}

// digestValue replaces a value by its JSON's SHA-256 and length in bytes.
func digestValue(v any) map[string]any {
	b, _ := compactJSON(v) // it was decoded from JSON
	sum := sha256.Sum256(b)
	return map[string]any{"sha256": hex.EncodeToString(sum[:]), "bytes": len(b)}
}

// deeperThan reports whether v has more than n objects and lists in each other.
func deeperThan(v any, n int) bool {
	switch v := v.(type) {
	case map[string]any:
		if n == 0 {
			return true
		}
		for _, e := range v {
			if deeperThan(e, n-1) {
				return true
			}
		}
	case []any:
		if n == 0 {
			return true
		}
		for _, e := range v {
			if deeperThan(e, n-1) {
				return true
			}
		}
	}
	return false
}

const maxExact = 1 << 53

func stringifyLargeIntegers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = stringifyLargeIntegers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = stringifyLargeIntegers(e)
		}
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			if n > maxExact || n < -maxExact {
				return v.String()
			}
		} else if _, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return v.String()
		}
	}
	return v
}
