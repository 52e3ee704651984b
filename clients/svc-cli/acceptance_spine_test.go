package svccli

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
)

// The rows of the acceptance table that are about the store's commands, on the program itself.

const (
	projectFlags = "--project-id project/demo --source-revision 3333333333333333333333333333333333333333"
	runDigest    = "sha256:de61a65aba8edd1971f333a21f2ba1a694c7a0a26dd147277934704bae013f1f"
	importDigest = "sha256:37c27f9f501f33b1dc6295a04e9262e183daa9d4bae0806a88f53c545ba83145"
)

// samplesIn returns a folder with the sample inputs.
func samplesIn(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	requireSuccess(t, runSVC(t, dir, "fixtures", "."))
	return dir
}

func requireSuccess(t *testing.T, r result) result {
	t.Helper()
	if r.code != 0 || r.err != "" {
		t.Fatalf(`exit %d: %s%s; want r.code == 0 && r.err == ""`, r.code, r.out, r.err)
	}
	return r
}

// runWords runs a line of words.
func runWords(t *testing.T, dir, words string) result {
	t.Helper()
	return runSVC(t, dir, strings.Fields(words)...)
}

func wantOut(t *testing.T, r result, want string) {
	t.Helper()
	if requireSuccess(t, r); r.out != want {
		t.Fatalf("printed %q, want %q", r.out, want)
	}
}

// wantFault checks exit code 2 and the code of the fault in text and document.
func wantFault(t *testing.T, dir, words, code string) {
	t.Helper()
	r := runWords(t, dir, words+" --json")
	var doc struct {
		OK    *bool
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
		t.Fatalf("%v: %q %q", err, r.out, r.err)
	}
	if r.code != 2 || doc.OK == nil || *doc.OK || doc.Error.Code != code || doc.Error.Message == "" || !strings.HasPrefix(r.err, "error: ") {
		t.Fatalf("exit %d, %s%s; want %s", r.code, r.out, r.err, code)
	}
	if plain := runWords(t, dir, words); plain.code != 2 || plain.out != "" || plain.err != r.err {
		t.Fatalf(`without --json: exit %d, %q %q; want plain.code == 2 && plain.out == "" && plain.err == r.err`, plain.code, plain.out, plain.err)
	}
}

func listEvents(t *testing.T, dir, db string) []string {
	t.Helper()
	out := requireSuccess(t, runWords(t, dir, "events list --limit 200 --store "+db)).out
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
}

func TestRow58CreateTwice(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	create := "run create spine/run.json --store s.db --idempotency-key k"
	wantOut(t, runWords(t, dir, create), "created: run/demo:0001 state=proposed\n")
	before := readFile(t, dir, "s.db")
	wantOut(t, runWords(t, dir, create), "replayed: run/demo:0001 state=proposed\n")
	if !bytes.Equal(before, readFile(t, dir, "s.db")) {
		t.Error("the replay wrote to the store")
	}
	if got := listEvents(t, dir, "s.db"); len(got) != 1 {
		t.Errorf("events: %q; want len(got) == 1", got)
	}
	var doc struct {
		Created, Replayed   bool
		CreateRequestDigest string `json:"create_request_digest"`
		IdempotencyKey      string `json:"idempotency_key"`
		Kind                *string
	}
	r := requireSuccess(t, runWords(t, dir, create+" --output json"))
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Created || !doc.Replayed || doc.CreateRequestDigest != runDigest || doc.IdempotencyKey != "k" || doc.Kind != nil {
		t.Errorf(`%+v; want !doc.Created && doc.Replayed && doc.CreateRequestDigest == runDigest && doc.IdempotencyKey == "k" && doc.Kind == nil`, doc)
	}
}

func TestRow59Conflicts(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	requireSuccess(t, runWords(t, dir, "run create spine/run.json --store s.db --idempotency-key k"))
	before := readFile(t, dir, "s.db")
	wantFault(t, dir, "run create spine/run-changed.json --store s.db --idempotency-key k", "idempotency_conflict")
	wantFault(t, dir, "run create spine/run.json --store s.db --idempotency-key other", "idempotency_conflict")
	if !bytes.Equal(before, readFile(t, dir, "s.db")) {
		t.Error("a refused request wrote to the store")
	}
}

