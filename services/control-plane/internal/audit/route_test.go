package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/audit/chain"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

func itemsOf(t testing.TB, r controlplanetest.Response) (out []map[string]any) {
	t.Helper()
	for _, v := range r.Object(t)["items"].([]any) {
		out = append(out, v.(map[string]any))
	}
	return out
}

func TestRecordedByAnotherProgram(t *testing.T) {
	t.Parallel()
	b := startLedger(t)
	for i, bearer := range []string{controlplanetest.CI, controlplanetest.Trainer, controlplanetest.Approver, controlplanetest.Operator} {
		r := b.Want(202, "POST", "/audit/events", bearer, map[string]any{
			"source": []string{"cli", "bridge", "agent", "dashboard"}[i], "action": "model.pulled", "target": "model:JPCP", "outcome": "denied",
			"details": map[string]any{"big": uint64(1) << 63, "small": 1.5},
		}, "X-Request-ID", fmt.Sprintf("req-%d", i)).Object(t)
		if _, err := uuid.Parse(r["event_id"].(string)); err != nil || len(r) != 1 {
			t.Errorf("answer %v; want len(r) == 1", r)
		}
	}
	whole := strings.Repeat("<", 16<<10-16)
	b.Want(202, "POST", "/audit/events", controlplanetest.CI, `{"source":"cli","action":"Model.pulled:v1_x-y","target":"Modell: Zoë/JPCP","details":{"a":"`+whole+`"}}`)
	b.Want(202, "POST", "/audit/events", controlplanetest.CI, `{"source":"cli","action":"a","target":"t","details":{"a":`+strings.Repeat("[", 31)+strings.Repeat("]", 31)+`}}`)
	b.chained("default", 6)
	if e := itemsOf(t, b.Want(200, "GET", "/audit/events?action=Model.pulled:v1_x-y", controlplanetest.Reader, nil))[0]; e["details"].(map[string]any)["a"] != whole {
		t.Errorf(`16 KiB of details became %.200v; want e["details"].(map[string]any)["a"] == %v`, e["details"], whole)
	}
	entry := itemsOf(t, b.Want(200, "GET", "/audit/events?source=cli&action=model.pulled", controlplanetest.Reader, nil))[0]
	if entry["actor"] != "ci" || entry["tenant"] != "default" || entry["outcome"] != "denied" || entry["request_id"] != "req-0" {
		t.Errorf(`entry %v; want entry["actor"] == "ci" && entry["tenant"] == "default" && entry["outcome"] == "denied" && entry["request_id"] == "req-0"`, entry)
	}
	if d := entry["details"].(map[string]any); d["big"] != "9223372036854775808" || d["small"] != 1.5 {
		t.Errorf(`details %v; want d["big"] == "9223372036854775808" && d["small"] == 1.5`, d)
	}
	b.Refused(403, "insufficient_scope", "POST", "/audit/events", controlplanetest.Reader, map[string]any{})
	for _, c := range []struct{ field, body string }{
		{"source", `{"action":"a","target":"t"}`},
		{"source", `{"source":"control-plane","action":"a","target":"t"}`},
		{"action", `{"source":"cli","target":"t"}`},
		{"action", `{"source":"cli","action":"` + strings.Repeat("a", 129) + `","target":"t"}`},
		{"action", `{"source":"cli","action":"a\nb","target":"t"}`},
		{"action", `{"source":"cli","action":"a b","target":"t"}`},
		{"action", `{"source":"cli","action":".a","target":"t"}`},
		{"target", `{"source":"cli","action":"a","target":""}`},
		{"target", `{"source":"cli","action":"a","target":"t\u202e"}`},
		{"target", `{"source":"cli","action":"a","target":"t\nu"}`},
		{"target", `{"source":"cli","action":"a","target":"` + strings.Repeat("t", 513) + `"}`},
		{"details", `{"source":"cli","action":"a","target":"t","details":{"a":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}}`},
		{"outcome", `{"source":"cli","action":"a","target":"t","outcome":"maybe"}`},
		{"details", `{"source":"cli","action":"a","target":"t","details":[1]}`},
		{"details", `{"source":"cli","action":"a","target":"t","details":{"a":1e999}}`},
		{"details", `{"source":"cli","action":"a","target":"t","details":{"a":"` + strings.Repeat("a", 16<<10) + `"}}`},
		{"tenant", `{"source":"cli","action":"a","target":"t","tenant":"other"}`},
		{"actor", `{"source":"cli","action":"a","target":"t","actor":"bob"}`},
	} {
		r := b.Refused(422, "validation_error", "POST", "/audit/events", controlplanetest.CI, c.body)
		if !bytes.Contains(r.Body, []byte(`"`+c.field+`"`)) {
			t.Errorf("%s: %s; want bytes.Contains(r.Body, []byte(`\"`+c.field+`\"`))", c.body, r.Body)
		}
	}
}

