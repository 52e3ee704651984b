package credentials

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMadeOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := LoadOrCreate(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range first.each() {
		if len(*s) < 52 || seen[*s] {
			t.Fatalf("secret of %d characters, repeated: %v; want len(*s) >= 52 && !seen[*s]", len(*s), seen[*s])
		}
		seen[*s] = true
	}
	info, err := os.Stat(filepath.Join(dir, File))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v; want info.Mode().Perm() == 0o600", info.Mode(), err)
	}
	renewed, err := RenewStandIns(dir, first)
	if err != nil || renewed.TrackerToken == first.TrackerToken || renewed.OrchestratorKey == first.OrchestratorKey {
		t.Fatalf("renewed: %v; want new secrets of the tracker and the orchestrator", err)
	}
	first.TrackerToken, first.OrchestratorKey = renewed.TrackerToken, renewed.OrchestratorKey
	again, err := LoadOrCreate(dir)
	if err != nil || again != first {
		t.Fatalf("second start made others: %v; want again == first", err)
	}
	if loaded, err := Load(dir); err != nil || loaded != first {
		t.Fatalf("load: %v; want loaded == first", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Fatalf("left behind: %v; want the secrets and their times", entries)
	}
}

func TestTimesOfTheSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, File), []byte(`{"ci_token":"of-an-earlier-version"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadOrCreate(dir)
	if err != nil {
		t.Fatal(err)
	}
	made, err := Made(dir)
	if _, known := made["ci_token"]; err != nil || known || len(made) != len(c.each())-1 {
		t.Fatalf("%v, %v; want a time for each secret but ci_token, whose time nobody kept", made, err)
	}
	long := time.Now().Add(-time.Hour)
	if err := recordMade(dir, Credentials{}, c, long); err != nil {
		t.Fatal(err)
	}
	if _, err := RenewStandIns(dir, c); err != nil {
		t.Fatal(err)
	}
	if made, err = Made(dir); err != nil {
		t.Fatal(err)
	}
	for name, at := range made {
		renewed := name == "tracker_token" || name == "orchestrator_key"
		if renewed != at.After(long.Add(time.Minute)) {
			t.Errorf("%s was made at %s; want now if and only if it was renewed", name, at)
		}
	}
}

func TestAddsWhatAnEarlierFileLacks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, File), []byte(`{"ci_token":"keep-this-one"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "earlier version") {
		t.Fatalf(`load: %v; want an error && strings.Contains(err.Error(), "earlier version")`, err)
	}
	c, err := LoadOrCreate(dir)
	if err != nil || c.CIToken != "keep-this-one" || c.NATSToken == "" {
		t.Fatalf(`%q, %v; want c.CIToken == "keep-this-one" && c.NATSToken != ""`, c.CIToken, err)
	}
	if kept, err := Load(dir); err != nil || kept != c {
		t.Fatalf("not kept: %v; want kept == c", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "PLATFORM_DATA_DIR") {
		t.Errorf(`absent: %v; want an error && strings.Contains(err.Error(), "PLATFORM_DATA_DIR")`, err)
	}
	for name, tc := range map[string]struct {
		content string
		mode    os.FileMode
		says    string
	}{
		"damaged":        {`{"ci_token":`, 0o600, "damaged"},
		"member empty":   {`{"ci_token":""}`, 0o600, "ci_token must be a string"},
		"member null":    {`{"ci_token":null}`, 0o600, "ci_token must be a string"},
		"member number":  {`{"ci_token":17}`, 0o600, "ci_token must be a string"},
		"member spaced":  {`{"ci_token":"secret "}`, 0o600, "ci_token must be a string"},
		"member unknown": {`{"ci_tokken":"a-secret-of-some-length"}`, 0o600, "unknown member ci_tokken"},
		"member twice":   {`{"ci_token":"a-secret-of-some-length","ci_token":"another-secret"}`, 0o600, "ci_token is there twice"},
		"readable":       {`{}`, 0o640, "chmod 600"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, File)
		if err := os.WriteFile(file, []byte(tc.content), tc.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadOrCreate(dir); err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v; want an error && strings.Contains(err.Error(), tc.says) && strings.Contains(err.Error(), file)", name, err)
		}
		if b, _ := os.ReadFile(file); string(b) != tc.content {
			t.Errorf("%s: the file was changed; want string(b) == %v", name, tc.content)
		}
	}
}

func TestNeverPrinted(t *testing.T) {
	t.Parallel()
	c, err := LoadOrCreate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%v %+v %#v %s %v", c, c, c, c, &c)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", slog.Any("credentials", c))
	for _, s := range c.each() {
		if strings.Contains(out.String(), *s) {
			t.Fatalf("printed: %s; want !strings.Contains(out.String(), *s)", out.String())
		}
	}
}

func TestMaps(t *testing.T) {
	t.Parallel()
	c, err := LoadOrCreate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	grants := func(doc string) map[string]grant {
		m := map[string]grant{}
		if err := json.Unmarshal([]byte(doc), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	cp := grants(c.ControlPlaneMap())
	if _, ok := cp[c.ControlPlaneToken]; ok || len(cp) != 2 {
		t.Fatal("the control plane refuses a map that holds the legacy token")
	}
	if got, want := fmt.Sprint(cp[c.CIToken], cp[c.OperatorToken]), "{ci default [read changes]} {operator default [read write]}"; got != want {
		t.Fatalf("people: %s; want %s", got, want)
	}
	own := grants(c.ControlPlaneSystemMap())
	if got, want := fmt.Sprint(own[c.TrainerToken], own[c.SeedToken], own[c.InferenceToken], own[c.BusControlPlaneToken], len(own)), "{system:trainer default [read manage]} {system:seed default [read write]} {system:inference platform [read]} {system:bus default [retrain]} 4"; got != want {
		t.Fatalf("components: %s; want %s", got, want)
	}
	inf := grants(c.InferenceMap())
	if got := fmt.Sprint(inf[c.ServingToken], inf[c.ServingControlPlaneToken], inf[c.BusServingToken], len(inf)); got !=
		"{operator default [admin]} {control-plane platform [admin]} {bus-bridge default [predict]} 3" {
		t.Fatal(got, `want "{operator default [admin]} {control-plane platform [admin]} {bus-bridge default [predict]} 3"`)
	}
}

func TestExports(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "it's a $(dir)")
	c := Credentials{ControlPlaneToken: "cp", ServingToken: "sv", WebhookSecret: "wh'x", TrackerToken: "tr", OrchestratorKey: "or", EvidenceToken: "ev", AssistantAdmin: "a1", AssistantOperator: "o1", AssistantReadonly: "r1", BusPassword: "bp", DashboardAdmin: "da", DashboardViewer: "dv"}
	got := c.Exports(Addresses{
		ControlPlane: "http://127.0.0.1:18002", Serving: "http://127.0.0.1:18001", Tracker: "http://127.0.0.1:15000",
		Orchestrator: "http://127.0.0.1:14200/api", Evidence: "http://127.0.0.1:8770", Assistant: "http://127.0.0.1:18004",
		Dashboard: "http://127.0.0.1:8099", Bus: "http://127.0.0.1:18003", NATS: "127.0.0.1:4222", ServingGRPC: "127.0.0.1:18005", DataDir: dir,
	})
	want := "export DASHBOARD_URL='http://127.0.0.1:8099'\n" +
		"export DASHBOARD_ADMIN_PASSWORD='da'\n" +
		"export DASHBOARD_VIEWER_PASSWORD='dv'\n" +
		"export CONTROL_PLANE_URL='http://127.0.0.1:18002'\n" +
		"export CONTROL_PLANE_TOKEN='cp'\n" +
		"export SERVING_URL='http://127.0.0.1:18001'\n" +
		"export SERVING_TOKEN='sv'\n" +
		"export SERVING_GRPC_ADDR='127.0.0.1:18005'\n" +
		"export TRACKING_URI='http://127.0.0.1:15000'\n" +
		"export MLFLOW_TRACKING_TOKEN='tr'\n" +
		"export ORCHESTRATOR_API_URL='http://127.0.0.1:14200/api'\n" +
		"export PREFECT_API_KEY='or'\n" +
		"export PREFECT_API_AUTH_STRING='platform:or'\n" +
		`export MODELREPO_WEBHOOK_SECRET='wh'\''x'` + "\n" +
		"export BUS_BRIDGE_URL='http://127.0.0.1:18003'\n" +
		"export BUS_NATS_URL='nats://bus:bp@127.0.0.1:4222'\n" +
		"export SVC_CONTROL_TOWER_URL='http://127.0.0.1:8770'\n" +
		"export SVC_CONTROL_TOWER_TOKEN='ev'\n" +
		"export ASSISTANT_URL='http://127.0.0.1:18004'\n" +
		"export ASSISTANT_ADMIN_KEY='ki-admin-a1'\n" +
		"export ASSISTANT_OPERATOR_KEY='ki-op-o1'\n" +
		"export ASSISTANT_READONLY_KEY='ki-ro-r1'\n" +
		"export ASSISTANT_KEY='ki-op-o1'\n" +
		"export PLATFORM_EVIDENCE_STORE=" + quoteForShell(filepath.Join(dir, "evidence", "store.sqlite")) + "\n" +
		"export PLATFORM_MODELREPO=" + quoteForShell(filepath.Join(dir, "modelrepo")) + "\n"
	if got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	out, err := exec.Command("sh", "-c", got+`printf %s "$PLATFORM_MODELREPO|$MODELREPO_WEBHOOK_SECRET"`).Output()
	if err != nil || string(out) != filepath.Join(dir, "modelrepo")+"|wh'x" {
		t.Fatalf(`a shell reads %q, %v; want string(out) == filepath.Join(dir, "modelrepo") + "|wh'x"`, out, err)
	}
}