func TestRow60Cancel(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	requireSuccess(t, runWords(t, dir, "run create spine/run.json --store s.db --idempotency-key k"))
	requireSuccess(t, runWords(t, dir, "run import-evidence spine/report.json --store s.db --idempotency-key k --state evidence_ready "+projectFlags))
	want := "cancelled: run/demo:0001\nprovider_execution_terminated: no\nmerge_authority: no\n"
	wantOut(t, runWords(t, dir, "run cancel run/demo:0001 --store s.db"), want)
	wantOut(t, runWords(t, dir, "run cancel run/demo:0001 --store s.db"), want)
	if got := listEvents(t, dir, "s.db"); len(got) != 3 || !strings.Contains(got[2], "run.cancelled") {
		t.Errorf(`events: %q; want len(got) == 3 && strings.Contains(got[2], "run.cancelled")`, got)
	}
	wantFault(t, dir, "run cancel run/demo:0002 --store s.db", "cancel_not_allowed")
	wantFault(t, dir, "run cancel run/demo:0009 --store s.db", "run_not_found")
}

// A thousand creates by as many processes, four at a time, of which one in five is killed somewhere on its way and
// repeated.
func TestRow61KillAmongCreates(t *testing.T) {
	t.Parallel()
	const creates, workers = 1000, 4
	dir := t.TempDir()
	bin := buildProgram(t)
	for i := range creates {
		run := fixture.Run()
		run.RunID = fmt.Sprintf("run/killed:%04d", i)
		data, err := canon.C1(run.Value())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".json")), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	create := func(i int) *exec.Cmd {
		c := exec.CommandContext(t.Context(), bin, "run", "create", fmt.Sprint(i, ".json"), "--store", "s.db", "--idempotency-key", fmt.Sprint("key-", i))
		c.Dir = dir
		return c
	}
	begun := time.Now()
	if out, err := create(0).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	usual := time.Since(begun) * workers / 2
	var all sync.WaitGroup
	killed := make([]int, workers)
	for w := range workers {
		all.Go(func() {
			chance := rand.New(rand.NewPCG(61, uint64(w)))
			for i := w; i < creates; i += workers {
				if i/workers%5 == 0 {
					c := create(i)
					if err := c.Start(); err != nil {
						t.Error(err)
						return
					}
					kill := time.AfterFunc(time.Duration(chance.Int64N(int64(usual))), func() { _ = c.Process.Kill() })
					if err := c.Wait(); err != nil {
						killed[w]++
					}
					kill.Stop()
				}
				if out, err := create(i).CombinedOutput(); err != nil {
					t.Errorf("create %d: %v: %s", i, err, out)
					return
				}
			}
		})
	}
	all.Wait()
	total := 0
	for _, n := range killed {
		total += n
	}
	t.Logf("%d of %d killed, one create takes %v", total, creates/5, time.Since(begun)/creates*workers)
	if total == 0 {
		t.Error("no process was killed: nothing is shown")
	}
	c := exec.CommandContext(t.Context(), bin, "verify", "s.db", "--json")
	c.Dir = dir
	out, err := c.Output()
	var doc struct {
		OK      bool
		Checked struct{ Runs, Events int }
	}
	if err != nil || json.Unmarshal(out, &doc) != nil || !doc.OK || doc.Checked.Runs != creates || doc.Checked.Events != creates {
		t.Errorf("verify: %v: %s; want json.Unmarshal(out, &doc) == nil && doc.OK && doc.Checked.Runs == creates && doc.Checked.Events == creates", err, out)
	}
}

// buildProgram makes the program itself, without the race detector that a test may carry.
func buildProgram(t testing.TB) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "svc")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", bin, "./cmd/svc").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

