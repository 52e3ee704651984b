package app_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/planetest"
)

func TestMain(m *testing.M) { planetest.Main(m) }

// row reads columns of one row of the outbox.
func row(t *testing.T, p *planetest.Plane, columns string, id uuid.UUID, into ...any) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.Database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(t.Context()) }()
	return conn.QueryRow(t.Context(), "select "+columns+" from control_plane.outbox where id = $1", id).Scan(into...)
}

// oversize puts an event into the outbox that no broker takes. No request can
// make one that large: bodies are bounded well below.
func oversize(t *testing.T, p *planetest.Plane, tenant string) (uuid.UUID, string) {
	t.Helper()
	id := uuid.Must(uuid.NewV7())
	p.SQL(`insert into control_plane.outbox (id, tenant, namespace, name, payload, actor)
		values ($1, $2, 'job', 'started', jsonb_build_object('text', repeat('x', $3)), 'alice')`, id, tenant, outbox.MaxMessage)
	sum := sha256.Sum256([]byte(`{"text": "` + strings.Repeat("x", outbox.MaxMessage) + `"}`))
	return id, hex.EncodeToString(sum[:])
}

// poisoned waits until the relay has given the row up, after exactly five tries.
// Each wait between tries is looked at, then cut short.
func poisoned(t *testing.T, p *planetest.Plane, id uuid.UUID) {
	t.Helper()
	for n := 1; n <= 5; n++ {
		var wait float64
		var poison bool
		testenv.Eventually(t, 20*time.Second, func() error {
			var refusals int
			// Of the try itself, so that it does not matter when the test looks.
			if err := row(t, p, "refusals, extract(epoch from next_attempt_at - now())::float8, poison_at is not null", id, &refusals, &wait, &poison); err != nil {
				return err
			}
			if refusals < n {
				return fmt.Errorf("%d refusals, want %d", refusals, n)
			}
			if refusals > n {
				t.Fatalf("%d refusals, and the wait after %d was not kept", refusals, n)
			}
			return nil
		})
		if limit := float64(int(1) << n); poison != (n == 5) || wait > limit || wait < limit-2 && n > 1 {
			t.Fatalf("after %d refusals: %.2f s until the next try, want %g; poison %t", n, wait, limit, poison)
		}
		p.SQL("update control_plane.outbox set next_attempt_at = now() where id = $1", id)
	}
}

// Acceptance row 17: an oversized event is poison after five tries, later ones pass
// it, replaying and dropping it are audited, and only its own tenant can.
func TestRow17OversizedEvent(t *testing.T) {
	t.Parallel()
	p := planetest.Start(t)
	id, digest := oversize(t, p, "default")
	p.Notice("JPCP", "abc")
	testenv.Eventually(t, 15*time.Second, func() error {
		box := p.Health()["runtime"].(map[string]any)["outbox"].(map[string]any)
		if box["published"].(float64) < 2 {
			return fmt.Errorf("later events wait: %v", box)
		}
		return nil
	})
	poisoned(t, p, id)

	path := "/outbox/" + id.String()
	list := p.Want(200, "GET", "/outbox", planetest.Reader, nil).Object(t)["items"].([]any)
	if len(list) != 1 {
		t.Fatalf("%d poison rows", len(list))
	}
	e := list[0].(map[string]any)
	if e["id"] != id.String() || e["state"] != "poison" || e["refusals"] != 5.0 || e["payload"] != nil || e["payload_bytes"].(float64) < float64(outbox.MaxMessage) ||
		e["digest"] != digest || !strings.Contains(e["last_error"].(string), "bytes") || !strings.HasSuffix(e["poison_at"].(string), "Z") {
		t.Errorf("row %v", e)
	}
	if items := p.Want(200, "GET", "/outbox?state=poison", planetest.Foreign, nil).Object(t)["items"].([]any); len(items) != 0 {
		t.Errorf("another tenant sees %v", items)
	}
	for _, r := range [][2]string{{"POST", path + "/replay"}, {"DELETE", path}} {
		p.Refused(404, "event_not_found", r[0], r[1], planetest.Foreign, nil)
		p.Refused(403, "insufficient_scope", r[0], r[1], planetest.Reader, nil)
	}
	metrics := string(p.Want(200, "GET", "/metrics", "", nil).Body)
	for _, line := range []string{`platform_outbox_rows{state="poison"} 1`, "platform_outbox_refused_total 5"} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("metrics lack %s", line)
		}
	}

	if again := p.Want(200, "POST", path+"/replay", planetest.Operator, nil).Object(t); again["state"] != "pending" || again["refusals"] != 0.0 || again["poison_at"] != nil {
		t.Errorf("replayed: %v", again)
	}
	p.Refused(409, "event_not_poison", "DELETE", path, planetest.Operator, nil)
	poisoned(t, p, id) // its cause is still there
	p.Want(204, "DELETE", path, planetest.Operator, nil)
	p.Refused(404, "event_not_found", "DELETE", path, planetest.Operator, nil)

	for action, outcome := range map[string]string{"outbox.replayed": "ok", "outbox.drop": "denied", "outbox.dropped": "ok"} {
		facts := p.Audits(action)
		if len(facts) != 1 {
			t.Fatalf("%s: %v", action, facts)
		}
		f := facts[0]
		d := f["details"].(map[string]any)
		if f["actor"] != "operator" || f["tenant"] != "default" || f["outcome"] != outcome || f["target"] != "event:"+id.String() ||
			d["digest"] != digest || d["event"] != "job.started" || d["event_tenant"] != "default" {
			t.Errorf("%s: %v", action, f)
		}
		if outcome == "ok" && (d["state"] != "poison" || d["refusals"] != 5.0) {
			t.Errorf("%s does not tell what was: %v", action, d)
		}
	}
}

