package app_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// insertOversizeEvent inserts an event into the outbox that is too large for any broker. No request can create one:
// bodies are limited well below that.
func insertOversizeEvent(t *testing.T, p *controlplanetest.Plane, tenant string) (uuid.UUID, string) {
	t.Helper()
	id := uuid.Must(uuid.NewV7())
	p.SQL(`insert into control_plane.outbox (id, tenant, namespace, name, payload, actor)
		values ($1, $2, 'job', 'started', jsonb_build_object('text', repeat('x', $3)), 'alice')`, id, tenant, outbox.MaxMessage)
	sum := sha256.Sum256([]byte(`{"text": "` + strings.Repeat("x", outbox.MaxMessage) + `"}`))
	return id, hex.EncodeToString(sum[:])
}

// noteRefusals makes the database record each refusal of a row as it happens, with the wait until the next attempt.
func noteRefusals(p *controlplanetest.Plane) {
	p.SQL(`create table control_plane.refusal (id uuid, n int, wait float8)`)
	p.SQL(`create function control_plane.note_refusal() returns trigger language plpgsql as $$
		begin
			insert into control_plane.refusal values (new.id, new.refusals, extract(epoch from new.next_attempt_at - now()));
			return null;
		end $$`)
	p.SQL(`create trigger note_refusal after update on control_plane.outbox for each row when (new.refusals > old.refusals)
		execute function control_plane.note_refusal()`)
}

// expectPoisonedAfterRetries waits until the relay has given up the row, shortening the waits between its attempts, and
// checks the recorded refusals: five, with 2, 4, 8 and 16 s between them.
func expectPoisonedAfterRetries(t *testing.T, p *controlplanetest.Plane, id uuid.UUID) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	testenv.Eventually(t, 60*time.Second, func() error {
		tag, err := conn.Exec(t.Context(), "update control_plane.outbox set next_attempt_at = now() where id = $1 and poison_at is null", id)
		if err == nil && tag.RowsAffected() > 0 {
			err = errors.New("not poison yet")
		}
		return err
	})
	rows, err := conn.Query(t.Context(), "delete from control_plane.refusal where id = $1 returning n, wait", id)
	if err != nil {
		t.Fatal(err)
	}
	waits := map[int]float64{}
	var n int
	var wait float64
	if _, err := pgx.ForEachRow(rows, []any{&n, &wait}, func() error { waits[n] = wait; return nil }); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]float64{1: 2, 2: 4, 3: 8, 4: 16} {
		if waits[n] != want {
			t.Errorf("%g s after refusal %d, want %g", waits[n], n, want)
		}
	}
	if _, last := waits[5]; !last || len(waits) != 5 {
		t.Errorf("refusals %v, want five", waits)
	}
}

