//go:build e2e

// Package mlp runs scripts of commands with the built mlp against one running platform. Each script in testdata covers
// some commands: table and documents, dry run, refusal, error and exit code.
package mlp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mlp-platform/platform/e2e/harness"
)

// Scripts run one after the other in the order of their names: they share the platform's models.
func TestScripts(t *testing.T) {
	p, running := harness.Attached() // for developing a script without waiting for another start
	if !running {
		p = harness.New(t)
		p.Start(t, 3*time.Minute)
		p.WaitOutput(t, "Next:", 8*time.Minute, time.Now())
	}
	scripts, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("found %d scripts (%v); want at least one", len(scripts), err)
	}
	mlp := harness.Bin(t, "mlp")
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			testscript.RunT(inOrder{t}, testscript.Params{
				Files:    []string{script},
				Setup:    func(env *testscript.Env) error { return setUp(t, p, env) },
				Cmds:     commands(t, p, mlp),
				TestWork: false,
			})
		})
	}
	t.Run("documents", func(t *testing.T) { checkDocuments(t, p, mlp) })
	t.Run("decisions", func(t *testing.T) { checkDecisions(t, p, mlp) })
	t.Run("interrupts", func(t *testing.T) { checkInterrupts(t, p, mlp) })
	// Last: they wait until a tenant's rate limit allows more.
	t.Run("examples", func(t *testing.T) { checkExamples(t, p, mlp) })
}

// inOrder is a test whose subtests do not run in parallel.
type inOrder struct{ *testing.T }

func (t inOrder) Parallel() {}

func (t inOrder) Run(_ string, f func(testscript.T)) { f(t) }

func (t inOrder) Verbose() bool { return testing.Verbose() }

// setUp gives a script a new home directory and the platform's addresses and tokens.
func setUp(t *testing.T, p *harness.Platform, env *testscript.Env) error {
	for k, v := range environment(t, p) {
		env.Setenv(k, v)
	}
	env.Setenv("HOME", env.WorkDir)
	// Hints say mlp, as where it is installed.
	env.Setenv("PATH", filepath.Join(harness.Root(t), "bin")+string(filepath.ListSeparator)+env.Getenv("PATH"))
	env.Setenv("ROOT", harness.Root(t))
	env.Setenv("NOW", time.Now().UTC().Format(time.RFC3339Nano))
	env.Setenv("REQUESTER", p.Secret(t, "control_plane_token"))
	env.Setenv("CI_TOKEN", p.Secret(t, "ci_token"))
	env.Setenv("ADMIN_PASSWORD", p.Secret(t, "dashboard_admin_password"))
	return nil
}

// environment has the platform's addresses and tokens. Its user is the operator: not the person who makes requests as
// $REQUESTER.
func environment(t *testing.T, p *harness.Platform) map[string]string {
	vars := map[string]string{"CONTROL_PLANE_TOKEN": p.Secret(t, "operator_token")}
	for _, k := range []string{"CONTROL_PLANE_URL", "SERVING_URL", "SERVING_TOKEN", "TRACKING_URI", "MLFLOW_TRACKING_TOKEN", "ORCHESTRATOR_API_URL",
		"PREFECT_API_KEY", "PLATFORM_MODELREPO", "ASSISTANT_URL", "ASSISTANT_KEY", "BUS_BRIDGE_URL", "BUS_NATS_URL"} {
		vars[k] = p.Env[k]
	}
	for _, kv := range p.Environ() {
		if addr, ok := strings.CutPrefix(kv, "DASHBOARD_ADDR="); ok {
			vars["DASHBOARD_URL"] = "http://" + addr
		}
	}
	return vars
}

func commands(t *testing.T, p *harness.Platform, mlp string) map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		// mlp CODE ARGUMENTS... runs mlp and expects that exit code. A document must be the only one on stdout, and
		// stderr must then be empty.
		"mlp": func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) == 0 {
				ts.Fatalf("usage: mlp CODE ARGUMENTS...")
			}
			want, err := strconv.Atoi(args[0])
			if err != nil {
				ts.Fatalf("usage: mlp CODE ARGUMENTS...: %v", err)
			}
			err = ts.Exec(mlp, args[1:]...)
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				ts.Fatalf("%v", err)
			}
			if code != want {
				ts.Fatalf("mlp %s: got exit %d, want %d", strings.Join(args[1:], " "), code, want)
			}
			if len(args) > 1 && args[1] == "--json" {
				checkDocument(ts)
			}
		},
		// notice MODEL MESSAGE files a change of a model as the continuous integration does.
		"notice": func(ts *testscript.TestScript, _ bool, args []string) {
			sha, err := exec.Command("git", "-C", p.Env["PLATFORM_MODELREPO"], "rev-parse", "HEAD").Output()
			ts.Check(err)
			harness.Want(t, 200, "POST", p.Env["CONTROL_PLANE_URL"]+"/api/changes", ts.Getenv("CI_TOKEN"),
				map[string]any{"model_ids": args[:1], "commit_sha": strings.TrimSpace(string(sha)), "commit_msg": args[1]})
		},
		// bus SUBJECT FILE sends a request as a producer does, and prints the reply.
		"bus": func(ts *testscript.TestScript, _ bool, args []string) {
			nc, err := nats.Connect(ts.Getenv("BUS_NATS_URL"))
			ts.Check(err)
			defer nc.Close()
			reply, err := nc.Request(args[0], []byte(ts.ReadFile(args[1])), 30*time.Second)
			ts.Check(err)
			_, err = fmt.Fprintf(ts.Stdout(), "%s\n", reply.Data)
			ts.Check(err)
		},
		// remember NAME REGEXP sets the environment variable to the first matching group in stdout.
		"remember": func(ts *testscript.TestScript, _ bool, args []string) {
			m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
			if len(m) < 2 {
				ts.Fatalf("no match of %s in stdout", args[1])
			}
			ts.Setenv(args[0], m[1])
		},
	}
}

// checkDocument expects exactly one JSON document on stdout, and nothing on stderr.
func checkDocument(ts *testscript.TestScript) {
	dec := json.NewDecoder(bytes.NewReader([]byte(ts.ReadFile("stdout"))))
	var doc any
	if err := dec.Decode(&doc); err != nil {
		ts.Fatalf("stdout is no JSON document: %v", err)
	}
	if err := dec.Decode(&doc); !errors.Is(err, io.EOF) {
		ts.Fatalf("stdout goes on after its document: %v", fmt.Sprint(doc))
	}
	if talk := ts.ReadFile("stderr"); talk != "" {
		ts.Fatalf("stderr is %q beside a document; want it empty", talk)
	}
}