// Facts of the platform are everybody's to mend; the legacy credential sees all.
func TestOutboxTenants(t *testing.T) {
	t.Parallel()
	p := planetest.Start(t, "EVENT_RELAY_ENABLED=false")
	for _, tenant := range []string{"default", "other", "platform"} {
		id, _ := oversize(t, p, tenant)
		p.SQL("update control_plane.outbox set poison_at = now(), refusals = 5 where id = $1", id)
	}
	for bearer, want := range map[string][]string{
		planetest.Reader: {"default", "platform"}, planetest.Foreign: {"other", "platform"}, planetest.Legacy: {"default", "other", "platform"},
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
	pending := p.Want(200, "GET", "/outbox?state=pending&limit=500", planetest.Foreign, nil).Object(t)["items"].([]any)
	for _, item := range pending {
		if tenant := item.(map[string]any)["tenant"]; tenant != "other" && tenant != "platform" {
			t.Errorf("another tenant sees an event of %v", tenant)
		}
	}
}

// What the broker may have lost is sent once more: of the caller's tenant, within the window.
func TestRepublish(t *testing.T) {
	t.Parallel()
	p := planetest.Start(t)
	begin := time.Now().Add(-time.Minute)
	p.Notice("JPCP", "abc")
	published := func() int {
		return len(p.Want(200, "GET", "/outbox?state=published&limit=500", planetest.Operator, nil).Object(t)["items"].([]any))
	}
	settled := func() {
		testenv.Eventually(t, 15*time.Second, func() error {
			if n := len(p.Want(200, "GET", "/outbox?state=pending", planetest.Legacy, nil).Object(t)["items"].([]any)); n != 0 {
				return fmt.Errorf("%d pending", n)
			}
			return nil
		})
	}
	settled()
	before := published()
	if before < 2 {
		t.Fatalf("%d events published", before)
	}
	window := map[string]any{"from": begin, "to": time.Now().Add(time.Minute)}
	out := p.Want(200, "POST", "/outbox/republish", planetest.Operator, window).Object(t)
	if out["republished"] != float64(before) {
		t.Errorf("%v of %d", out, before)
	}
	settled()
	if n := published(); n != before+1 { // and the audit fact
		t.Errorf("%d published, want %d", n, before+1)
	}
	facts := p.Audits("outbox.republished")
	if len(facts) != 1 || facts[0]["actor"] != "operator" || facts[0]["details"].(map[string]any)["events"] != float64(before) {
		t.Errorf("audit %v", facts)
	}
	old := map[string]any{"from": begin.Add(-time.Hour), "to": begin}
	if out := p.Want(200, "POST", "/outbox/republish", planetest.Operator, old).Object(t); out["republished"] != 0.0 {
		t.Errorf("outside of the window: %v", out)
	}
	for _, c := range []struct {
		body  any
		field string
	}{
		{map[string]any{"to": begin}, "from"}, {map[string]any{"from": begin}, "to"}, {map[string]any{"from": begin, "to": begin}, "to"},
		{map[string]any{"from": "yesterday", "to": begin}, "from"}, {map[string]any{"from": begin, "to": begin, "tenant": "other"}, "tenant"}, {nil, "body"},
	} {
		r := p.Refused(http.StatusUnprocessableEntity, "validation_error", "POST", "/outbox/republish", planetest.Operator, c.body)
		if !strings.Contains(string(r.Body), c.field) {
			t.Errorf("%v: %s does not name %s", c.body, r.Body, c.field)
		}
	}
	p.Refused(422, "validation_error", "GET", "/outbox?state=lost", planetest.Reader, nil)
	p.Refused(422, "validation_error", "GET", "/outbox?limit=501", planetest.Reader, nil)
	p.Refused(422, "validation_error", "GET", "/outbox?cursor=x", planetest.Reader, nil)
	p.Refused(404, "event_not_found", "POST", "/outbox/no-uuid/replay", planetest.Operator, nil)
	p.Refused(404, "event_not_found", "DELETE", "/outbox/"+uuid.NewString(), planetest.Operator, nil)
}