// Acceptance row 17: an oversized event is poison after five tries, later ones pass
// it, replaying and dropping it are audited, and only its own tenant can.
func TestRow17OversizedEvent(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	noteRefusals(p)
	id, digest := insertOversizeEvent(t, p, "default")
	p.Notice("JPCP", "abc")
	testenv.Eventually(t, 15*time.Second, func() error {
		box := p.Health()["runtime"].(map[string]any)["outbox"].(map[string]any)
		if n, _ := box["published"].(float64); n < 2 {
			return fmt.Errorf("later events wait: %v", box)
		}
		return nil
	})
	expectPoisonedAfterRetries(t, p, id)

	path := "/outbox/" + id.String()
	list := p.Want(200, "GET", "/outbox", controlplanetest.Reader, nil).Object(t)["items"].([]any)
	if len(list) != 1 {
		t.Fatalf("%d poison rows; want 1", len(list))
	}
	e := list[0].(map[string]any)
	if e["id"] != id.String() || e["state"] != "poison" || e["refusals"] != 5.0 || e["payload"] != nil || e["payload_bytes"].(float64) < float64(outbox.MaxMessage) ||
		e["digest"] != digest || !strings.Contains(e["last_error"].(string), "bytes") || !strings.HasSuffix(e["poison_at"].(string), "Z") {
		t.Errorf(`row %v; want e["id"] == id.String() && e["state"] == "poison" && e["refusals"] == 5.0 && e["payload"] == nil && e["payload_bytes"].(float64) >= float64(outbox.MaxMessage) && …`, e)
	}
	if items := p.Want(200, "GET", "/outbox?state=poison", controlplanetest.Foreign, nil).Object(t)["items"].([]any); len(items) != 0 {
		t.Errorf("another tenant sees %v; want len(items) == 0", items)
	}
	for _, r := range [][2]string{{"POST", path + "/replay"}, {"DELETE", path}} {
		p.Refused(404, "event_not_found", r[0], r[1], controlplanetest.Foreign, nil)
		p.Refused(403, "insufficient_scope", r[0], r[1], controlplanetest.Reader, nil)
	}
	testenv.Eventually(t, 10*time.Second, func() error {
		metrics := string(p.Want(200, "GET", "/metrics", "", nil).Body)
		for _, line := range []string{`platform_outbox_rows{state="poison"} 1`, "platform_outbox_refused_total 5"} {
			if !strings.Contains(metrics, line+"\n") {
				return fmt.Errorf("metrics lack %s", line)
			}
		}
		return nil
	})

	if again := p.Want(200, "POST", path+"/replay", controlplanetest.Operator, nil).Object(t); again["state"] != "pending" || again["refusals"] != 0.0 || again["poison_at"] != nil {
		t.Errorf(`replayed: %v; want again["state"] == "pending" && again["refusals"] == 0.0 && again["poison_at"] == nil`, again)
	}
	p.Refused(409, "event_not_poison", "DELETE", path, controlplanetest.Operator, nil)
	expectPoisonedAfterRetries(t, p, id) // its cause is still there
	p.Want(204, "DELETE", path, controlplanetest.Operator, nil)
	p.Refused(404, "event_not_found", "DELETE", path, controlplanetest.Operator, nil)

	for action, outcome := range map[string]string{"outbox.replayed": "ok", "outbox.drop": "denied", "outbox.dropped": "ok"} {
		facts := p.Audits(action)
		if len(facts) != 1 {
			t.Fatalf("%s: %v; want len(facts) == 1", action, facts)
		}
		f := facts[0]
		d := f["details"].(map[string]any)
		if f["actor"] != "operator" || f["tenant"] != "default" || f["outcome"] != outcome || f["target"] != "event:"+id.String() ||
			d["digest"] != digest || d["event"] != "job.started" || d["event_tenant"] != "default" {
			t.Errorf(`%s: %v; want f["actor"] == "operator" && f["tenant"] == "default" && f["outcome"] == outcome && f["target"] == "event:" + id.String() && d["digest"] == digest && …`, action, f)
		}
		if outcome == "ok" && (d["state"] != "poison" || d["refusals"] != 5.0) {
			t.Errorf(`%s does not tell what was: %v; want (outcome != "ok" || !d["state"] != "poison" || d["refusals"] != 5.0)`, action, d)
		}
	}
}

// Every tenant sees the platform's facts, but only the legacy credential, which sees and moves all rows, may move them;
// the ledger shows each move to the row's readers.
func TestOutboxTenants(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "EVENT_RELAY_ENABLED=false")
	rows := map[string]string{}
	for _, tenant := range []string{"default", "other", "platform"} {
		id, _ := insertOversizeEvent(t, p, tenant)
		rows[tenant] = "/outbox/" + id.String()
		p.SQL("update control_plane.outbox set poison_at = now(), refusals = 5 where id = $1", id)
	}
	for bearer, want := range map[string][]string{
		controlplanetest.Reader: {"default", "platform"}, controlplanetest.Foreign: {"other", "platform"}, controlplanetest.Legacy: {"default", "other", "platform"},
	} {
		var got []string
		cursor := ""
		for {
			page := p.Want(200, "GET", "/outbox?limit=1&cursor="+cursor, bearer, nil)
			out := page.Object(t)
			for _, item := range out["items"].([]any) {
				got = append(got, item.(map[string]any)["tenant"].(string))
			}
			next, more := out["next_cursor"].(string)
			if cursor = next; !more {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s sees %v, want %v", bearer, got, want)
		}
	}
	pending := p.Want(200, "GET", "/outbox?state=pending&limit=500", controlplanetest.Foreign, nil).Object(t)["items"].([]any)
	for _, item := range pending {
		if tenant := item.(map[string]any)["tenant"]; tenant != "other" && tenant != "platform" {
			t.Errorf(`another tenant sees an event of %v; want (tenant == "other" || tenant == "platform")`, tenant)
		}
	}

	for _, tenant := range []string{"default", "platform"} {
		p.Refused(404, "event_not_found", "POST", rows[tenant]+"/replay", controlplanetest.Foreign, nil)
		p.Refused(404, "event_not_found", "DELETE", rows[tenant], controlplanetest.Foreign, nil)
	}
	p.SQL("update control_plane.outbox set published_at = now(), poison_at = null where tenant in ('platform', 'default')")
	window := map[string]any{"from": time.Now().Add(-time.Hour), "to": time.Now().Add(time.Hour)}
	if out := p.Want(200, "POST", "/outbox/republish", controlplanetest.Foreign, window).Object(t); out["republished"] != 0.0 {
		t.Errorf(`another tenant republished %v; want out["republished"] == 0.0`, out)
	}
	if out := p.Want(200, "POST", "/outbox/republish", controlplanetest.Legacy, window).Object(t); out["republished"].(float64) < 2 {
		t.Errorf(`the legacy credential republished %v; want out["republished"].(float64) >= 2`, out)
	}
	p.SQL("update control_plane.outbox set poison_at = now() where tenant = 'platform'")
	p.Want(200, "POST", rows["platform"]+"/replay", controlplanetest.Legacy, nil)
	p.SQL("update control_plane.outbox set poison_at = now() where tenant = 'platform'")
	p.Want(204, "DELETE", rows["platform"], controlplanetest.Legacy, nil)
	p.Want(204, "DELETE", rows["other"], controlplanetest.Foreign, nil)
	for action, want := range map[string]string{
		"outbox.republished": "[other mallory <nil>][platform legacy default]", "outbox.replayed": "[platform legacy default]",
		"outbox.dropped": "[platform legacy default][other mallory <nil>]",
	} {
		got := ""
		for _, f := range p.Audits(action) {
			got += fmt.Sprint([]any{f["tenant"], f["actor"], f["details"].(map[string]any)["actor_tenant"]})
		}
		if got != want {
			t.Errorf("%s: %s, want %s", action, got, want)
		}
	}
}

