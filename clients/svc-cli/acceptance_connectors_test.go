package svccli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"
)

// The rows of the acceptance table that are about connectors, readiness, bootstrap and the steward's reports, on the
// program itself.

// decodeDocument is the JSON document that a line prints, whatever its exit code.
func decodeDocument(t *testing.T, r result, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.out), into); err != nil {
		t.Fatalf("%v: exit %d, %s%s", err, r.code, r.out, r.err)
	}
}

// wantVerdict checks exit code 2 and the fault of a command whose error document is a verdict.
func wantVerdict(t *testing.T, dir, words, code, path string) {
	t.Helper()
	r := runWords(t, dir, words+" --json")
	var doc struct {
		Valid *bool
		Error struct{ Code, Path, Message string }
	}
	decodeDocument(t, r, &doc)
	if r.code != 2 || doc.Valid == nil || *doc.Valid || doc.Error.Code != code || doc.Error.Path != path || doc.Error.Message == "" {
		t.Fatalf("exit %d, %s%s; want %s at %q", r.code, r.out, r.err, code, path)
	}
	if plain := runWords(t, dir, words); plain.code != 2 || plain.out != "" || plain.err != r.err {
		t.Fatalf(`without --json: exit %d, %q %q; want plain.code == 2 && plain.out == "" && plain.err == r.err`, plain.code, plain.out, plain.err)
	}
}