func TestListing(t *testing.T) {
	t.Parallel()
	b := startLedger(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var events []outbox.Event
	for i := range 9 {
		events = append(events, outbox.Audit(outbox.AuditFact{
			Tenant: "default", Actor: []string{"alice", "bob"}[i%2], Action: []string{"a.made", "a.gone", "b.made"}[i%3], Target: []string{"model:JPCP", "model:MACK"}[i%2],
			Outcome: "ok", Source: []string{"control-plane", "inference"}[i%2], Time: at.Add(time.Duration(i) * time.Hour), Details: map[string]any{"note": fmt.Sprintf("Round-%d of the_spring", 10*i)},
		}))
	}
	b.emit(append(events, auditFact("other", 1), auditFact("platform", 1), auditFact("third", 1))...)
	b.chained("default", 9)
	b.chained("third", 1)
	seventh := itemsOf(t, b.Want(200, "GET", "/audit/events?limit=3", controlplanetest.Reader, nil))[2]["event_id"].(string)
	for query, want := range map[string]string{
		"?q=" + seventh:            "7",
		"":                         "9 8 7 6 5 4 3 2 1",
		"?model=jpcp":              "9 7 5 3 1",
		"?action=a.made":           "7 4 1",
		"?source=inference":        "8 6 4 2",
		"?actor=bob&action=a.gone": "8 2",
		"?since=2026-01-02T05:04:05Z&until=2026-01-02T07:04:05Z":            "4 3",
		"?since=2026-01-02T06:04:05%2B01:00&until=2026-01-02T06:04:05.001Z": "4 3",
		"?actor=nobody":                       "",
		"?tenant=default&actor=alice&limit=2": "9 7",
		"?q=jpcp":                             "9 7 5 3 1", // within model:JPCP
		"?q=MAC+goN":                          "8 2",       // every word, by its beginning
		"?q=round-80":                         "9",         // details
		"?q=spring&actor=bob&action=a.gone":   "8 2",
		"?q=gone":                             "8 5 2",
		"?q=pring":                            "",
		"?q=%27%26%7C%21%3A*()%3C-%3E%5C":     "", // operators are punctuation
	} {
		r := b.Want(200, "GET", "/audit/events"+query, controlplanetest.Reader, nil)
		var got []string
		for _, e := range itemsOf(t, r) {
			got = append(got, fmt.Sprint(e["seq"]))
		}
		count := len(got)
		if strings.Contains(query, "limit") {
			count = 5
		}
		if strings.Join(got, " ") != want || r.Object(t)["count"] != float64(count) {
			t.Errorf("%s: %v of %v, want %s", query, got, r.Object(t)["count"], want)
		}
	}
	// Page by page.
	var seqs []string
	for cursor := ""; ; {
		r := b.Want(200, "GET", "/audit/events?limit=4"+cursor, controlplanetest.Reader, nil)
		for _, e := range itemsOf(t, r) {
			seqs = append(seqs, fmt.Sprint(e["seq"]))
		}
		next, more := r.Object(t)["next_cursor"].(string)
		if r.Object(t)["count"] != float64(9) {
			t.Errorf(`count %s; want r.Object(t)["count"] == float64(9)`, r.Body)
		}
		if !more {
			break
		}
		cursor = "&cursor=" + next
	}
	if strings.Join(seqs, " ") != "9 8 7 6 5 4 3 2 1" {
		t.Errorf(`pages %v; want strings.Join(seqs, " ") == "9 8 7 6 5 4 3 2 1"`, seqs)
	}

	// The caller's own chain and the platform's, no other.
	for _, path := range []string{"/audit/events", "/audit/verify", "/audit/checkpoints", "/audit/export"} {
		b.Want(200, "GET", path+"?tenant=platform", controlplanetest.Reader, nil)
		b.Want(200, "GET", path+"?tenant=other", controlplanetest.Foreign, nil)
		b.Refused(404, "tenant_not_found", "GET", path+"?tenant=other", controlplanetest.Reader, nil)
		b.Refused(404, "tenant_not_found", "GET", path+"?tenant=none", controlplanetest.Reader, nil)
	}
	if e := itemsOf(t, b.Want(200, "GET", "/audit/events", controlplanetest.Foreign, nil)); len(e) != 1 || e[0]["tenant"] != "other" || e[0]["seq"] != float64(1) {
		t.Errorf(`another tenant sees %v; want len(e) == 1 && e[0]["tenant"] == "other" && e[0]["seq"] == float64(1)`, e)
	}
	for _, path := range []string{"/audit/events?since=yesterday", "/audit/events?limit=0", "/audit/events?cursor=x", "/audit/verify?from=0", "/audit/verify?from=5&to=4",
		"/audit/verify?from=10", "/audit/verify?to=x", "/audit/checkpoints?limit=501", "/audit/export?until=1"} {
		b.Refused(422, "validation_error", "GET", path, controlplanetest.Reader, nil)
	}
	if v := b.Want(200, "GET", "/audit/verify", controlplanetest.Seeder, nil).Object(t); v["verified"] != true {
		t.Errorf(`verdict %v; want v["verified"] == true`, v)
	}
}

func TestAnEmptyChainHolds(t *testing.T) {
	t.Parallel()
	b := startLedger(t)
	v := b.verify("")
	head := v["head"].(map[string]any)
	if v["verified"] != true || v["checked"] != float64(0) || head["seq"] != float64(0) || head["hash"] != strings.Repeat("0", 64) {
		t.Errorf(`verdict %v; want v["verified"] == true && v["checked"] == float64(0) && head["seq"] == float64(0) && head["hash"] == strings.Repeat("0", 64)`, v)
	}
	if out := b.Want(200, "GET", "/audit/events", controlplanetest.Reader, nil).Object(t); out["count"] != float64(0) || len(out["items"].([]any)) != 0 {
		t.Errorf(`list %v; want out["count"] == float64(0) && len(out["items"].([]any)) == 0`, out)
	}
	b.Refused(409, "audit_empty", "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
	r, err := chain.VerifyBundle(bytes.NewReader(b.Want(200, "GET", "/audit/export", controlplanetest.Reader, nil).Body), nil)
	if err != nil || !r.Verified || r.Checked != 0 {
		t.Errorf("bundle %+v, %v; want r.Verified && r.Checked == 0", r, err)
	}
}

func TestCheckpointsAndKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := controlplanetest.Neighbours(t, "AUDIT_SIGNING_KEY_FILE="+filepath.Join(dir, "first"))
	stop := p.Serve()
	b := openLedger(p)
	b.emit(auditFact("default", 1), auditFact("default", 2))
	b.chained("default", 2)
	first := b.Want(201, "POST", "/audit/checkpoints", controlplanetest.Operator, nil).Object(t)
	b.chained("default", 3)
	b.Want(201, "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
	b.chained("default", 4)
	if info, err := os.Stat(filepath.Join(dir, "first")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file %v, %v; want info.Mode().Perm() == 0o600", info, err)
	}
	for _, scope := range []string{controlplanetest.Reader, controlplanetest.Approver} {
		b.Refused(403, "insufficient_scope", "POST", "/audit/checkpoints", scope, nil)
	}

	// A new key: signatures of the old one are untrusted until an operator vouches for it. The owner of the database
	// could have added it.
	stop()
	p.Setenv("AUDIT_SIGNING_KEY_FILE=" + filepath.Join(dir, "second"))
	stop = p.Serve()
	b.fails("a key that nobody vouches for", "", 2, "checkpoint")
	b.Refused(409, "audit_unverified", "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
	var old map[string]any
	for _, k := range itemsOf(t, b.Want(200, "GET", "/audit/keys", controlplanetest.Reader, nil)) { // the new key may also have signed
		if k["vouched"] != k["active"] {
			t.Errorf(`key %v; want k["vouched"] == %v`, k, k["active"])
		}
		if k["key_id"] == first["key_id"] {
			old = k
		}
	}
	if old == nil || old["active"] != false {
		t.Fatalf(`key %v; want old != nil && old["active"] == false`, old)
	}

	// Once configured outside the database, its successor vouches for it.
	stop()
	p.Setenv("AUDIT_TRUSTED_KEYS=" + old["public_key"].(string))
	stop = p.Serve()
	if v := b.verify(""); v["verified"] != true || v["signed_seq"] != float64(3) {
		t.Errorf(`verdict %v; want v["verified"] == true && v["signed_seq"] == float64(3)`, v)
	}
	testenv.Eventually(t, 30*time.Second, func() error {
		var n int
		if err := b.pool.QueryRow(t.Context(), "select count(*) from audit_vouches").Scan(&n); err != nil || n != 1 {
			return fmt.Errorf("%d vouches, %v", n, err)
		}
		return nil
	})
	stop()
	p.Setenv("AUDIT_TRUSTED_KEYS=")
	p.Serve()
	last := b.Want(201, "POST", "/audit/checkpoints", controlplanetest.Operator, nil).Object(t)
	if last["key_id"] == first["key_id"] {
		t.Fatal("the same key")
	}
	b.chained("default", 5)
	if v := b.verify(""); v["verified"] != true {
		t.Errorf(`verdict %v; want v["verified"] == true`, v)
	}
	list := itemsOf(t, b.Want(200, "GET", "/audit/checkpoints", controlplanetest.Reader, nil))
	var seqs []any
	for _, c := range list {
		seqs = append(seqs, c["seq"])
	}
	if fmt.Sprint(seqs) != "[4 3 2]" {
		t.Errorf(`checkpoints %v; want fmt.Sprint(seqs) == "[4 3 2]"`, list)
	}
	page := b.Want(200, "GET", "/audit/checkpoints?limit=2", controlplanetest.Reader, nil).Object(t)
	if rest := itemsOf(t, b.Want(200, "GET", "/audit/checkpoints?cursor="+page["next_cursor"].(string), controlplanetest.Reader, nil)); len(rest) != 1 || rest[0]["seq"] != float64(2) {
		t.Errorf(`second page %v; want len(rest) == 1 && rest[0]["seq"] == float64(2)`, rest)
	}
	keys := itemsOf(t, b.Want(200, "GET", "/audit/keys", controlplanetest.Reader, nil))
	if len(keys) != 2 || keys[0]["key_id"] != last["key_id"] || keys[0]["active"] != true || keys[1]["active"] != false || keys[0]["vouched"] != true || keys[1]["vouched"] != true {
		t.Fatalf(`keys %v; want len(keys) == 2 && keys[0]["key_id"] == last["key_id"] && keys[0]["active"] == true && keys[1]["active"] == false && keys[0]["vouched"] == true && …`, keys)
	}
	var public []ed25519.PublicKey
	for _, k := range keys {
		raw, err := base64.StdEncoding.DecodeString(k["public_key"].(string))
		if err != nil {
			t.Fatal(err)
		}
		if chain.KeyID(raw) != k["key_id"] {
			t.Errorf("key %v; want chain.KeyID(raw) == %v", k, k["key_id"])
		}
		public = append(public, raw)
	}

	// The bundle needs the newest key, which vouches for the other, and nothing else.
	resp := b.Want(200, "GET", "/audit/export", controlplanetest.Reader, nil)
	if ct := resp.Header.Get("Content-Type"); ct != "application/x-ndjson" {
		t.Errorf(`Content-Type %s; want "application/x-ndjson"`, ct)
	}
	r, err := chain.VerifyBundle(bytes.NewReader(resp.Body), chain.KeysOf(public[0]))
	if err != nil || !r.Verified || r.Checked != 5 || r.Checkpoints != 3 || r.SignedSeq != 4 {
		t.Errorf("bundle %+v, %v; want r.Verified && r.Checked == 5 && r.Checkpoints == 3 && r.SignedSeq == 4", r, err)
	}
	if r, err := chain.VerifyBundle(bytes.NewReader(resp.Body), chain.KeysOf(public[1])); err != nil || r.Reason != chain.BadCheckpoint || *r.FirstBadSeq != 4 {
		t.Errorf("the old key: %+v, %v; want r.Reason == chain.BadCheckpoint && *r.FirstBadSeq == 4", r, err)
	}
	facts := itemsOf(t, b.Want(200, "GET", "/audit/events?action=audit.checkpoint", controlplanetest.Reader, nil))
	if len(facts) != 3 || facts[0]["actor"] != "operator" {
		t.Errorf(`facts %v; want len(facts) == 3 && facts[0]["actor"] == "operator"`, facts)
	}
}

func TestExportOfAStretch(t *testing.T) {
	t.Parallel()
	b := startLedger(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var events []outbox.Event
	for i := range 9 {
		events = append(events, outbox.Audit(outbox.AuditFact{Tenant: "default", Actor: "a", Action: "a", Source: "cli", Outcome: "ok", Time: at.Add(time.Duration(i) * time.Hour)}))
	}
	b.emit(events...)
	b.chained("default", 9)
	get := func(query string) chain.Report {
		t.Helper()
		r, err := chain.VerifyBundle(bytes.NewReader(b.Want(200, "GET", "/audit/export"+query, controlplanetest.Reader, nil).Body), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := get("?since=2026-01-02T05:04:05Z&until=2026-01-02T08:04:05Z"); !r.Verified || r.FromSeq != 3 || r.Head.Seq != 5 || r.Checked != 3 {
		t.Errorf("bundle %+v; want r.Verified && r.FromSeq == 3 && r.Head.Seq == 5 && r.Checked == 3", r)
	}
	if r := get("?since=2027-01-01T00:00:00Z"); r.Verified || r.Reason != chain.BadGap || r.LastSeq != 9 {
		t.Errorf("an empty bundle of a ledger that is not: %+v; want !r.Verified && r.Reason == chain.BadGap && r.LastSeq == 9", r)
	}
	b.alter("update audit_events set actor = 'b' where seq = 4")
	if r := get(""); r.Verified || *r.FirstBadSeq != 4 || r.Reason != chain.BadHash {
		t.Errorf("bundle %+v; want !r.Verified && *r.FirstBadSeq == 4 && r.Reason == chain.BadHash", r)
	}
}

// awaitAuditCheck waits until the ledger's check in /health begins with this text.
func awaitAuditCheck(t *testing.T, b *bundle, want string) {
	t.Helper()
	testenv.Eventually(t, 30*time.Second, func() error {
		if check, _ := b.Health()["startup_checks"].(map[string]any)["audit"].(string); !strings.HasPrefix(check, want) {
			return fmt.Errorf("health %q, want %q", check, want)
		}
		return nil
	})
}

func TestWithoutAKey(t *testing.T) {
	t.Parallel()
	b := startWithEntries(t, 1, "AUDIT_SIGNING_KEY_FILE=")
	b.Refused(503, "audit_key_missing", "POST", "/audit/checkpoints", controlplanetest.Operator, nil)
	awaitAuditCheck(t, b, "warn: AUDIT_SIGNING_KEY_FILE")
	b.Want(200, "GET", "/readyz", "", nil)
	if v := b.verify(""); v["verified"] != true || v["signed_seq"] != float64(0) {
		t.Errorf(`verdict %v; want v["verified"] == true && v["signed_seq"] == float64(0)`, v)
	}
}

func TestMetricsAndHealthTellOfTampering(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t)
	stop := p.Serve()
	b := openLedger(p)
	b.emit(auditFact("default", 1), auditFact("default", 2), auditFact("default", 3))
	b.chained("default", 3)
	metric := func(want string) {
		t.Helper()
		testenv.Eventually(t, 30*time.Second, func() error {
			body := string(b.Want(http.StatusOK, "GET", "/metrics", "", nil).Body)
			if !strings.Contains(body, "\n"+want+"\n") {
				return fmt.Errorf("no %s", want)
			}
			return nil
		})
	}
	metric("platform_audit_verified 1")
	metric("platform_audit_lag_events 0")
	awaitAuditCheck(t, b, "ok")
	// The leader finds it, an hour after its last verification.
	b.alter("update audit_events set actor = 'b' where tenant = 'default' and seq = 2")
	b.SQL("update control_plane.audit_rounds set verified_at = verified_at - interval '61 minutes'")
	stop()
	p.Serve()
	metric("platform_audit_verified 0")
	awaitAuditCheck(t, b, "warn: the audit ledger does not verify")
	b.Want(200, "GET", "/readyz", "", nil)
	// The caller notices too.
	b.alter("update audit_events set actor = 'alice' where tenant = 'default' and seq = 2")
	if v := b.verify(""); v["verified"] != false {
		t.Errorf("got %v of an entry that was put right again, want the failure to stay", v)
	}
	b.Want(200, "POST", "/audit/acknowledgements", controlplanetest.Legacy, map[string]any{"reason": "put right"})
	b.verify("")
	metric("platform_audit_verified 1")
}

// Facts that wait in the stream while the broker or the ledger is away are the lag; here no replica appends, because
// another one leads and is stopped.
func TestLagCountsWhatWaits(t *testing.T) {
	t.Parallel()
	b := startWithEntries(t, 1)
	b.SQL("insert into control_plane.audit_writers (coordinator, fence) values ('postgres', 1000) on conflict (coordinator) do update set fence = 1000")
	b.emit(auditFact("default", 2), auditFact("default", 3))
	testenv.Eventually(t, 30*time.Second, func() error {
		body := string(b.Want(http.StatusOK, "GET", "/metrics", "", nil).Body)
		if !strings.Contains(body, "\nplatform_audit_lag_events 2\n") {
			return fmt.Errorf("no lag of 2")
		}
		return nil
	})
	b.SQL("update control_plane.audit_writers set fence = 0")
	b.chained("default", 3) // and none was lost to the dead letters
	if v := b.verify(""); v["verified"] != true || v["checked"] != float64(3) {
		t.Errorf(`verdict %v; want v["verified"] == true && v["checked"] == float64(3)`, v)
	}
}