// Events that the broker may have lost are sent again: those of the caller's tenant, within the window.
func TestRepublish(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	begin := time.Now().Add(-time.Minute)
	p.Notice("JPCP", "abc")
	published := func() (n int) {
		for _, item := range p.Want(200, "GET", "/outbox?state=published&limit=500", controlplanetest.Operator, nil).Object(t)["items"].([]any) {
			if item.(map[string]any)["tenant"] == "default" { // the operator may not move the platform's
				n++
			}
		}
		return n
	}
	settled := func() {
		testenv.Eventually(t, 15*time.Second, func() error {
			if n := len(p.Want(200, "GET", "/outbox?state=pending", controlplanetest.Legacy, nil).Object(t)["items"].([]any)); n != 0 {
				return fmt.Errorf("%d pending", n)
			}
			return nil
		})
	}
	settled()
	before := published()
	if before < 2 {
		t.Fatalf("%d events published; want before >= 2", before)
	}
	window := map[string]any{"from": begin, "to": time.Now().Add(time.Minute)}
	out := p.Want(200, "POST", "/outbox/republish", controlplanetest.Operator, window).Object(t)
	if out["republished"] != float64(before) {
		t.Errorf(`%v of %d; want out["republished"] == float64(before)`, out, before)
	}
	settled()
	if n := published(); n != before+1 { // and the audit fact
		t.Errorf("%d published, want %d", n, before+1)
	}
	facts := p.Audits("outbox.republished")
	if len(facts) != 1 || facts[0]["actor"] != "operator" || facts[0]["details"].(map[string]any)["events"] != float64(before) {
		t.Errorf(`audit %v; want len(facts) == 1 && facts[0]["actor"] == "operator" && facts[0]["details"].(map[string]any)["events"] == float64(before)`, facts)
	}
	old := map[string]any{"from": begin.Add(-time.Hour), "to": begin}
	if out := p.Want(200, "POST", "/outbox/republish", controlplanetest.Operator, old).Object(t); out["republished"] != 0.0 {
		t.Errorf(`outside of the window: %v; want out["republished"] == 0.0`, out)
	}
	for _, c := range []struct {
		body  any
		field string
	}{
		{map[string]any{"to": begin}, "from"}, {map[string]any{"from": begin}, "to"}, {map[string]any{"from": begin, "to": begin}, "to"},
		{map[string]any{"from": "yesterday", "to": begin}, "from"}, {map[string]any{"from": begin, "to": begin, "tenant": "other"}, "tenant"}, {nil, "body"},
	} {
		r := p.Refused(http.StatusUnprocessableEntity, "validation_error", "POST", "/outbox/republish", controlplanetest.Operator, c.body)
		if !strings.Contains(string(r.Body), c.field) {
			t.Errorf("%v: %s does not name %s; want strings.Contains(string(r.Body), c.field)", c.body, r.Body, c.field)
		}
	}
	p.Refused(422, "validation_error", "GET", "/outbox?state=lost", controlplanetest.Reader, nil)
	p.Refused(422, "validation_error", "GET", "/outbox?limit=501", controlplanetest.Reader, nil)
	p.Refused(422, "validation_error", "GET", "/outbox?cursor=x", controlplanetest.Reader, nil)
	p.Refused(404, "event_not_found", "POST", "/outbox/no-uuid/replay", controlplanetest.Operator, nil)
	p.Refused(404, "event_not_found", "DELETE", "/outbox/"+uuid.NewString(), controlplanetest.Operator, nil)
}
