package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
)

// runOnTerminal runs mlp at a terminal of that many columns.
func runOnTerminal(t *testing.T, width int, vars map[string]string, line ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	env := &Env{In: io.NopCloser(strings.NewReader("")), Out: &out, Err: &errOut, Now: time.Now, Format: output.Table, OutTTY: true, ErrTTY: true, OutWidth: width,
		Getenv: func(k string) string { return vars[k] }}
	one.Lock()
	defer one.Unlock()
	code := Main(context.Background(), env, append([]string{"mlp"}, line...))
	return result{out.String(), errOut.String(), code}
}

const driftOfTwo = `[{"model":"RUNTIMEREGRESSOR","alias":"Production","live_mean":430.816,"baseline_mean":396.218,"z_score":0.0321,"status":"OK","overall":"WARNING","decided_by":"psi","n_snapshots":100,"recent":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16],"measures":{}},
{"model":"RUNTIMEREGRESSOR","alias":"Canary","status":"NO_BASELINE","overall":"NO_BASELINE","n_snapshots":0,"recent":[],"measures":{}}]`

// What decides is never cut: on 80 columns the table leaves columns out instead and names them.
func TestDriftStatusFits80Columns(t *testing.T) {
	t.Parallel()
	url := serveAnswer(t, 200, "application/json", driftOfTwo)
	vars := map[string]string{"HOME": t.TempDir(), "SERVING_URL": url, "NO_COLOR": "1"}
	r := runOnTerminal(t, 80, vars, "drift", "status")
	for _, want := range []string{"RUNTIMEREGRESSOR", "Production", "Canary", "WARNING", "NO_BASELINE", "0.0321", "not shown: baseline_mean"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("got\n%s%s\nwant %q in it", r.out, r.err, want)
		}
	}
	if strings.Contains(r.out, "…") || r.code != 0 {
		t.Errorf("got exit %d and\n%s%s\nwant nothing cut", r.code, r.out, r.err)
	}
	if r := runOnTerminal(t, 80, vars, "drift", "status", "--columns", "alias,decided_by", "--limit", "1"); r.out != "ALIAS       DECIDED BY\nProduction  psi\n\nsee which inputs moved: mlp drift report RUNTIMEREGRESSOR\n" {
		t.Errorf("got %q %q, want the two columns of one row", r.out, r.err)
	}
}

// The fields of one thing are labels on a narrow terminal, not values beside the word Field.
func TestRecordsAt40Columns(t *testing.T) {
	t.Parallel()
	url := serveAnswer(t, 200, "application/json", `{"sub":"admin","role":"admin","tenant":"default","auth_method":"password","capabilities":["read"],"expires_at":"2026-01-02T03:04:05Z"}`)
	r := runOnTerminal(t, 40, map[string]string{"HOME": t.TempDir(), "DASHBOARD_URL": url, "DASHBOARD_TOKEN": "t", "NO_COLOR": "1"}, "auth", "whoami")
	if !strings.HasPrefix(r.out, "Subject       admin\n") || strings.Contains(r.out, "Field") {
		t.Errorf("got\n%s%s\nwant `Subject  admin` first", r.out, r.err)
	}
}

func TestDryRunNamesItsCommandOnce(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"HOME": t.TempDir(), "CONTROL_PLANE_TOKEN": "t", "CONTROL_PLANE_URL": serveAnswer(t, 200, "application/json", `[{"model_name":"JPCP","datasets":["Jobs"]}]`)}
	r := runOnTerminal(t, 40, vars, "retrain", "JPCP", "--dry-run")
	if !strings.Contains(r.out, "Dry run of retrain JPCP: nothing is changed") || !strings.Contains(r.out, "dataset  Jobs\n") || r.code != 0 {
		t.Errorf("got exit %d and\n%s%s\nwant the command in the title and the fields as labels", r.code, r.out, r.err)
	}
	if r := runMLP(t, vars, "", "-o", "csv", "retrain", "JPCP", "--dry-run"); !strings.HasPrefix(r.out, "command,target,field,value\nretrain,JPCP,") {
		t.Errorf("got %q, want the columns that scripts read", r.out)
	}
}

// Help omits the defaults of switches: every switch is off unless given.
func TestHelpOmitsDefaultsOfSwitches(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"--help", "approvals --help", "models list --help"} {
		if r := runMLP(t, nil, "", strings.Fields(line)...); strings.Contains(r.out, "default: false") || r.code != 0 {
			t.Errorf("mlp %s: got exit %d and\n%s\nwant no defaults of switches", line, r.code, r.out)
		}
	}
}

// A redirect, a page and another protocol are distinguished from an unreachable address, at each service.
func TestWrongAddressesAreNamed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, url, code, sentence string }{
		{"a redirect", serveAnswer(t, 302, "text/html", "Found", "Location", "http://127.0.0.1:1/"), "http_302", "redirects"},
		{"a page", serveAnswer(t, 200, "text/html", "<html>hello</html>"), "not_json", "not the expected JSON"},
		{"no HTTP", serveBytes(t, "+OK hello\r\n"), "not_http", "not HTTP"},
		{"nobody", "http://127.0.0.1:1", "unreachable", "refused the connection"},
	} {
		for service, line := range map[string]string{"tracker": "models list", "control plane": "runs list", "inference": "drift status", "dashboard": "alerts list"} {
			t.Run(fmt.Sprintf("%s, %s", tc.name, service), func(t *testing.T) {
				t.Parallel()
				r := runMLP(t, worldAt(t, tc.url).vars, "", append([]string{"--json"}, strings.Fields(line)...)...)
				if r.code != 1 || !strings.Contains(r.out, fmt.Sprintf("%q: %q", "code", tc.code)) || !strings.Contains(r.out, tc.sentence) {
					t.Errorf("mlp %s: got exit %d and\n%s%s\nwant %s: %s", line, r.code, r.out, r.err, tc.code, tc.sentence)
				}
			})
		}
	}
}

func TestAuthValidateTellsWhatAnswers(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		serveAnswer(t, 401, "application/json", `{"detail":"no"}`): "refused",
		serveAnswer(t, 200, "text/html", "<html>hello</html>"):     "unexpected",
		"http://127.0.0.1:1": "unreachable",
	} {
		vars := worldAt(t, url).vars
		vars["PREFECT_API_KEY"] = "k"
		r := runMLP(t, vars, "", "auth", "validate")
		found := false
		for line := range strings.SplitSeq(r.out, "\n") {
			found = found || strings.HasPrefix(line, "orchestrator") && strings.Contains(line, want)
		}
		if !found || r.code != 1 {
			t.Errorf("got exit %d and\n%s%s\nwant the orchestrator %s", r.code, r.out, r.err, want)
		}
	}
}

// serveBytes serves another protocol: it answers with a greeting.
func serveBytes(t *testing.T, greeting string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				// Only after the request: net/http discards what comes before it, and reports a lost connection.
				_, _ = c.Read(make([]byte, 1))
				_, _ = c.Write([]byte(greeting))
				_, _ = io.Copy(io.Discard, c) // a close with unread data would be a reset instead of the greeting
				_ = c.Close()
			}()
		}
	}()
	return "http://" + l.Addr().String()
}
