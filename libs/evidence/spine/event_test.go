package spine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/evidencetest"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/vectors/vectortest"
)

func TestFixtureEvents(t *testing.T) {
	t.Parallel()
	var v struct {
		Events []struct {
			PayloadDigest string `json:"payload_digest"`
			EnvelopeBytes int    `json:"envelope_bytes"`
			Frame         string `json:"frame"`
			FrameBytes    int    `json:"frame_bytes"`
			FrameSHA256   string `json:"frame_sha256"`
		} `json:"events"`
	}
	vectortest.Load(t, "fixtures.json", &v)
	events := evidencetest.RunEvents()
	if len(v.Events) != len(events) {
		t.Fatal(len(v.Events), "want len(v.Events) == len(events)")
	}
	for i, e := range events {
		want := v.Events[i]
		c1, err := canon.C1(e)
		if err != nil || len(c1) != want.EnvelopeBytes || e.PayloadDigest != want.PayloadDigest {
			t.Errorf("event %d: %d bytes, %s, %v; want len(c1) == want.EnvelopeBytes && e.PayloadDigest == want.PayloadDigest", i+1, len(c1), e.PayloadDigest, err)
		}
		sum := sha256.Sum256(e.Frame())
		if string(e.Frame()) != want.Frame || len(want.Frame) != want.FrameBytes || hex.EncodeToString(sum[:]) != want.FrameSHA256 {
			t.Errorf("event %d: frame %q; want string(e.Frame()) == want.Frame && len(want.Frame) == want.FrameBytes && hex.EncodeToString(sum[:]) == want.FrameSHA256", i+1, e.Frame())
		}
		if e.Value().Len() != 16 {
			t.Errorf("event %d has %d keys; want e.Value().Len() == 16", i+1, e.Value().Len())
		}
		parsed, err := canon.Parse(c1)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := spine.ReadEvent(parsed); err != nil || canon.Digest(back) != canon.Digest(e) {
			t.Errorf("event %d does not read back: %v; want canon.Digest(back) == canon.Digest(e)", i+1, err)
		}
	}
	if e := events[0]; e.PayloadDigest != "sha256:3b909e9f11d89dbadc4c136c4bc6512ac431ca348a86af323454690a07e5e37d" || v.Events[0].EnvelopeBytes != 649 ||
		v.Events[0].FrameBytes != 682 || v.Events[0].FrameSHA256 != "d13da651677c3b058e1adabded69d7db7775c29321870a5b2f53b5e2cd8eeb8e" {
		t.Error("event 1 is not the named one")
	}
	if events[1].PayloadDigest != "sha256:100433982768fdda4d0aa6c97f6c2024b8580e2b929aa2cee78d7d2bdc0d62c3" {
		t.Error("event 2 is not the named one")
	}
	if spine.EventID(1) != "evt-000000000001" || spine.EventID(spine.MaxSequence) != "evt-999999999999999999" {
		t.Error("event ids")
	}
}

func TestEventOfAnImportedRun(t *testing.T) {
	t.Parallel()
	run := importedRun(t)
	e := spine.CreatedEvent(3, fixture.CreatedAt, run, spine.ImportRequestDigest(run, *run.EvidenceReportDigest),
		&spine.EvidenceRef{Kind: "svc-run-evidence-report", Digest: *run.EvidenceReportDigest})
	if state, _ := e.Payload.Get("state"); state != "awaiting_human_decision" {
		t.Error(state, `want "awaiting_human_decision"`)
	}
	if back, err := spine.ReadEvent(canon.Clone(e.Value())); err != nil || back.EvidenceReference.Digest != *run.EvidenceReportDigest {
		t.Error(err, "want back.EvidenceReference.Digest == *run.EvidenceReportDigest")
	}
}

