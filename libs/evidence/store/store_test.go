package store_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/libs/evidence/tree"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(churnPath); path != "" {
		createRuns(path, os.Getenv(churnName))
		return
	}
	os.Exit(m.Run())
}

// mustGet fails the test on an error.
func mustGet[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func wantCode(t testing.TB, err error, code store.Code) *store.Error {
	t.Helper()
	if store.CodeOf(err) != code {
		t.Fatalf("code %q (%v), want %q", store.CodeOf(err), err, code)
	}
	var e *store.Error
	errors.As(err, &e)
	return e
}

// fixtureStore makes the sample store.
func fixtureStore(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	if err := store.WriteFixtures(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return path
}

func openReader(t testing.TB, path string, wait time.Duration) *store.Reader {
	r := store.NewReader(path, wait)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func openWriter(t testing.TB, path string, o store.WriterOptions) *store.Writer {
	t.Helper()
	w, err := store.OpenWriter(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// openRaw opens the file behind the store's back.
func openRaw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db := mustGet(sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)"))
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func editStore(t testing.TB, path string, statements ...string) {
	t.Helper()
	db := openRaw(t, path)
	for _, s := range statements {
		if _, err := db.ExecContext(context.Background(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func numberedRun(n int) spine.Run {
	r := fixture.Run()
	r.RunID = fmt.Sprintf("run/test:%06d", n)
	return r
}

func pointerTo(s string) *string { return &s }

var at = mustGet(spine.ParseTime(fixture.CreatedAt))

func TestFixtureRunThroughTheStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a folder", "with ? and %41", "s.db")
	w := openWriter(t, path, store.WriterOptions{})
	out := mustGet(w.CreateRun(t.Context(), store.CreateRun{Projection: fixture.Run(), IdempotencyKey: " key ", At: at}))
	if !out.Created || out.Replayed || out.IdempotencyKey != "key" ||
		out.CreateRequestDigest != "sha256:de61a65aba8edd1971f333a21f2ba1a694c7a0a26dd147277934704bae013f1f" {
		t.Fatalf(`created %+v; want out.Created && !out.Replayed && out.IdempotencyKey == "key" && out.CreateRequestDigest == "sha256:de61a65aba8edd1971f333a21f2ba1a694c7a0a26dd147277934704bae013f1f"`, out)
	}
	cancelled := mustGet(w.CancelRun(t.Context(), "run/demo:0001", mustGet(spine.ParseTime(fixture.CancelledAt))))
	if !cancelled.Changed || cancelled.Projection.State != spine.Cancelled {
		t.Fatalf("cancelled %+v; want cancelled.Changed && cancelled.Projection.State == spine.Cancelled", cancelled)
	}
	if again := mustGet(w.CancelRun(t.Context(), "run/demo:0001", time.Time{})); again.Changed || again.UpdatedAt != fixture.CancelledAt {
		t.Fatalf("cancelled again %+v; want !again.Changed && again.UpdatedAt == fixture.CancelledAt", again)
	}
	r := openReader(t, path, store.ReadWait)
	page := mustGet(r.Events(t.Context(), store.EventQuery{}))
	if len(page.Items) != 2 || page.Next != "" {
		t.Fatalf(`%d events; want len(page.Items) == 2 && page.Next == ""`, len(page.Items))
	}
	first := page.Items[0]
	frame := fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", first.Sequence, first.Type, first.Envelope)
	sum := sha256.Sum256([]byte(frame))
	if len(first.Envelope) != 649 || len(frame) != 682 ||
		hex.EncodeToString(sum[:]) != "d13da651677c3b058e1adabded69d7db7775c29321870a5b2f53b5e2cd8eeb8e" {
		t.Fatalf(`frame of %d bytes: %s; want len(first.Envelope) == 649 && len(frame) == 682 && hex.EncodeToString(sum[:]) == "d13da651677c3b058e1adabded69d7db7775c29321870a5b2f53b5e2cd8eeb8e"`, len(frame), frame)
	}
	if !strings.Contains(string(page.Items[1].Envelope), "sha256:100433982768fdda4d0aa6c97f6c2024b8580e2b929aa2cee78d7d2bdc0d62c3") {
		t.Fatalf(`second event %s; want strings.Contains(string(page.Items[1].Envelope), "sha256:100433982768fdda4d0aa6c97f6c2024b8580e2b929aa2cee78d7d2bdc0d62c3")`, page.Items[1].Envelope)
	}
	c, path1, err := r.Checkpoint(t.Context(), 1)
	if err != nil || tree.Hex(c.Root) != "79a2b09fe3c620d751fb05c933d4c26c0117ee6d6ae4c480d73aee3805e27506" || c.TreeSize != 2 {
		t.Fatalf(`checkpoint %+v %v; want tree.Hex(c.Root) == "79a2b09fe3c620d751fb05c933d4c26c0117ee6d6ae4c480d73aee3805e27506" && c.TreeSize == 2`, c, err)
	}
	leaf := tree.Leaf(first.Envelope)
	if err := tlog.CheckTree(path1, 2, c.Root, 1, leaf); err != nil {
		t.Fatal(err)
	}
	proof := mustGet(r.Inclusion(t.Context(), first.ID))
	if err := tlog.CheckRecord(proof.Path, proof.TreeSize, proof.Root, 0, leaf); err != nil || proof.Leaf != leaf {
		t.Fatal(err, "want proof.Leaf == leaf")
	}
	wantClean(t, path)
	info := mustGet(os.Stat(path))
	if info.Mode().Perm() != 0o600 {
		t.Fatalf("the file that holds the cursor key has mode %v; want info.Mode().Perm() == 0o600", info.Mode())
	}
}

func wantClean(t testing.TB, path string) store.Verification {
	t.Helper()
	v, err := store.Verify(context.Background(), path, store.VerifyOptions{})
	if err != nil || !v.OK {
		t.Fatalf("verify: %+v, %v; want v.OK", v, err)
	}
	return v
}

// A digest without its report would be an altered store to every later look.
func TestCreateRefusesEvidence(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.db")
	w := openWriter(t, path, store.WriterOptions{})
	p := fixture.Run()
	p.EvidenceReportDigest = pointerTo(fixture.Digest("1"))
	_, err := w.CreateRun(t.Context(), store.CreateRun{Projection: p, IdempotencyKey: "k"})
	wantCode(t, err, store.InvalidRunEvidence)
	wantEmptyFolder(t, filepath.Dir(path))
}

func TestReplayAndConflict(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.db")
	w := openWriter(t, path, store.WriterOptions{})
	ctx := t.Context()
	mustGet(w.CreateRun(ctx, store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "one", At: at}))
	again := mustGet(w.CreateRun(ctx, store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "one"}))
	if again.Created || !again.Replayed || again.CreatedAt != fixture.CreatedAt {
		t.Fatalf("replay %+v; want !again.Created && again.Replayed && again.CreatedAt == fixture.CreatedAt", again)
	}
	before := mustGet(os.ReadFile(path))
	other := numberedRun(1)
	other.RequestDigest = fixture.Digest("f")
	_, err := w.CreateRun(ctx, store.CreateRun{Projection: other, IdempotencyKey: "one"})
	wantCode(t, err, store.IdempotencyConflict)
	_, err = w.CreateRun(ctx, store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "two"})
	wantCode(t, err, store.IdempotencyConflict)
	for _, key := range []string{"", "  ", "a\nb", strings.Repeat("k", 257)} {
		_, err = w.CreateRun(ctx, store.CreateRun{Projection: numberedRun(2), IdempotencyKey: key})
		wantCode(t, err, store.InvalidIdempotencyKey)
	}
	moved := numberedRun(3)
	moved.State = spine.Previewed
	_, err = w.CreateRun(ctx, store.CreateRun{Projection: moved, IdempotencyKey: "three"})
	wantCode(t, err, store.CreateRequiresProposed)
	moved.RunID = "no id"
	_, err = w.CreateRun(ctx, store.CreateRun{Projection: moved, IdempotencyKey: "three"})
	wantCode(t, err, spine.InvalidIdentifier)
	_, err = w.CreateRun(ctx, store.CreateRun{Projection: numberedRun(4), IdempotencyKey: "four", At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)})
	wantCode(t, err, store.InvalidTimestamp)
	_, err = w.CancelRun(ctx, "run/none", time.Time{})
	wantCode(t, err, store.RunNotFound)
	if string(before) != string(mustGet(os.ReadFile(path))) {
		t.Fatal("a refused write changed the file")
	}
	// A replay of a run that has moved on shows its current state.
	mustGet(w.CancelRun(ctx, numberedRun(1).RunID, time.Time{}))
	if moved := mustGet(w.CreateRun(ctx, store.CreateRun{Projection: numberedRun(1), IdempotencyKey: "one"})); moved.Projection.State != spine.Cancelled {
		t.Fatalf("replayed in state %s; want %v", moved.Projection.State, spine.Cancelled)
	}
	wantClean(t, path)
}

func TestImportEvidence(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.db")
	w := openWriter(t, path, store.WriterOptions{})
	ctx := t.Context()
	in := store.ImportEvidence{Report: fixture.Report().Value(), ProjectID: fixture.ProjectID, SourceRevision: fixture.SourceRevision, IdempotencyKey: "k"}

	altered := in
	document := canon.Clone(in.Report).(*canon.Object)
	document.Set("source_run_digest", fixture.Digest("e"))
	altered.Report = document
	projection := mustGet(fixture.Report().Run(fixture.ProjectID, fixture.SourceRevision, spine.AwaitingHumanDecision))
	altered.Projection = &projection
	_, err := w.ImportEvidence(ctx, altered)
	wantCode(t, err, store.InvalidRunEvidence)
	withRecord := in
	withRecord.SourceRunRecord = canon.NewObject(canon.Member{Key: "kind", Value: "svc-two-attempt-run"})
	_, err = w.ImportEvidence(ctx, withRecord)
	wantCode(t, err, store.InvalidRunEvidence)
	wrong := in
	wrong.State = spine.Proposed
	_, err = w.ImportEvidence(ctx, wrong)
	wantCode(t, err, store.InvalidState)
	wantEmptyFolder(t, filepath.Dir(path))

	out := mustGet(w.ImportEvidence(ctx, in))
	if out.CreateRequestDigest != "sha256:37c27f9f501f33b1dc6295a04e9262e183daa9d4bae0806a88f53c545ba83145" {
		t.Fatalf(`imported %+v; want out.CreateRequestDigest == "sha256:37c27f9f501f33b1dc6295a04e9262e183daa9d4bae0806a88f53c545ba83145"`, out)
	}
	if d := canon.Digest(out.Projection.Value()); d != "sha256:7c9ed5b443c91eab63ea558df849c1bc4b201f94e35e4fbc6057683cd33ba88d" {
		t.Fatalf(`projection %s; want "sha256:7c9ed5b443c91eab63ea558df849c1bc4b201f94e35e4fbc6057683cd33ba88d"`, d)
	}
	if again := mustGet(w.ImportEvidence(ctx, in)); !again.Replayed {
		t.Fatalf("replay %+v; want again.Replayed", again)
	}
	r := openReader(t, path, store.ReadWait)
	evidence := mustGet(r.Evidence(ctx, "run/demo:0002"))
	if evidence.Digest != "sha256:d3ee44db187a100d4803c8819f2b076cefc2cf7b21dd4ab4b5f5229dc3e9edec" || canon.Digest(evidence.Report) != evidence.Digest {
		t.Fatalf(`evidence %s; want evidence.Digest == "sha256:d3ee44db187a100d4803c8819f2b076cefc2cf7b21dd4ab4b5f5229dc3e9edec" && canon.Digest(evidence.Report) == evidence.Digest`, evidence.Digest)
	}
	event := mustGet(r.Events(ctx, store.EventQuery{})).Items[0]
	if !strings.Contains(string(event.Envelope), `"evidence_reference":{"digest":"`+evidence.Digest+`","kind":"svc-run-evidence-report"}`) ||
		!strings.Contains(string(event.Envelope), `"state":"awaiting_human_decision"`) {
		t.Fatalf("event %s; want strings.Contains(string(event.Envelope), `\"evidence_reference\":{\"digest\":\"`+evidence.Digest+`\",\"kind\":\"svc-run-evidence-report\"}`) && …", event.Envelope)
	}
	// Cancelled: the evidence stays.
	mustGet(w.CancelRun(ctx, "run/demo:0002", time.Time{}))
	mustGet(r.Evidence(ctx, "run/demo:0002"))
	wantClean(t, path)

	ready := filepath.Join(t.TempDir(), "ready.db")
	w2 := openWriter(t, ready, store.WriterOptions{})
	in.State = spine.EvidenceReady
	mustGet(w2.ImportEvidence(ctx, in))
	_, err = w2.CancelRun(ctx, "run/demo:0002", time.Time{})
	wantCode(t, err, store.CancelNotAllowed)
}

func TestFixturesAreTheSameBytes(t *testing.T) {
	t.Parallel()
	one, two := fixtureStore(t), fixtureStore(t)
	if string(mustGet(os.ReadFile(one))) != string(mustGet(os.ReadFile(two))) {
		t.Fatal("two fixture stores differ")
	}
	if err := store.WriteFixtures(t.Context(), one); err == nil {
		t.Fatal("a store was written over")
	}
	v := wantClean(t, one)
	want := store.Checked{Runs: 3, ForeignRows: 1, EvidenceReports: 1, IdempotencyKeys: 3, Connections: 4, Events: 4, Checkpoints: 5}
	if v.Checked != want {
		t.Fatalf("checked %+v; want %v", v.Checked, want)
	}
	w := openWriter(t, one, store.WriterOptions{})
	if err := store.Seed(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if again := wantClean(t, one); again.Checked != want {
		t.Fatalf("seeded twice: %+v; want %v", again.Checked, want)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	path := fixtureStore(t)
	r := openReader(t, path, store.ReadWait)
	ctx := t.Context()
	var ids []string
	q := store.RunQuery{Window: store.Window{Limit: 1}}
	var first string
	for {
		page := mustGet(r.Runs(ctx, q))
		for _, item := range page.Items {
			ids = append(ids, item.Projection.RunID)
		}
		if page.Next == "" {
			break
		}
		if first == "" {
			first = page.Next
		}
		q.Cursor = pointerTo(page.Next)
	}
	if strings.Join(ids, " ") != "run/demo:0001 run/demo:0002 run/demo:0003" {
		t.Fatalf(`runs %v; want strings.Join(ids, " ") == "run/demo:0001 run/demo:0002 run/demo:0003"`, ids)
	}
	// The fixture store's key is 00..1f, so its first cursor is the one of the vectors.
	if first != "eyJhZnRlciI6InJ1bi9kZW1vOjAwMDEiLCJraW5kIjoicHJvZHVjdC1zcGluZS1ydW4tbGlzdC1jdXJzb3ItdjEiLCJtYWMiOiJmMmUzMTJhYzRjNjI2MmU0YWUxNDJkNjE5OTMyYTRkOSJ9" {
		t.Fatalf(`cursor %s; want "eyJhZnRlciI6InJ1bi9kZW1vOjAwMDEiLCJraW5kIjoicHJvZHVjdC1zcGluZS1ydW4tbGlzdC1jdXJzb3ItdjEiLCJtYWMiOiJmMmUzMTJhYzRjNjI2MmU0YWUxNDJkNjE5OTMyYTRkOSJ9"`, first)
	}
	// Another reader, as after a restart, takes the cursor.
	if page := mustGet(openReader(t, path, store.ReadWait).Runs(ctx, store.RunQuery{Window: store.Window{Cursor: &first}})); len(page.Items) != 2 {
		t.Fatalf("%d runs after a restart; want 2", len(page.Items))
	}
	_, err := r.Events(ctx, store.EventQuery{Window: store.Window{Cursor: &first}})
	wantCode(t, err, store.InvalidCursor)
	for _, bad := range []string{"x", "", " ", first[:len(first)-4] + "AAAA"} {
		_, err = r.Runs(ctx, store.RunQuery{Window: store.Window{Cursor: &bad}})
		wantCode(t, err, store.InvalidCursor)
	}
	for _, limit := range []int{-1, 201} {
		_, err = r.Runs(ctx, store.RunQuery{Window: store.Window{Limit: limit}})
		wantCode(t, err, store.InvalidLimit)
	}
	_, err = r.Runs(ctx, store.RunQuery{State: pointerTo("nope")})
	if e := wantCode(t, err, store.InvalidState); len(e.Allowed) != 14 {
		t.Fatalf("allowed %v; want len(e.Allowed) == 14", e.Allowed)
	}
	_, err = r.Runs(ctx, store.RunQuery{ProjectID: pointerTo(" ")})
	wantCode(t, err, store.InvalidFilter)
	_, err = r.Events(ctx, store.EventQuery{EventFilter: store.EventFilter{EventType: pointerTo("run.x")}})
	wantCode(t, err, store.InvalidEventType)

	for _, c := range []struct {
		q    store.RunQuery
		want int
	}{
		{store.RunQuery{State: pointerTo("cancelled")}, 1},
		{store.RunQuery{State: pointerTo("cancelled"), ProjectID: pointerTo("project/demo")}, 1},
		{store.RunQuery{ProjectID: pointerTo("unknown")}, 0},
	} {
		if page := mustGet(r.Runs(ctx, c.q)); len(page.Items) != c.want || page.Items == nil {
			t.Fatalf("%+v: %d; want len(page.Items) == c.want && page.Items != nil", c.q, len(page.Items))
		}
	}
	for filter, want := range map[store.EventFilter]int{
		{}:                                  4,
		{RunID: pointerTo("run/demo:0003")}: 2,
		{RunID: pointerTo("run/demo:0003"), EventType: pointerTo("run.cancelled")}: 1,
		{WorkUnitID: pointerTo("work/demo-0001")}:                                  4,
		{ProjectID: pointerTo("other")}:                                            0,
	} {
		if page := mustGet(r.Events(ctx, store.EventQuery{EventFilter: filter})); len(page.Items) != want {
			t.Fatalf("%+v: %d events, want %d", filter, len(page.Items), want)
		}
	}
	one := mustGet(r.Events(ctx, store.EventQuery{Window: store.Window{Limit: 3}}))
	rest := mustGet(r.Events(ctx, store.EventQuery{Window: store.Window{Cursor: &one.Next}}))
	if len(one.Items) != 3 || len(rest.Items) != 1 || rest.Items[0].Sequence != 4 || rest.Next != "" {
		t.Fatalf(`events %d and %d; want len(one.Items) == 3 && len(rest.Items) == 1 && rest.Items[0].Sequence == 4 && rest.Next == ""`, len(one.Items), len(rest.Items))
	}
	items, seen, err := r.EventsAfter(ctx, 1, store.EventFilter{RunID: pointerTo("run/demo:0001")}, 200)
	if err != nil || len(items) != 0 || seen != 4 {
		t.Fatalf("after 1: %d, seen %d, %v; want len(items) == 0 && seen == 4", len(items), seen, err)
	}

	units := mustGet(r.WorkUnits(ctx, store.WorkUnitQuery{ProjectID: pointerTo("project/demo")}))
	if len(units.Items) != 1 || units.Items[0].RunCount != 3 || len(units.Items[0].Revisions) != 1 {
		t.Fatalf("units %+v; want len(units.Items) == 1 && units.Items[0].RunCount == 3 && len(units.Items[0].Revisions) == 1", units)
	}
	if unit := mustGet(r.WorkUnit(ctx, "work/demo-0001")); unit.RunCount != 3 {
		t.Fatalf("unit %+v; want unit.RunCount == 3", unit)
	}
	project := mustGet(r.Project(ctx, "project/demo"))
	if project.RunCount != 3 || project.WorkUnitCount != 1 || len(project.RunsByState) != 14 || project.RunsByState[spine.Cancelled] != 1 {
		t.Fatalf("project %+v; want project.RunCount == 3 && project.WorkUnitCount == 1 && len(project.RunsByState) == 14 && project.RunsByState[spine.Cancelled] == 1", project)
	}
	connections := mustGet(r.Connections(ctx, store.Window{Limit: 3}))
	if len(connections.Items) != 3 || connections.Items[0].ID != "demo-agent" {
		t.Fatalf(`connections %+v; want len(connections.Items) == 3 && connections.Items[0].ID == "demo-agent"`, connections)
	}
	if last := mustGet(r.Connections(ctx, store.Window{Cursor: &connections.Next})); len(last.Items) != 1 || last.Next != "" {
		t.Fatalf(`connections %+v; want len(last.Items) == 1 && last.Next == ""`, last)
	}
	if c := mustGet(r.Connection(ctx, "demo-model")); c.ProjectSpendUSDMax != 5 {
		t.Fatalf("connection %+v; want c.ProjectSpendUSDMax == 5", c)
	}
	for _, id := range []string{"none", "no id", "", "run/demo:0001\n"} {
		_, err := r.Run(ctx, id)
		wantCode(t, err, store.RunNotFound)
		_, err = r.WorkUnit(ctx, id)
		wantCode(t, err, store.WorkUnitNotFound)
		_, err = r.Project(ctx, id)
		wantCode(t, err, store.ProjectNotFound)
		_, err = r.Connection(ctx, id)
		wantCode(t, err, store.ConnectionNotFound)
		_, err = r.Inclusion(ctx, id)
		wantCode(t, err, store.EventNotFound)
	}
	_, _, err = r.Checkpoint(ctx, 5)
	wantCode(t, err, store.InvalidTreeSize)
}

func TestOrderIsOfCodePoints(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.db")
	w := openWriter(t, path, store.WriterOptions{})
	for _, id := range []string{"a", "Z", "a/b", "a-b", "A", "0"} {
		p := fixture.Run()
		p.RunID, p.WorkUnit.ID = id, id
		mustGet(w.CreateRun(t.Context(), store.CreateRun{Projection: p, IdempotencyKey: id}))
	}
	r := openReader(t, path, store.ReadWait)
	var ids, units []string
	for _, item := range mustGet(r.Runs(t.Context(), store.RunQuery{})).Items {
		ids = append(ids, item.Projection.RunID)
	}
	for q := (store.WorkUnitQuery{Window: store.Window{Limit: 2}}); ; {
		page := mustGet(r.WorkUnits(t.Context(), q))
		for _, u := range page.Items {
			units = append(units, u.ID)
		}
		if page.Next == "" {
			break
		}
		q.Cursor = &page.Next
	}
	if want := "0 A Z a a-b a/b"; strings.Join(ids, " ") != want || strings.Join(units, " ") != want {
		t.Fatalf(`order %v, %v; want strings.Join(ids, " ") == want && strings.Join(units, " ") == want`, ids, units)
	}
}
