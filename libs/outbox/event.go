package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/outbox/internal/store"
	"github.com/mlp-platform/platform/libs/service"
)

// PlatformTenant is the tenant of facts that belong to none and that every
// tenant may read.
const PlatformTenant = "platform"

// Event is a fact to publish.
type Event struct {
	ID          uuid.UUID // a new UUIDv7 when zero
	Tenant      string    // PlatformTenant when empty
	Namespace   string    // such as deploy
	Name        string    // such as alias_changed
	SubjectID   string    // the entity the fact concerns, such as a model; may be empty
	Payload     any       // becomes the member data: a JSON object, {} when nil
	Actor       string    // the real principal
	RequestID   string    // the context's when empty
	Traceparent string    // the context's when empty
}

var token = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// Insert adds events to the transaction that they describe; they are published
// after its commit, in the order given. An event whose id is there already is
// an error.
func Insert(ctx context.Context, tx pgx.Tx, events ...Event) error {
	if len(events) == 0 {
		return nil
	}
	var rows store.InsertEventsParams
	for _, e := range events {
		if !token.MatchString(e.Namespace) || !token.MatchString(e.Name) {
			return fmt.Errorf("outbox: event %q.%q: namespace and name must match %s", e.Namespace, e.Name, token)
		}
		if e.ID == uuid.Nil {
			id, err := uuid.NewV7()
			if err != nil {
				return fmt.Errorf("outbox: id: %w", err)
			}
			e.ID = id
		}
		if e.Tenant == "" {
			e.Tenant = PlatformTenant
		}
		if e.RequestID == "" {
			e.RequestID = service.RequestID(ctx)
		}
		if e.Traceparent == "" {
			e.Traceparent = service.Traceparent(ctx)
		}
		payload, err := encodePayload(e)
		if err != nil {
			return err
		}
		rows.Ids = append(rows.Ids, e.ID)
		rows.Tenants = append(rows.Tenants, storableText(e.Tenant))
		rows.Namespaces = append(rows.Namespaces, e.Namespace)
		rows.Names = append(rows.Names, e.Name)
		rows.SubjectIds = append(rows.SubjectIds, storableText(e.SubjectID))
		rows.Payloads = append(rows.Payloads, storableText(payload))
		rows.Actors = append(rows.Actors, storableText(e.Actor))
		rows.RequestIds = append(rows.RequestIds, storableText(e.RequestID))
		rows.Traceparents = append(rows.Traceparents, storableText(e.Traceparent))
	}
	if err := store.New(tx).InsertEvents(ctx, rows); err != nil {
		return fmt.Errorf("outbox: insert: %w", err)
	}
	return nil
}

// storableText replaces what Postgres does not store, NUL and invalid UTF-8: a
// caller's text must not fail the transaction.
func storableText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

func encodePayload(e Event) (string, error) {
	payload := e.Payload
	switch p := payload.(type) {
	case nil:
		return "{}", nil
	case auditRecord:
		if p.RequestID == nil && e.RequestID != "" {
			p.RequestID = &e.RequestID
		}
		payload = p
	}
	b, err := json.Marshal(payload)
	if err != nil {
		return "", fmt.Errorf("outbox: payload of %s.%s: %w", e.Namespace, e.Name, err)
	}
	if len(b) == 0 || b[0] != '{' {
		return "", fmt.Errorf("outbox: payload of %s.%s must be a JSON object", e.Namespace, e.Name)
	}
	return string(withoutNUL(b)), nil
}

// withoutNUL replaces the escape \u0000, which jsonb refuses, by U+FFFD.
func withoutNUL(b []byte) []byte {
	if !bytes.Contains(b, []byte(`\u0000`)) {
		return b
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			out = append(out, b[i])
			continue
		}
		if bytes.HasPrefix(b[i:], []byte(`\u0000`)) {
			out = append(out, `\ufffd`...)
			i += 5
			continue
		}
		out = append(out, b[i], b[i+1]) // an escaped backslash begins no escape
		i++
	}
	return out
}
