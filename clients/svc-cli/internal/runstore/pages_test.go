package runstore_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/app"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/app/apptest"
)

// Pages reach every item once, in order, in either form, and the last has no cursor.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type list struct {
		Items      []map[string]any
		NextCursor *string `json:"next_cursor"`
		Page       struct {
			Limit      int
			NextCursor *string `json:"next_cursor"`
		}
	}
	for what, want := range map[string][]string{
		"run list --store s.db --limit 1":    {"run/demo:0001", "run/demo:0002", "run/demo:0003"},
		"events list --store s.db --limit 2": {"evt-000000000001", "evt-000000000002", "evt-000000000003", "evt-000000000004"},
	} {
		var ids []string
		cursor := ""
		for range 10 {
			line := what
			if cursor != "" {
				line += " --cursor " + cursor
			}
			r := w.run(t, line+" --json")
			var l list
			if err := json.Unmarshal([]byte(r.Out), &l); err != nil || r.Code != 0 {
				t.Fatalf("%v: %s%s; want r.Code == 0", err, r.Out, r.Err)
			}
			for _, it := range l.Items {
				id, _ := it["event_id"].(string)
				if id == "" {
					id, _ = it["run_id"].(string)
				}
				ids = append(ids, id)
			}
			lines := strings.Split(strings.TrimSuffix(w.run(t, line).Out, "\n"), "\n")
			last, told := strings.CutPrefix(lines[len(lines)-1], "next_cursor: ")
			if told != (l.NextCursor != nil) || told && (last != *l.NextCursor || *l.Page.NextCursor != last) {
				t.Fatalf("the text says %q, the document %s; want told == (l.NextCursor != nil) && (!told || !last != *l.NextCursor || *l.Page.NextCursor != last)", lines, r.Out)
			}
			if !told {
				break
			}
			cursor = last
		}
		if strings.Join(ids, " ") != strings.Join(want, " ") {
			t.Errorf(`%s: %q; want strings.Join(ids, " ") == strings.Join(want, " ")`, what, ids)
		}
	}
}

// At a terminal, lists are tables that fit it; an empty one prints a message.
func TestTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := func(width int, line string) string {
		e, out, errOut := apptest.Env("")
		e.Terminal, e.Width = true, width
		words := append([]string{"svc"}, strings.Fields(strings.ReplaceAll(line, "s.db", filepath.Join(w.dir, "s.db")))...)
		if code := app.Main(t.Context(), e, words); code != 0 {
			t.Fatalf("exit %d: %s; want code == 0", code, errOut)
		}
		return out.String()
	}
	got := at(0, "run list --store s.db --limit 2")
	want := "RUN            STATE                    PROJECT       WORK UNIT       ATTEMPTS  EVIDENCE\n" +
		"run/demo:0001  proposed                 project/demo  work/demo-0001         0\n" +
		"run/demo:0002  awaiting_human_decision  project/demo  work/demo-0001         2  sha256:d3ee44db187a100d4803c8819f2b076cefc2cf7b21dd4ab4b5f5229dc3e9edec\n" +
		"next_cursor: "
	if !strings.HasPrefix(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	for line := range strings.SplitSeq(at(80, "run list --store s.db"), "\n") {
		if len([]rune(line)) > 80 {
			t.Errorf("too wide: %q; want len([]rune(line)) <= 80", line)
		}
	}
	if got := at(80, "run list --store s.db --project-id project/none"); got != "No runs.\n" {
		t.Errorf("%q; want \"No runs.\\n\"", got)
	}
	if got := w.run(t, "run list --store s.db --project-id project/none"); got.Out != "" || got.Code != 0 {
		t.Errorf(`%+v; want got.Out == "" && got.Code == 0`, got)
	}
}

// A store of version 1 is refused by readers, and migrated by the command and by nothing that only reads.
func TestMigrate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, err := os.ReadFile("../../../../libs/evidence/store/migrations/1_base.sql")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.dir, "s.db")); err != nil {
		t.Fatal(err)
	}
	w.sql(t, string(base), "PRAGMA user_version = 1")
	r := w.run(t, "run list --store s.db --json")
	wantFault(t, r, "store_error")
	if !strings.Contains(r.Err, "svc store migrate") {
		t.Error(r.Err, `want strings.Contains(r.Err, "svc store migrate")`)
	}
	if r := w.run(t, "store migrate s.db"); r.Code != 0 || !strings.HasSuffix(r.Out, "s.db version=3 from=1\n") || !strings.HasPrefix(r.Out, "migrated: ") {
		t.Errorf("%+v; want r.Code == 0 && strings.HasSuffix(r.Out, \"s.db version=3 from=1\\n\") && strings.HasPrefix(r.Out, \"migrated: \")", r)
	}
	if r := w.run(t, "store migrate s.db --json"); r.Code != 0 || !strings.HasPrefix(r.Out, `{"from_version":3,"store":`) {
		t.Errorf("%+v; want r.Code == 0 && strings.HasPrefix(r.Out, `{\"from_version\":3,\"store\":`)", r)
	}
	if r := w.run(t, "run list --store s.db"); r.Code != 0 || r.Out != "" {
		t.Errorf(`%+v; want r.Code == 0 && r.Out == ""`, r)
	}
}

