package outbox_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/outbox"
)

// encodeFact is the payload of a fact, and its encoding in the envelope.
func encodeFact(t *testing.T, f outbox.AuditFact) (rec struct {
	Actor, Action, Target string
	Details               map[string]any
}, size int) {
	t.Helper()
	e := outbox.Audit(f)
	b, err := json.Marshal(e.Payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &rec); err != nil {
		t.Fatal(err)
	}
	if e.Actor != rec.Actor || e.SubjectID != rec.Target {
		t.Errorf("the event is of %q on %q; want e.Actor == rec.Actor && e.SubjectID == rec.Target", e.Actor, e.SubjectID)
	}
	return rec, len(b) + len(e.Actor) + len(e.SubjectID)
}

func digestOf(s string) map[string]any {
	sum := sha256.Sum256([]byte(s))
	return map[string]any{"sha256": hex.EncodeToString(sum[:]), "bytes": float64(len(s))}
}

// No details are so large that the broker would refuse the fact of the act.
func TestAuditDetailsAreBounded(t *testing.T) {
	t.Parallel()
	const maxEnvelope = 128 << 10 // an eighth of the broker's limit
	many := map[string]any{}
	for _, a := range "abcdefgh" {
		many[string(a)] = strings.Repeat("<", 4000)
	}
	manyJSON := strings.ReplaceAll(mustJSON(t, many), `\u003c`, "<")
	deep := strings.Repeat("[", 32) + strings.Repeat("]", 32)
	for name, c := range map[string]struct{ details, want map[string]any }{
		"16 KiB in one member stay": {
			map[string]any{"a": strings.Repeat("<", 16<<10-8)}, map[string]any{"a": strings.Repeat("<", 16<<10-8)},
		},
		"a large member becomes its digest": {
			map[string]any{"parameters": map[string]any{"e": strings.Repeat("<", 1<<20)}, "dataset": "d", "old": strings.Repeat("o", 4000)},
			map[string]any{"parameters": digestOf(`{"e":"` + strings.Repeat("<", 1<<20) + `"}`), "dataset": "d", "old": strings.Repeat("o", 4000)},
		},
		"many members become the digest of all": {
			many, withMember(digestOf(manyJSON), "members", []any{"a", "b", "c", "d", "e", "f", "g", "h"}),
		},
		"names are bounded too": {
			map[string]any{strings.Repeat("n", 20<<10): 1},
			withMember(digestOf(`{"`+strings.Repeat("n", 20<<10)+`":1}`), "members", []any{}),
		},
		"32 levels stay":             {map[string]any{"a": json.RawMessage(deep[1:63])}, map[string]any{"a": mustUnmarshal(t, deep[1:63])}},
		"what is deeper is a digest": {map[string]any{"a": json.RawMessage(deep), "b": 1}, map[string]any{"a": digestOf(deep), "b": 1.0}},
	} {
		rec, size := encodeFact(t, outbox.AuditFact{Tenant: "a", Actor: "alice", Action: "a.b", Target: "model:M", Outcome: "ok", Details: c.details})
		if !reflect.DeepEqual(rec.Details, c.want) {
			t.Errorf("%s: %.300s; want reflect.DeepEqual(rec.Details, c.want)", name, mustJSON(t, rec.Details))
		}
		if size > maxEnvelope {
			t.Errorf("%s: %d bytes; want size <= maxEnvelope", name, size)
		}
	}
}

func TestAuditTextsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1<<19)
	rec, size := encodeFact(t, outbox.AuditFact{Tenant: "a", Actor: long, Action: long, Target: "model:" + long, Outcome: "ok"})
	end := "… sha256:" + digestOf("model:" + long)["sha256"].(string)
	if len(rec.Target) > 512 || len(rec.Target) < 500 || !utf8.ValidString(rec.Target) || !strings.HasPrefix(rec.Target, "model:éé") || !strings.HasSuffix(rec.Target, end) {
		t.Errorf(`target %q; want len(rec.Target) <= 512 && len(rec.Target) >= 500 && utf8.ValidString(rec.Target) && strings.HasPrefix(rec.Target, "model:éé") && strings.HasSuffix(rec.Target, end)`, rec.Target)
	}
	if size > 4096 {
		t.Errorf("%d bytes; want size <= 4096", size)
	}
	short := "model:" + strings.Repeat("m", 506)
	if rec, _ := encodeFact(t, outbox.AuditFact{Tenant: "a", Target: short}); rec.Target != short {
		t.Errorf("512 bytes became %q; want %v", rec.Target, short)
	}
}

func withMember(m map[string]any, k string, v any) map[string]any {
	m[k] = v
	return m
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func mustUnmarshal(t *testing.T, s string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
