package evidenceapi_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/store"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
	"github.com/mlp-platform/platform/services/evidence-api/internal/evidenceapitest"
)

// editStore changes a store behind the server's back, as SQL.
func editStore(t testing.TB, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// replaceBytes changes bytes of the file itself, as a disk fault or an intruder would. Both texts have the same
// length.
func replaceBytes(t testing.TB, path, old, new string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(text, []byte(old))
	if at < 0 || len(old) != len(new) {
		t.Fatalf("the file has no %q; want at >= 0 && len(old) == len(new)", old)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(new), int64(at)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func writeStore(t testing.TB, path string, act func(context.Context, *store.Writer) error) {
	t.Helper()
	w, err := store.OpenWriter(t.Context(), path, store.WriterOptions{})
	if err == nil {
		err = act(t.Context(), w)
		if end := w.Close(); err == nil {
			err = end
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRow27NoStore(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, evidenceapitest.NoStore)
	for _, path := range []string{"runs", "runs?limit=x", "runs/none", "runs/none/attempts", "runs/none/evidence", "work-units", "work-units/x",
		"projects/x", "connections", "connections/x", "events", "events/stream", "events/checkpoint", "events/evt-000000000001/proof"} {
		tw.Get("/api/v1/"+path).Want(503, "product_spine_store_not_configured") // the harness holds Retry-After
	}
}

func TestRow28Limits(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for i := range 201 { // one more than the largest page
		createRun(t, tw.Store, fmt.Sprintf("run/many:%04d", i))
	}
	for _, path := range []string{"runs", "events"} {
		r := tw.Get("/api/v1/"+path+"?limit=200").Want(200, "")
		if r.At("items", 199) == "" || r.At("items", 200) != "" || r.At("next_cursor") == "null" {
			t.Errorf(`%s: not 200 on the page; want r.At("items", 199) != "" && r.At("items", 200) == "" && r.At("next_cursor") != "null"`, path)
		}
	}
	for _, path := range []string{"runs", "work-units", "connections", "events"} {
		for _, limit := range []string{"0", "201", "x", "+5", "%2B5", "", "%20", "-1", "1.0", "0000000001", "1%00", "٣"} {
			r := tw.Get("/api/v1/"+path+"?limit="+url.PathEscape(limit)).Want(400, "invalid_limit")
			if got := r.At("error", "details"); got != `{"maximum":200,"minimum":1}` {
				t.Error(got, "want `{\"maximum\":200,\"minimum\":1}`")
			}
		}
		for limit, want := range map[string]string{"1": "1", "200": "200", "000000007": "7"} {
			if got := tw.Get("/api/v1/"+path+"?limit="+limit).Want(200, "").At("page", "limit"); got != want {
				t.Errorf("%s: %s; want got == %v", limit, got, want)
			}
		}
		if got := tw.Get("/api/v1/"+path).Want(200, "").At("page", "limit"); got != "50" {
			t.Errorf(`the default is %s; want "50"`, got)
		}
	}
}

func TestRow29Filters(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for query, code := range map[string]string{
		"runs?state=nope": "invalid_state", "runs?state=": "invalid_state", "runs?state=%20": "invalid_state",
		"runs?project_id=%20": "invalid_filter", "work-units?project_id=": "invalid_filter", "events?run_id=+": "invalid_filter",
		"events?work_unit_id=%09": "invalid_filter", "events?event_type=run.x": "invalid_event_type", "events?event_type=": "invalid_event_type",
		// Values are looked at in one order, whatever the order of the query.
		"runs?project_id=&state=x&cursor=x&limit=0": "invalid_limit", "runs?project_id=&state=x&cursor=x": "invalid_cursor",
		"runs?project_id=&state=x": "invalid_state", "events?event_type=x&work_unit_id=": "invalid_filter", "runs?cursor=": "invalid_cursor",
	} {
		tw.Get("/api/v1/"+query).Want(400, code)
	}
	if got := tw.Get("/api/v1/events?event_type=x").At("error", "details"); got != `{"allowed":["run.cancelled","run.created"]}` {
		t.Error(got, "want `{\"allowed\":[\"run.cancelled\",\"run.created\"]}`")
	}
	if got := tw.Get("/api/v1/runs?state=x").At("error", "details", "allowed", 13); got == "" {
		t.Error("not all 14 states are named")
	}
}

// itemStrings gives a page's items, each by this key.
func itemStrings(r *evidenceapitest.Response, key string) (out []string) {
	for i := 0; ; i++ {
		s := r.At("items", i, key)
		if s == "" {
			return out
		}
		out = append(out, strings.Trim(s, `"`))
	}
}

func TestRow30Pages(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for path, key := range map[string]string{"runs": "run_id", "work-units": "id", "connections": "id", "events": "event_id"} {
		whole := itemStrings(tw.Get("/api/v1/"+path).Want(200, ""), key)
		var seen []string
		cursor := ""
		for {
			r := tw.Get("/api/v1/"+path+"?limit=1"+cursor).Want(200, "")
			seen = append(seen, itemStrings(r, key)...)
			next := r.At("next_cursor")
			if next != r.At("page", "next_cursor") {
				t.Errorf(`two cursors: %s; want next == r.At("page", "next_cursor")`, r.Body)
			}
			if next == "null" {
				break
			}
			if cursor = "&cursor=" + strings.Trim(next, `"`); len(seen) > len(whole) {
				t.Fatal("no end")
			}
		}
		if fmt.Sprint(seen) != fmt.Sprint(whole) || len(whole) == 0 {
			t.Errorf("%s: %v, want %v", path, seen, whole)
		}
	}
	if got := fmt.Sprint(itemStrings(tw.Get("/api/v1/runs"), "run_id")); got != "[run/demo:0001 run/demo:0002 run/demo:0003]" {
		t.Error(got, `want "[run/demo:0001 run/demo:0002 run/demo:0003]"`)
	}
}

func TestRow31Cursors(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	cursor := strings.Trim(tw.Get("/api/v1/runs?limit=1").At("next_cursor"), `"`)
	raw, err := base64.URLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatal(err)
	}
	altered := base64.URLEncoding.EncodeToString(bytes.Replace(raw, []byte("0001"), []byte("0002"), 1))
	for _, q := range []string{"events?cursor=" + cursor, "work-units?cursor=" + cursor, "connections?cursor=" + cursor,
		"runs?cursor=" + altered, "runs?cursor=x", "runs?cursor=%20" + cursor, "runs?cursor=" + strings.TrimRight(cursor, "=") + "%0A"} {
		tw.Get("/api/v1/"+q).Want(400, "invalid_cursor")
	}
	// The fixtures' key is the one of the published vector.
	if want := "eyJhZnRlciI6InJ1bi9kZW1vOjAwMDEiLCJraW5kIjoicHJvZHVjdC1zcGluZS1ydW4tbGlzdC1jdXJzb3ItdjEiLCJtYWMiOiJmMmUzMTJhYzRjNjI2MmU0YWUxNDJkNjE5OTMyYTRkOSJ9"; cursor != want {
		t.Error(cursor, "want", want)
	}
}

func TestRow32CursorsOutliveTheServer(t *testing.T) {
	t.Parallel()
	first := evidenceapitest.Start(t)
	cursor := strings.Trim(first.Get("/api/v1/runs?limit=1").At("next_cursor"), `"`)
	first.Drain()
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	again := evidenceapitest.Start(t, evidenceapitest.At(first.Store))
	if got := fmt.Sprint(itemStrings(again.Get("/api/v1/runs?cursor="+cursor).Want(200, ""), "run_id")); got != "[run/demo:0002 run/demo:0003]" {
		t.Error(got, `want "[run/demo:0002 run/demo:0003]"`)
	}
}

func TestRow33NoMatchIsAnEmptyPage(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for _, q := range []string{"runs?project_id=unknown", "runs?state=decided", "work-units?project_id=%00", "events?run_id=none"} {
		if got := tw.Get("/api/v1/"+q).Want(200, "").At("items"); got != "[]" {
			t.Error(got, `want "[]"`)
		}
	}
}

func TestRow34RunByEitherSpelling(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	plain, escaped := tw.Get("/api/v1/runs/run/demo:0001").Want(200, ""), tw.Get("/api/v1/runs/run%2Fdemo%3A0001").Want(200, "")
	if !bytes.Equal(plain.Body, escaped.Body) {
		t.Error("two answers")
	}
	if plain.At("run", "state") != `"proposed"` || plain.At("create_request_digest") != `"sha256:de61a65aba8edd1971f333a21f2ba1a694c7a0a26dd147277934704bae013f1f"` {
		t.Errorf("%s; want plain.At(\"run\", \"state\") == `\"proposed\"` && plain.At(\"create_request_digest\") == `\"sha256:de61a65aba8edd1971f333a21f2ba1a694c7a0a26dd147277934704bae013f1f\"`", plain.Body)
	}
	if got := tw.Get("/api/v1/runs/run/demo:0001/attempts").Want(200, "").At("attempts"); got != "[]" {
		t.Error(got, `want "[]"`)
	}
	// The longest identifier, and one that ends like a sub-resource.
	for id, path := range map[string]string{strings.Repeat("r", 192): strings.Repeat("r", 192), "run/attempts": "run%2Fattempts"} {
		createRun(t, tw.Store, id)
		if got := tw.Get("/api/v1/runs/"+path).Want(200, "").At("run", "run_id"); got != `"`+id+`"` {
			t.Error(got, "want got == `\"` + id + `\"`")
		}
	}
}

func TestRow35NotFound(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for _, id := range []string{"none", "%20", "a%zz", "%", "..%2f..", "%00", strings.Repeat("a", 193), strings.Repeat("a", 300), "%C3%A9"} {
		tw.Get("/api/v1/runs/"+id).Want(404, "run_not_found")
		tw.Get("/api/v1/runs/"+id+"/attempts").Want(404, "run_not_found")
		tw.Get("/api/v1/runs/"+id+"/evidence").Want(404, "run_not_found")
		tw.Get("/api/v1/work-units/"+id).Want(404, "work_unit_not_found")
		tw.Get("/api/v1/projects/"+id).Want(404, "project_not_found")
		tw.Get("/api/v1/connections/"+id).Want(404, "connection_not_found")
		tw.Get("/api/v1/events/"+id+"/proof").Want(404, "event_not_found")
	}
}

const run2 = "/api/v1/runs/run/demo:0002"

func TestRow36Evidence(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	tw.Get("/api/v1/runs/run/demo:0001/evidence").Want(404, "evidence_not_available")
	r := tw.Get(run2+"/evidence").Want(200, "")
	report, _ := r.JSON().Get("evidence_report")
	if r.At("evidence_report_digest") != `"`+canon.Digest(report)+`"` || canon.Digest(report) != fixture.Report().Digest() {
		t.Errorf("%s; want r.At(\"evidence_report_digest\") == `\"` + canon.Digest(report) + `\"` && canon.Digest(report) == fixture.Report().Digest()", r.Body)
	}
}

// answersWithin checks every answer of a tower against a bound, when the test has ended. It uses the tower's own
// clock: how long a client waits for the machine does not measure the server.
func answersWithin(t *testing.T, bound time.Duration) evidenceapitest.Option {
	log := &evidenceapitest.Log{}
	t.Cleanup(func() {
		if log.String() == "" {
			t.Error("there is no access log")
		}
		for line := range strings.Lines(log.String()) {
			var entry struct {
				Duration float64 `json:"duration_ms"`
			}
			if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Duration > float64(bound.Milliseconds()) {
				t.Errorf("not answered within %v: %s %v; want entry.Duration <= float64(bound.Milliseconds())", bound, line, err)
			}
		}
	})
	return func(c *evidenceapi.Config) { c.AccessLog = log }
}

// settleAnswer reads the same until the last change of the store is long enough ago for the
// server to keep its answer.
func settleAnswer(t *testing.T, tw *evidenceapitest.Tower, target string) {
	t.Helper()
	pollUntil(t, func() bool {
		tw.Get(target)
		info, err := os.Stat(tw.Store)
		return err == nil && time.Since(info.ModTime()) > 200*time.Millisecond
	})
}

// TestRow37ChangedReport changes one byte of the file while the server runs, and back.
func TestRow37ChangedReport(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for range 20 { // every connection has read it
		tw.Get(run2+"/evidence").Want(200, "")
	}
	const old, new = "Worker success is not verified correctness.", "Worker success is now verified correctness."
	for range 3 {
		settleAnswer(t, tw, run2+"/evidence")
		replaceBytes(t, tw.Store, old, new)
		for range 20 {
			tw.Get(run2+"/evidence").Want(500, "evidence_integrity_error")
			tw.Get(run2).Want(200, "")
			tw.Get(run2+"/attempts").Want(200, "")
		}
		settleAnswer(t, tw, run2+"/evidence")
		replaceBytes(t, tw.Store, new, old)
		tw.Get(run2+"/evidence").Want(200, "")
	}
	editStore(t, tw.Store, `UPDATE runs SET metadata_json = json_remove(metadata_json, '$.evidence_report') WHERE run_id = 'run/demo:0002'`)
	tw.Get(run2+"/evidence").Want(500, "evidence_integrity_error")
	tw.Get(run2).Want(200, "")
}

func TestRow38ChangedRow(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	editStore(t, tw.Store, `UPDATE runs SET state = 'decided' WHERE run_id = 'run/demo:0001'`)
	for _, path := range []string{"runs/run/demo:0001", "runs/run/demo:0001/attempts", "runs", "work-units", "projects/project/demo"} {
		r := tw.Get("/api/v1/"+path).Want(400, "persisted_state_corrupt")
		if r.At("error", "details", "id") != `"run/demo:0001"` || r.At("error", "details", "reason") == "" {
			t.Errorf("%s; want r.At(\"error\", \"details\", \"id\") == `\"run/demo:0001\"` && r.At(\"error\", \"details\", \"reason\") != \"\"", r.Body)
		}
	}
	tw.Get(run2).Want(200, "")

	// The page that holds it fails, and no other.
	other := evidenceapitest.Start(t)
	editStore(t, other.Store, `UPDATE runs SET state = 'decided' WHERE run_id = 'run/demo:0003'`)
	before := other.Get("/api/v1/runs?limit=2").Want(200, "")
	page := other.Get("/api/v1/runs?limit=2&cursor="+strings.Trim(before.At("next_cursor"), `"`)).Want(400, "persisted_state_corrupt")
	if page.At("error", "details", "id") != `"run/demo:0003"` {
		t.Errorf("%s; want page.At(\"error\", \"details\", \"id\") == `\"run/demo:0003\"`", page.Body)
	}
}

// TestRow38ChangedByte changes a byte of a row that the server has in its caches.
func TestRow38ChangedByte(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for range 20 {
		tw.Get("/api/v1/runs").Want(200, "")
	}
	const old, new = `"agent_candidate"`, `"agent_candidatf"`
	for range 3 {
		settleAnswer(t, tw, "/api/v1/runs")
		replaceBytes(t, tw.Store, old, new)
		for range 20 {
			tw.Get("/api/v1/runs").Want(400, "persisted_state_corrupt")
		}
		settleAnswer(t, tw, "/api/v1/runs")
		replaceBytes(t, tw.Store, new, old)
		for range 20 {
			tw.Get("/api/v1/runs").Want(200, "")
		}
	}
}

func TestRow39ForeignRow(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	for _, part := range []string{"", "/attempts", "/evidence"} {
		tw.Get("/api/v1/runs/"+store.FixtureForeignRow+part).Want(400, "not_product_spine_cli_run")
	}
	if got := fmt.Sprint(itemStrings(tw.Get("/api/v1/runs"), "run_id")); strings.Contains(got, store.FixtureForeignRow) {
		t.Error(got, "want !strings.Contains(got, store.FixtureForeignRow)")
	}
}

func TestRow40Derived(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	list := tw.Get("/api/v1/work-units").Want(200, "")
	one := tw.Get("/api/v1/work-units/work/demo-0001").Want(200, "")
	if list.At("items", 0) != one.At("work_unit") || one.At("work_unit", "run_count") != "3" || one.At("work_unit", "revisions", 0, "run_count") != "3" {
		t.Errorf("%s\n%s; want list.At(\"items\", 0) == one.At(\"work_unit\") && one.At(\"work_unit\", \"run_count\") == \"3\" && one.At(\"work_unit\", \"revisions\", 0, \"run_count\") == \"3\"", list.Body, one.Body)
	}
	p := tw.Get("/api/v1/projects/project/demo").Want(200, "")
	states, _ := p.JSON().Get("project")
	counts, _ := states.(*canon.Object).Get("runs_by_state")
	if counts.(*canon.Object).Len() != 14 || p.At("project", "runs_by_state", "awaiting_human_decision") != "1" || p.At("project", "work_unit_count") != "1" {
		t.Errorf(`%s; want counts.(*canon.Object).Len() == 14 && p.At("project", "runs_by_state", "awaiting_human_decision") == "1" && p.At("project", "work_unit_count") == "1"`, p.Body)
	}
}

func TestRow41ChangedConnector(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	if got := tw.Get("/api/v1/connections/demo-model").Want(200, "").At("connection", "project_spend_usd_max"); got != "5.0" {
		t.Error(got, `want "5.0"`)
	}
	editStore(t, tw.Store, `UPDATE connections SET metadata_json = json_set(metadata_json, '$.extra', 'x') WHERE connection_id = 'demo-model'`)
	for _, path := range []string{"connections/demo-model", "connections"} {
		if r := tw.Get("/api/v1/"+path).Want(500, "connection_record_invalid"); r.At("error", "details", "id") != `"demo-model"` {
			t.Errorf("%s; want r.At(\"error\", \"details\", \"id\") == `\"demo-model\"`", r.Body)
		}
	}
	tw.Get("/api/v1/connections/demo-agent").Want(200, "")
}

func TestRow42FaultyStore(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, answersWithin(t, 3*time.Second))
	fails := func(what string) {
		t.Helper()
		for _, path := range []string{"/api/v1/runs", run2, run2 + "/evidence", "/api/v1/events/stream"} {
			tw.Get(path).Want(500, "store_error")
			tw.Get("/readyz").Want(200, "")
		}
	}
	heals := func(what string) {
		t.Helper()
		if r := tw.Get(run2 + "/evidence"); r.Status != 200 {
			t.Errorf("%s and healed: %s; want r.Status == 200", what, r.Body)
		}
	}
	heals("whole")
	whole, err := os.ReadFile(tw.Store)
	if err != nil {
		t.Fatal(err)
	}
	put := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(tw.Store, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	db, err := sql.Open("sqlite", "file:"+tw.Store)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	fails("locked")
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	heals("locked")

	// A lock that is gone within the wait is waited for.
	if _, err := conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	began, rolledBack := time.Now(), make(chan error, 1)
	time.AfterFunc(500*time.Millisecond, func() {
		_, err := conn.ExecContext(context.Background(), "ROLLBACK")
		rolledBack <- err
	})
	heals("locked for a while")
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("answered after %v, from a locked store; want took >= 500 * time.Millisecond", took)
	}
	if err := <-rolledBack; err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	_ = db.Close()

	put(bytes.Repeat([]byte("garbage "), len(whole)/8))
	fails("garbage")
	put(whole)
	heals("garbage")

	put(whole[:len(whole)/2])
	fails("truncated")
	put(whole)
	heals("truncated")

	put(nil)
	fails("emptied")
	put(whole)
	heals("emptied")

	if err := os.Rename(tw.Store, tw.Store+".away"); err != nil {
		t.Fatal(err)
	}
	fails("removed")
	if err := os.Rename(tw.Store+".away", tw.Store); err != nil {
		t.Fatal(err)
	}
	heals("removed")

	editStore(t, tw.Store, "PRAGMA user_version = 4")
	fails("of a newer version")
	editStore(t, tw.Store, "PRAGMA user_version = 2")
	fails("of an older version")
	editStore(t, tw.Store, "PRAGMA user_version = 3")
	heals("versions")
}