func TestKeygen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.run(t, "store keygen sign.key")
	if r.Code != 0 || !strings.HasPrefix(r.Out, "svc-store+") {
		t.Fatalf(`%+v; want r.Code == 0 && strings.HasPrefix(r.Out, "svc-store+")`, r)
	}
	info, err := os.Stat(filepath.Join(w.dir, "sign.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err, "want info.Mode().Perm() == 0o600")
	}
	w.write(t, "public.key", r.Out)
	if r := w.run(t, createRun+"--signing-key sign.key"); r.Code != 0 {
		t.Fatal(r.Err, "want r.Code == 0")
	}
	if r := w.run(t, "verify new.db --public-key public.key"); r.Code != 0 || !strings.Contains(r.Out, "entries lost before event ") {
		t.Errorf(`%+v; want r.Code == 0 && strings.Contains(r.Out, "entries lost before event ")`, r)
	}
	// Entries written without the key are not vouched for.
	whole, err := os.ReadFile(filepath.Join(w.dir, "new.db"))
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "longer.db", string(whole))
	if r := w.run(t, "run cancel run/demo:0001 --store longer.db"); r.Code != 0 {
		t.Fatal(r.Err, "want r.Code == 0")
	}
	if r := w.run(t, "verify longer.db --public-key public.key"); r.Code != 1 ||
		!strings.Contains(r.Out, "\nevents: 2\nsigned_events: 1\n") || !strings.Contains(r.Out, "after event 1, the newest") ||
		!strings.Contains(r.Out, "\ncheckpoint_unsigned\tevent 2\t") {
		t.Errorf("%+v; want r.Code == 1 && strings.Contains(r.Out, \"\\nevents: 2\\nsigned_events: 1\\n\") && strings.Contains(r.Out, \"after event 1, the newest\") && …", r)
	}
	// With another key the signatures are findings; without any signed checkpoint too.
	w.write(t, "other.key", w.run(t, "store keygen second.key").Out)
	if r := w.run(t, "verify new.db --public-key other.key"); r.Code != 1 || !strings.Contains(r.Out, "checkpoint_signature") {
		t.Errorf(`%+v; want r.Code == 1 && strings.Contains(r.Out, "checkpoint_signature")`, r)
	}
	if r := w.run(t, "verify s.db --public-key public.key"); r.Code != 1 || !strings.Contains(r.Out, "checkpoint_unsigned") {
		t.Errorf(`%+v; want r.Code == 1 && strings.Contains(r.Out, "checkpoint_unsigned")`, r)
	}
	// A key that others may read signs nothing.
	if err := os.Chmod(filepath.Join(w.dir, "sign.key"), 0o640); err != nil {
		t.Fatal(err)
	}
	wantFault(t, w.run(t, "run cancel run/demo:0001 --store new.db --signing-key sign.key --json"), "signing_key_error")
}