// listFiles lists the content of a folder, to show that a command has written nothing.
func listFiles(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		out = append(out, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRow67Doctor(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	r := runWords(t, dir, "doctor connectors/profile.json")
	want := "doctor: FAIL\n- coder-a: PASS (healthy)\n- forge: PASS (healthy)\n- reviewer-model: FAIL (secret_unavailable)\n- sandbox: WARN (disabled)\n"
	if r.code != 1 || r.out != want || r.err != "" {
		t.Errorf(`exit %d: %s%s; want r.code == 1 && r.out == want && r.err == ""`, r.code, r.out, r.err)
	}
	wantOut(t, runWords(t, dir, "doctor connectors/healthy.json"), "doctor: PASS\n- coder-a: PASS (healthy)\n- coder-b: PASS (healthy)\n- forge: PASS (healthy)\n")
	r = runWords(t, dir, "doctor connectors/profile.json --checked-at 2026-01-02T04:04:05+01:00 --json")
	if want := `{"checked_at":"2026-01-02T03:04:05Z","connections":[{"connection_id":"coder-a","reason":"healthy","state":"PASS"}`; r.code != 1 || !strings.HasPrefix(r.out, want) {
		t.Errorf("exit %d: %s; want r.code == 1 && strings.HasPrefix(r.out, want)", r.code, r.out)
	}
	wantVerdict(t, dir, "doctor connectors/none.json", "profile_read_error", "")
	wantVerdict(t, dir, "doctor connectors/profile.json --checked-at noon", "invalid_timestamp", "")
	wantVerdict(t, dir, "doctor connectors/profile.json --operation integration", "invalid_arguments", "")
	wantVerdict(t, dir, "doctor connectors/profile.json --github governance/observation.json --operation integration", "invalid_arguments", "")
	wantVerdict(t, dir, "doctor", "invalid_arguments", "")
}

func TestRow68DoctorGithub(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	judge := func(words string, code int, status string) {
		t.Helper()
		r := runWords(t, dir, "doctor --github "+words+" --json")
		var doc struct{ Status string }
		decodeDocument(t, r, &doc)
		if r.code != code || doc.Status != status {
			t.Errorf("%s: exit %d, %s; want r.code == code && doc.Status == status", words, r.code, r.out)
		}
		if err := schematest.ValidateBytes(t, "github-governance-report", []byte(r.out)); err != nil {
			t.Error(err)
		}
	}
	judge("governance/observation-without-rules.json --operation integration", 1, "UNKNOWN")
	judge("governance/observation-without-rules.json --operation read_only", 0, "PASS")
	judge("governance/observation.json --operation cloud_dispatch", 0, "PASS")
	judge("governance/observation.json --operation cloud_dispatch --workflow governance/dispatch.yml", 0, "PASS")
	judge("governance/observation.json --operation high_risk_dispatch --workflow governance/risky.yml", 1, "FAIL")
	if r := runWords(t, dir, "doctor --github governance/observation-without-rules.json --operation integration"); r.code != 1 || !strings.HasPrefix(r.out, "github governance: UNKNOWN\n") || r.err != "" {
		t.Errorf("exit %d: %s%s; want r.code == 1 && strings.HasPrefix(r.out, \"github governance: UNKNOWN\\n\") && r.err == \"\"", r.code, r.out, r.err)
	}
	wantVerdict(t, dir, "doctor --github governance/observation.json --operation merge", "invalid_operation", "")
	wantVerdict(t, dir, "doctor --github governance/observation.json", "invalid_operation", "")
	wantVerdict(t, dir, "doctor --github governance/none.json --operation integration", "input_read_error", "")
	wantVerdict(t, dir, "doctor --github connectors/decision.json --operation integration", "missing_field", "/schema_version")
	wantVerdict(t, dir, "doctor --github governance/observation.json --operation integration --workflow connectors/none", "input_read_error", "")
	wantVerdict(t, dir, "doctor --github governance/observation.json --operation integration --workflow connectors/decision.json", "invalid_workflow", "")
}

func TestRow69RouteExplain(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	r := requireSuccess(t, runWords(t, dir, "route explain connectors/healthy.json connectors/decision-human.json --auto-select --json"))
	var doc struct {
		Eligible []struct {
			ConnectionID string `json:"connection_id"`
		}
		Ineligible []struct{ Reasons []string }
		Selected   *string  `json:"selected_connection_id"`
		Reason     []string `json:"selection_reason"`
	}
	decodeDocument(t, r, &doc)
	if len(doc.Eligible) != 0 || len(doc.Ineligible) != 3 || doc.Selected != nil || len(doc.Reason) != 0 || doc.Ineligible[0].Reasons[0] != "human_required" {
		t.Errorf(`%s; want len(doc.Eligible) == 0 && len(doc.Ineligible) == 3 && doc.Selected == nil && len(doc.Reason) == 0 && doc.Ineligible[0].Reasons[0] == "human_required"`, r.out)
	}
	explain := "route explain connectors/healthy.json connectors/decision.json"
	for words, want := range map[string]string{
		explain + " --auto-select":                    "coder-a", // equal but for the id
		explain + " --auto-select --cost coder-a=0.5": "coder-b", // paid comes behind
		explain: "",
	} {
		doc.Selected = nil
		decodeDocument(t, requireSuccess(t, runWords(t, dir, words+" --json")), &doc)
		if len(doc.Eligible) != 2 || (doc.Selected == nil) != (want == "") || want != "" && *doc.Selected != want {
			t.Errorf(`%s: %+v; want len(doc.Eligible) == 2 && (doc.Selected == nil) == (want == "") && (want == "" || *doc.Selected == want)`, words, doc)
		}
	}
	wantVerdict(t, dir, explain+" --cost coder-a=x", "invalid_cost", "")
	wantVerdict(t, dir, explain+" --cost coder-a=1 --cost coder-a=1", "duplicate_cost", "")
	wantVerdict(t, dir, "route explain connectors/healthy.json governance/observation.json", "missing_field", "/required_capability_tier")
	wantVerdict(t, dir, "route explain connectors/healthy.json", "invalid_arguments", "")
}

func TestRow70Init(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wantVerdict(t, dir, "init --github --dry-run --idkmesh-ref main", "unpinned_svc_ref", "")
	r := requireSuccess(t, runWords(t, dir, "init --github --dry-run --idkmesh-ref v1.2.3 --json"))
	var doc struct {
		Plan struct{ Files []struct{ Path string } }
	}
	decodeDocument(t, r, &doc)
	if len(doc.Plan.Files) != 8 {
		t.Errorf("%s; want len(doc.Plan.Files) == 8", r.out)
	}
	if err := schematest.ValidateBytes(t, "github-bootstrap-dry-run", []byte(r.out)); err != nil {
		t.Error(err)
	}
	text := requireSuccess(t, runWords(t, dir, "init --github --dry-run --idkmesh-ref v1.2.3"))
	if !strings.HasSuffix(text.out, "file writes: no\nGitHub mutations: no\nsecret access: no\n") || !strings.Contains(text.out, "existence not verified") {
		t.Errorf("%s; want strings.HasSuffix(text.out, \"file writes: no\\nGitHub mutations: no\\nsecret access: no\\n\") && strings.Contains(text.out, \"existence not verified\")", text.out)
	}
	wantVerdict(t, dir, "init --github --idkmesh-ref v1.2.3", "apply_mode_not_available", "")
	wantVerdict(t, dir, "init --dry-run --idkmesh-ref v1.2.3", "forge_required", "")
	wantVerdict(t, dir, "init --github --dry-run --idkmesh-ref v1.2.3 --default-branch a..b", "invalid_default_branch", "")
	wantVerdict(t, dir, "init --github --dry-run --idkmesh-ref v1.2.3 more", "invalid_arguments", "")
	if got := listFiles(t, dir); !slices.Equal(got, []string{dir}) {
		t.Errorf("something was written: %q; want slices.Equal(got, []string{dir})", got)
	}
}

func TestRow71InlineSecret(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	const secret = "not-a-real-secret"
	if !bytes.Contains(samples.File("connectors/inline-secret.json"), []byte(secret)) {
		t.Fatal("the sample holds no secret")
	}
	for _, words := range []string{
		"connections validate", "connections list", "connections import --store s.db", "connections probe", "doctor", "route explain",
	} {
		words += " connectors/inline-secret.json"
		if strings.HasPrefix(words, "route") {
			words += " connectors/decision.json"
		}
		wantVerdict(t, dir, words, "inline_secret_forbidden", "/settings/access_token")
		if r := runWords(t, dir, words+" --json"); strings.Contains(r.out+r.err, secret) {
			t.Errorf("%s tells the secret: %s%s; want !strings.Contains(r.out+r.err, secret)", words, r.out, r.err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "s.db")); err == nil {
		t.Error("a refused profile made a store")
	}
}

func TestRow72StewardReports(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	for words, code := range map[string]string{
		"steward-report steward/not-planned.json":                               "outcome_not_planned",
		"steward-history steward/history steward/not-planned.json":              "outcome_not_planned",
		"steward-history steward/history steward/other-repository.json":         "repository_mismatch",
		"steward-history connectors":                                            "no_reports",
		"steward-report-ui steward/not-planned.json --no-browser":               "outcome_not_planned",
		"steward-history-ui steward --no-browser steward/other-repository.json": "repository_mismatch",
	} {
		if r := runWords(t, dir, words); r.code != 2 || r.out != "" || !strings.HasSuffix(r.err, "("+code+")\n") {
			t.Errorf("%s: exit %d, %s%s; want r.code == 2 && r.out == \"\" && strings.HasSuffix(r.err, \"(\"+code+\")\\n\")", words, r.code, r.out, r.err)
		}
	}
	wantFault(t, dir, "steward-history steward/history steward/other-repository.json", "repository_mismatch")
	for _, words := range []string{"--details --json", "--pretty"} {
		if r := runWords(t, dir, "steward-history steward/history "+words); r.code != 2 {
			t.Errorf("%s: exit %d; want r.code == 2", words, r.code)
		}
	}
	r := requireSuccess(t, runWords(t, dir, "steward-history steward/history --json"))
	if err := schematest.ValidateBytes(t, "steward-history", []byte(r.out)); err != nil {
		t.Error(err)
	}
	var plain, pretty any
	decodeDocument(t, r, &plain)
	decodeDocument(t, requireSuccess(t, runWords(t, dir, "steward-history steward/history --json --pretty")), &pretty)
	if fmt.Sprint(plain) != fmt.Sprint(pretty) {
		t.Error("--pretty changes the document")
	}
}

// Connectors in a store: all or nothing, replaced by id, listed in order.
func TestConnectionsInAStore(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	wantOut(t, runWords(t, dir, "connections import connectors/healthy.json --store s.db"), "imported: 3\n")
	wantOut(t, runWords(t, dir, "connections import connectors/profile.json --store s.db"), "imported: 4\n")
	wantOut(t, runWords(t, dir, "connections stored --store s.db"), "coder-a\tagent\tfake-agent\ttrue\tT1,T2\tmedium\ncoder-b\tagent\tfake-agent\ttrue\tT1,T2\tmedium\n"+
		"forge\tscm\tfake-scm\ttrue\t\tlow\nreviewer-model\tmodel\tfake-model\ttrue\tT2,T3\tlow\nsandbox\texecution\tfake-execution\tfalse\t\tlow\n")
	var doc struct {
		Imported, Count int
		Store           string
		Valid           bool
		Connections     []json.RawMessage
	}
	decodeDocument(t, requireSuccess(t, runWords(t, dir, "connections import connectors/profile.json --store s.db --json")), &doc)
	if doc.Imported != 4 || doc.Store != "s.db" || len(doc.Connections) != 4 {
		t.Errorf(`%+v; want doc.Imported == 4 && doc.Store == "s.db" && len(doc.Connections) == 4`, doc)
	}
	decodeDocument(t, requireSuccess(t, runWords(t, dir, "connections stored --store s.db --json")), &doc)
	if doc.Count != 5 || len(doc.Connections) != 5 {
		t.Errorf("%+v; want doc.Count == 5 && len(doc.Connections) == 5", doc)
	}
	decodeDocument(t, requireSuccess(t, runWords(t, dir, "connections validate connectors/profile.json --json")), &doc)
	if !doc.Valid || doc.Count != 4 {
		t.Errorf("%+v; want doc.Valid && doc.Count == 4", doc)
	}
	wantVerdict(t, dir, "connections import connectors/profile.json --store s.db --signing-key none.key", "signing_key_error", "")
	public := requireSuccess(t, runWords(t, dir, "store keygen sign.key")).out
	if err := os.WriteFile(filepath.Join(dir, "sign.pub"), []byte(public), 0o600); err != nil {
		t.Fatal(err)
	}
	requireSuccess(t, runWords(t, dir, "connections import connectors/profile.json --store signed.db --signing-key sign.key"))
	if r := requireSuccess(t, runWords(t, dir, "verify signed.db --public-key sign.pub")); !strings.Contains(r.out, "signed_checkpoints: 1\n") {
		t.Errorf("%s; want strings.Contains(r.out, \"signed_checkpoints: 1\\n\")", r.out)
	}
	wantVerdict(t, dir, "connections stored --store none.db", "store_error", "")
	wantVerdict(t, dir, "connections stored", "invalid_arguments", "")
	wantVerdict(t, dir, "connections import connectors/profile.json", "invalid_arguments", "")
	wantVerdict(t, dir, "connections import connectors/profile.json --store connectors", "store_error", "")
}

// The pages of the steward: served until Ctrl-C, which is a successful end; a taken port is not.
func TestStewardPages(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	for command, input := range map[string]string{"steward-report-ui": "steward/history/day-1/steward-report.json", "steward-history-ui": "steward/history"} {
		c := svcProcess(t, dir, command, input, "--port", "0", "--no-browser")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		var address string
		if _, err := fmt.Fscanf(out, command+": %s\n", &address); err != nil {
			t.Fatal(err)
		}
		resp, err := http.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s; want resp.StatusCode == %v", command, resp.Status, http.StatusOK)
		}
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("%s: %v", command, err)
		}
		taken, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		r := runWords(t, dir, fmt.Sprintf("%s %s --no-browser --port %d", command, input, taken.Addr().(*net.TCPAddr).Port))
		if r.code != 2 || r.out != "" || !strings.Contains(r.err, "is taken") {
			t.Errorf(`a taken port: exit %d, %s%s; want r.code == 2 && r.out == "" && strings.Contains(r.err, "is taken")`, r.code, r.out, r.err)
		}
		_ = taken.Close()
	}
}