func TestRow62ImportEvidence(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	imported := "run import-evidence spine/report.json --store s.db --idempotency-key k " + projectFlags
	wantOut(t, runWords(t, dir, imported), "imported: run/demo:0002 state=awaiting_human_decision evidence="+fixture.Report().Digest()+"\n")
	wantOut(t, runWords(t, dir, imported), "replayed: run/demo:0002 state=awaiting_human_decision evidence="+fixture.Report().Digest()+"\n")
	if r := requireSuccess(t, runWords(t, dir, "run status run/demo:0002 --store s.db --json")); !strings.Contains(r.out, `"create_request_digest":"`+importDigest+`"`) {
		t.Error(r.out, "want strings.Contains(r.out, `\"create_request_digest\":\"`+importDigest+`\"`)")
	}

	// A projection that names another digest, and a report that its attempts contradict.
	other := readFile(t, dir, "spine/report-run.json")
	other = bytes.ReplaceAll(other, []byte(fixture.Report().Digest()), []byte(fixture.Digest("e")))
	if err := os.WriteFile(filepath.Join(dir, "other.json"), other, 0o600); err != nil {
		t.Fatal(err)
	}
	wantFault(t, dir, "run import-evidence spine/report.json --store new.db --idempotency-key k --projection other.json", "invalid_run_evidence")
	wantFault(t, dir, "run import-evidence spine/report-altered.json --store new.db --idempotency-key k "+projectFlags, "summary_mismatch")
	if r := runWords(t, dir, "run list --store new.db"); r.out != "" {
		t.Errorf(`something is stored: %q; want ""`, r.out)
	}
	before := readFile(t, dir, "s.db")
	wantFault(t, dir, "run import-evidence spine/report.json --store s.db --idempotency-key l --projection other.json", "invalid_run_evidence")
	wantFault(t, dir, "run import-evidence spine/report-altered.json --store s.db --idempotency-key l "+projectFlags, "summary_mismatch")
	if !bytes.Equal(before, readFile(t, dir, "s.db")) {
		t.Error("a refused import wrote to the store")
	}
	// A projection and its state may both be named.
	wantOut(t, runWords(t, dir, "run import-evidence spine/report.json --store given.db --idempotency-key k --projection spine/report-run.json --state evidence_ready"),
		"imported: run/demo:0002 state=evidence_ready evidence="+fixture.Report().Digest()+"\n")
}

func TestRow76EditedEvent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	requireSuccess(t, runWords(t, dir, "fixtures samples --store s.db"))
	db, err := sql.Open("sqlite", filepath.Join(dir, "s.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var triggers []string
	rows, err := db.QueryContext(t.Context(), "SELECT name FROM sqlite_schema WHERE type = 'trigger'")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		triggers = append(triggers, name)
	}
	if err := rows.Err(); err != nil || len(triggers) == 0 {
		t.Fatal(triggers, err, "want len(triggers) != 0")
	}
	for _, name := range triggers {
		executeSQL(t, db, "DROP TRIGGER "+name)
	}
	executeSQL(t, db, `UPDATE events SET payload_json = replace(payload_json, 'proposed', 'admitted') WHERE sequence = 1`)
	r := runWords(t, dir, "verify s.db --json")
	var doc struct {
		OK       bool
		Findings []struct{ Code, Subject string }
	}
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil || r.code != 1 || r.err != "" || doc.OK {
		t.Fatalf(`%v: exit %d: %s%s; want r.code == 1 && r.err == "" && !doc.OK`, err, r.code, r.out, r.err)
	}
	found := map[string]bool{}
	for _, f := range doc.Findings {
		found[f.Code] = true
	}
	for _, code := range []string{"event_payload_digest", "tree_root_mismatch", "trigger_missing"} {
		if !found[code] {
			t.Errorf("no finding %s: %s; want found[code]", code, r.out)
		}
	}
	if plain := runWords(t, dir, "verify s.db"); plain.code != 1 || !strings.Contains(plain.out, "verify: FINDINGS\n") || !strings.Contains(plain.out, "\nevent_payload_digest\t") {
		t.Errorf("exit %d: %s%s; want plain.code == 1 && strings.Contains(plain.out, \"verify: FINDINGS\\n\") && strings.Contains(plain.out, \"\\nevent_payload_digest\\t\")", plain.code, plain.out, plain.err)
	}
}

func executeSQL(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The help is the command users wait for most often: reach 20 ms.
func BenchmarkHelp(b *testing.B) {
	bin := buildProgram(b)
	for b.Loop() {
		if err := exec.CommandContext(b.Context(), bin, "--help").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