// The key of the environment signs too.
func TestSigningKeyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	public := w.run(t, "store keygen sign.key").Out
	w.write(t, "public.key", public)
	e, out, errOut := apptest.Env("")
	e.Getenv = func(name string) string {
		return map[string]string{"SVC_STORE_SIGNING_KEY_FILE": filepath.Join(w.dir, "sign.key")}[name]
	}
	line := []string{"svc", "run", "create", filepath.Join(w.dir, "in/spine/run.json"), "--store", filepath.Join(w.dir, "new.db"), "--idempotency-key", "k"}
	if code := app.Main(t.Context(), e, line); code != 0 {
		t.Fatalf("exit %d %s%s; want code == 0", code, out, errOut)
	}
	if r := w.run(t, "verify new.db --public-key public.key"); r.Code != 0 {
		t.Errorf("%+v; want r.Code == 0", r)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	// The vector of the published table.
	const in, c1 = "\ufeff[9007199254740993, 100000000000000000000000001,12345.0]\n", "[9007199254740993,100000000000000000000000001,12345.0]"
	const sum = "sha256:2bf9520be7517ba9ac59dfb06dfb90618650a04ae6f3104f44997238378dce13"
	for _, line := range []string{"digest", "digest -"} {
		if r := apptest.RunIn(t, in, strings.Fields(line)...); r.Code != 0 || r.Out != c1+"\n"+sum+"\n" {
			t.Errorf("%+v; want r.Code == 0 && r.Out == c1 + \"\\n\" + sum + \"\\n\"", r)
		}
	}
	if r := apptest.RunIn(t, in, "digest", "--json"); r.Out != `{"bytes":54,"canonical":"`+c1+`","digest":"`+sum+"\"}\n" {
		t.Errorf("%+v; want r.Out == `{\"bytes\":54,\"canonical\":\"` + c1 + `\",\"digest\":\"` + sum + \"\\\"}\\n\"", r)
	}
	// A pipe gets the bytes that have the digest, whatever a terminal would do with them.
	for r := rune(0x7e); r <= 0xa0; r++ {
		wantCanonicalBytes(t, string(r))
	}
	wantCanonicalBytes(t, "\u061c\u200e\u202e\u2066\u2028\ufeff\u00ad\U000e0041😀")
	wantFault(t, apptest.RunIn(t, "[1,", "digest", "--json"), "invalid_json")
	wantFault(t, apptest.RunIn(t, strings.Repeat(" ", 2<<20)+"1", "digest", "--json"), "invalid_json")
	// The bytes of others are shown at a terminal, not obeyed.
	e, out, _ := apptest.Env("\"\u009b2J\"")
	e.Terminal = true
	if code := app.Main(t.Context(), e, []string{"svc", "digest"}); code != 0 || bytes.ContainsRune(out.Bytes(), 0x9b) {
		t.Errorf("exit %d %q; want code == 0 && !bytes.ContainsRune(out.Bytes(), 0x9b)", code, out)
	}
}

func wantCanonicalBytes(t *testing.T, text string) {
	t.Helper()
	r := apptest.RunIn(t, `{"a": "`+text+`"}`, "digest")
	canonical, digest, _ := strings.Cut(strings.TrimSuffix(r.Out, "\n"), "\n")
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(canonical))); r.Code != 0 || canonical != `{"a":"`+text+`"}` || digest != sum {
		t.Errorf("%+q: got %q, exit %d, want bytes with the printed digest", text, r.Out, r.Code)
	}
}

// published are the schemas that the program ships; others rely on every one of them.
var published = strings.Fields(`
	api-error api-operational-metrics connector-profile control-tower-connection-response control-tower-inspection-response
	control-tower-project-response control-tower-run-attempts-response control-tower-run-evidence-response control-tower-run-response
	control-tower-snapshot control-tower-status control-tower-work-unit-response evaluator-plan event event-inclusion-proof
	event-log-checkpoint gate-audit-dependence gate-audit-matrix gate-audit-report github-bootstrap-dry-run github-governance-observation
	github-governance-report list local-loop-config marginal-evidence-benchmark-config marginal-evidence-benchmark-report
	marginal-evidence-report marginal-evidence-synthesis-config marginal-evidence-synthesis-report product-spine-run readiness
	replay-source result-manifest routing-decision run-evidence-report steward-history steward-report store-verification two-attempt-run
	verification-result verifier-policy work-unit`)

func TestSchemas(t *testing.T) {
	t.Parallel()
	list := apptest.Run(t, "schema", "list")
	lines := strings.Split(strings.TrimSuffix(list.Out, "\n"), "\n")
	if list.Code != 0 || len(lines) != len(published) {
		t.Fatalf("%+v; want list.Code == 0 && len(lines) == len(published)", list)
	}
	for i, line := range lines {
		name, id, _ := strings.Cut(line, "\t")
		if name != published[i] || id != "urn:svc:schema:"+name+":0.1" {
			t.Errorf("%q, want %s", line, published[i])
			continue
		}
		shown, document := apptest.Run(t, "schema", "show", name), apptest.Run(t, "schema", "show", name+".schema.json", "--json")
		if shown.Code != 0 || document.Code != 0 || !json.Valid([]byte(shown.Out)) || !json.Valid([]byte(document.Out)) {
			t.Errorf("%s: %+v %+v; want shown.Code == 0 && document.Code == 0 && json.Valid([]byte(shown.Out)) && json.Valid([]byte(document.Out))", name, shown, document)
		}
	}
	if r := apptest.Run(t, "schema", "list", "--json"); r.Code != 0 || !strings.HasPrefix(r.Out, `{"schemas":[{"id":"urn:svc:schema:`) {
		t.Errorf("%+v; want r.Code == 0 && strings.HasPrefix(r.Out, `{\"schemas\":[{\"id\":\"urn:svc:schema:`)", r)
	}
}