func TestEveryFaultOfAnEvent(t *testing.T) {
	t.Parallel()
	set := func(key string, v canon.Value) func(*canon.Object) {
		return func(o *canon.Object) { o.Set(key, v) }
	}
	// resealed changes the payload and its digest, so that only the payload is at fault.
	resealed := func(change func(p *canon.Object)) func(*canon.Object) {
		return func(o *canon.Object) {
			p := subObject(o, "payload")
			change(p)
			o.Set("payload_digest", canon.Digest(p))
		}
	}
	for _, c := range []struct {
		name   string
		event  int
		change func(*canon.Object)
		code   string
		path   string
	}{
		{"fifteen keys", 0, func(o *canon.Object) { o.Delete("attempt_id") }, spine.MissingField, "/attempt_id"},
		{"seventeen keys", 0, set("note", "x"), spine.UnknownField, "/note"},
		{"other version", 0, set("schema_version", "1.0"), spine.UnsupportedVersion, "/schema_version"},
		{"other kind", 0, set("kind", "event"), spine.InvalidKind, "/kind"},
		{"sequence 0", 0, set("sequence", canon.NewInt(0)), spine.InvalidValue, "/sequence"},
		{"sequence of 19 digits", 0, func(o *canon.Object) {
			o.Set("sequence", canon.NewInt(spine.MaxSequence+1))
			o.Set("event_id", "evt-1000000000000000000")
		}, spine.InvalidValue, "/sequence"},
		{"sequence as a float", 0, set("sequence", canon.Float(1)), spine.InvalidType, "/sequence"},
		{"id of another event", 0, set("event_id", "evt-000000000002"), spine.InvalidEventID, "/event_id"},
		{"id as a number", 0, set("event_id", canon.NewInt(1)), spine.InvalidType, "/event_id"},
		{"local time", 0, set("occurred_at", "2026-01-02T03:04:05+01:00"), spine.InvalidTimestamp, "/occurred_at"},
		{"unknown type", 0, set("event_type", "run.merged"), spine.InvalidEventType, "/event_type"},
		{"principal as text", 0, set("principal", "me"), spine.InvalidShape, "/principal"},
		{"principal without an id", 0, func(o *canon.Object) { subObject(o, "principal").Set("id", "") }, spine.InvalidValue, "/principal/id"},
		{"unknown class", 0, set("authority_class", "root"), spine.InvalidValue, "/authority_class"},
		{"blank run", 0, set("run_id", " "), spine.InvalidIdentifier, "/run_id"},
		{"blank attempt", 0, set("attempt_id", ""), spine.InvalidIdentifier, "/attempt_id"},
		{"branch", 0, set("source_revision", "main"), spine.InvalidSourceRevision, "/source_revision"},
		{"evidence as text", 0, set("evidence_reference", "x"), spine.InvalidShape, "/evidence_reference"},
		{"evidence of no digest", 0, set("evidence_reference", canon.NewObject(canon.Member{Key: "kind", Value: "k"}, canon.Member{Key: "digest", Value: "d"})), spine.InvalidDigest, "/evidence_reference/digest"},
		{"payload as text", 0, set("payload", "x"), spine.InvalidShape, "/payload"},
		{"payload with more", 0, resealed(func(p *canon.Object) { p.Set("note", "x") }), spine.UnknownField, "/payload/note"},
		{"payload of another event", 0, resealed(func(p *canon.Object) { p.Delete("request_digest"); p.Set("previous_state", "proposed") }), spine.MissingField, "/payload/request_digest"},
		{"payload of no state", 0, resealed(func(p *canon.Object) { p.Set("state", "done") }), spine.InvalidState, "/payload/state"},
		{"cancelled into admitted", 1, resealed(func(p *canon.Object) { p.Set("state", "admitted") }), spine.InvalidState, "/payload/state"},
		{"cancelled from decided", 1, resealed(func(p *canon.Object) { p.Set("previous_state", "decided") }), spine.InvalidState, "/payload/previous_state"},
		{"bare payload digest", 0, set("payload_digest", "3b90"), spine.InvalidDigest, "/payload_digest"},
		{"other payload", 0, func(o *canon.Object) { subObject(o, "payload").Set("state", "previewed") }, spine.PayloadDigestMismatch, "/payload_digest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := evidencetest.RunEvents()[c.event].Value()
			c.change(o)
			_, err := spine.ReadEvent(o)
			var f *spine.Fault
			if !errors.As(err, &f) || f.Code != c.code || f.Path != c.path {
				t.Errorf("got %v; want %s at %s", err, c.code, c.path)
			}
		})
	}
}
