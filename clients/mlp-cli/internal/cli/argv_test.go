package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// result is the output and exit code of one run of mlp.
type result struct {
	out, err string
	code     int
}

// one guards the flag library's package variables, which every run of an app writes.
var one sync.Mutex

// runMLP runs mlp with the given environment and standard input, as a script would.
func runMLP(t *testing.T, vars map[string]string, in string, argv ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	env := &Env{In: io.NopCloser(strings.NewReader(in)), Out: &out, Err: &errOut, Now: time.Now, Format: output.Table,
		Getenv: func(k string) string { return vars[k] }}
	one.Lock()
	defer one.Unlock()
	code := Main(context.Background(), env, append([]string{"mlp"}, argv...))
	return result{out.String(), errOut.String(), code}
}

func TestArrange(t *testing.T) {
	t.Parallel()
	app := newApp(&Env{Getenv: func(string) string { return "" }})
	for _, tc := range []struct{ name, line, want, fault, hint string }{
		{"options after positionals", "retrain JPCP --dummy -d JobEmbeddings", "mlp retrain --dummy -d JobEmbeddings -- JPCP", "", ""},
		{"options before positionals", "retrain --dummy JPCP", "mlp retrain --dummy -- JPCP", "", ""},
		{"-- ends options", "predict -f {} -- --odd", "mlp predict -f {} -- --odd", "", ""},
		{"joined value", "predict JPCP --features={}", "mlp predict --features={} -- JPCP", "", ""},
		{"global option before", "--json models list", "mlp --json models list", "", ""},
		{"yes may follow", "approvals approve JPCP --yes", "mlp approvals approve --yes -- JPCP", "", ""},
		{"global option after", "models list --json", "", "--json is a global option and must come before the subcommand: mlp --json models list", ""},
		{"global value option after", "models list --output csv", "", "--output is a global option and must come before the subcommand: mlp --output csv models list", ""},
		{"unknown command", "modles list", "", `unknown command "modles" for mlp`, "did you mean: mlp models"},
		{"name of a subcommand", "rollback JPCP", "", `unknown command "rollback" for mlp`, "did you mean: mlp models rollback"},
		{"name of several subcommands", "approve JPCP", "", `unknown command "approve" for mlp`, "did you mean: mlp approvals approve, or mlp guarded-changes approve"},
		{"unknown subcommand", "models lst", "", `unknown command "lst" for mlp models`, "did you mean: mlp models list"},
		{"unknown option", "retrain JPCP --dumy", "", "unknown option --dumy for mlp retrain", "did you mean: --dummy"},
		{"option without value", "predict JPCP --alias", "", "option --alias needs a value", ""},
		{"stdin dash is a word", "predict JPCP -f -", "mlp predict -f - -- JPCP", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := arrangeLine(app, append([]string{"mlp"}, strings.Fields(tc.line)...))
			if tc.fault == "" {
				if err != nil || strings.Join(got, " ") != tc.want {
					t.Fatalf("got %q, %v; want %q", strings.Join(got, " "), err, tc.want)
				}
				return
			}
			f := fault.From(err)
			if f == nil || f.Message != tc.fault || f.Hint != tc.hint || f.Exit != 2 {
				t.Fatalf("got %+v; want f != nil && f.Message == tc.fault && f.Hint == tc.hint && f.Exit == 2", f)
			}
		})
	}
}

func FuzzArrange(f *testing.F) {
	f.Add("retrain JPCP --dummy")
	f.Add("--output json -- models")
	f.Add("predict - -f @x -- -y")
	app := newApp(&Env{Getenv: func(string) string { return "" }})
	f.Fuzz(func(t *testing.T, line string) {
		argv := append([]string{"mlp"}, strings.Fields(line)...)
		got, err := arrangeLine(app, argv)
		if err != nil && fault.From(err).Exit != 2 {
			t.Fatalf("a wrong line must exit 2: %v", err)
		}
		// Property: nothing is invented but one "--", and nothing is lost but a "--" of the caller.
		if err == nil && (len(got) > len(argv)+1 || len(got) < len(argv)-1) {
			t.Fatalf("%q became %q; want (an error || !len(got) > len(argv)+1 || len(got) < len(argv)-1)", argv, got)
		}
	})
}

func TestUsageFaults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		line string
		code int
		want string
	}{
		{"models list --json", 2, "mlp --json models list"},
		{"--output xml status", 2, "--output must be one of"},
		{"retrain", 2, "missing argument <model>"},
		{"retrain A B", 2, `unexpected argument "B"`},
		{"retrain JPCP --backend tape", 2, "--backend must be one of"},
		{"predict JPCP --features {} --alias Prod", 2, "--alias must be one of"},
		{"predict JPCP --features {", 1, "not a JSON object"},
		{"config set nonsense x", 2, "unknown config key"},
		{"config set serving not-a-url", 1, "must be an http or https address"},
		{"--context nowhere config show", 2, "unknown context"},
	} {
		t.Run(tc.line, func(t *testing.T) {
			t.Parallel()
			r := runMLP(t, map[string]string{"HOME": t.TempDir()}, "", strings.Fields(tc.line)...)
			if r.code != tc.code || !strings.Contains(r.err+r.out, tc.want) || r.out != "" {
				t.Fatalf("exit %d\nout %q\nerr %q; want r.code == tc.code && strings.Contains(r.err+r.out, tc.want) && r.out == \"\"", r.code, r.out, r.err)
			}
		})
	}
}

// A failure under a structured format is one document on stdout, and stderr stays empty.
func TestFaultAsDocument(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"HOME": t.TempDir(), "SERVING_URL": "http://127.0.0.1:1", "CONTROL_PLANE_URL": "http://127.0.0.1:1"}
	r := runMLP(t, vars, "", "--json", "status")
	var doc struct {
		Error    string  `json:"error"`
		Code     string  `json:"code"`
		ExitCode int     `json:"exit_code"`
		Hint     *string `json:"hint"`
	}
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
		t.Fatalf("%v: %q", err, r.out)
	}
	if r.code != 1 || r.err != "" || doc.Code != "unreachable" || doc.ExitCode != 1 || doc.Hint == nil || !strings.Contains(doc.Error, "refused the connection") {
		t.Fatalf(`exit %d, err %q, doc %+v; want r.code == 1 && r.err == "" && doc.Code == "unreachable" && doc.ExitCode == 1 && doc.Hint != nil && strings.Contains(doc.Error, "refused the connection")`, r.code, r.err, doc)
	}
}
