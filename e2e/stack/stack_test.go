//go:build e2e && full

// Package stack checks the platform as containers with several replicas of each service: every replica has what another
// one accepted. With the tag ha (`make e2e-ha`) it also checks that a container's death for half a minute loses
// nothing, and that restarting everything in turn fails no request; docs/scaling.md has the figures.
//
// It starts a separate stack on free ports, which takes minutes, and removes it with its volumes. STACK=running uses
// the one that COMPOSE_PROJECT_NAME and .data/compose describe; STACK=keep leaves its own running.
package stack

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// The services with several replicas, and their ports.
var replicated = map[string]string{"control-plane": "18002", "dashboard": "8099", "inference": "18001", "assistant": "18004"}

var environment map[string]string // what scripts/up.sh env prints

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	mode := os.Getenv("STACK")
	if mode != "running" {
		if err := start(); err != nil {
			fmt.Fprintln(os.Stderr, "stack:", err)
			return 1
		}
		if mode != "keep" {
			defer func() {
				if out, err := script("down", "--volumes").CombinedOutput(); err != nil {
					fmt.Fprintf(os.Stderr, "stack: %v\n%s", err, out)
				}
			}()
		}
	}
	if err := loadEnvironment(); err != nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
		return 1
	}
	return m.Run()
}

// start brings up a new stack, with replicas and on free ports.
func start() error {
	dir, err := os.MkdirTemp("", "stack-")
	if err != nil {
		return err
	}
	if err := makeModelRepository(filepath.Join(dir, "models")); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // containers read the models as users of their own
		return err
	}
	settings := map[string]string{
		"MODELREPO":            filepath.Join(dir, "models"),
		"COMPOSE_PROJECT_NAME": filepath.Base(dir), "PLATFORM_SECRETS_DIR": filepath.Join(dir, "secrets"),
		"CONTROL_PLANE_REPLICAS": "3", "DASHBOARD_REPLICAS": "2", "INFERENCE_REPLICAS": "2", "ASSISTANT_REPLICAS": "2",
		"EDGE_NETWORK": "10.237.60", "DATA_NETWORK": "10.237.61", // beside a stack that make up started
	}
	for _, name := range []string{"DASHBOARD", "DASHBOARD_TOOLS", "CONTROL_PLANE", "INFERENCE", "ASSISTANT", "BUS_BRIDGE", "EVIDENCE_API", "TRACKER", "ORCHESTRATOR"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		_, settings[name+"_PORT"], err = net.SplitHostPort(l.Addr().String())
		l.Close()
		if err != nil {
			return err
		}
	}
	for name, value := range settings {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	cmd := script("up")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// makeModelRepository creates a working copy of the sample models that tests commit to.
func makeModelRepository(dir string) error {
	if err := os.CopyFS(dir, os.DirFS("../../deploy/modelrepo")); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=stack", "-c", "user.email=stack@localhost", "commit", "-qm", "Sample models"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// script runs scripts/up.sh.
func script(args ...string) *exec.Cmd {
	dir, _ := filepath.Abs("../..")
	cmd := exec.Command(filepath.Join(dir, "scripts", "up.sh"), args...)
	cmd.Env = os.Environ()
	return cmd
}

var exported = regexp.MustCompile(`(?m)^export ([A-Z_]+)='?([^'\n]*)'?$`)

func loadEnvironment() error {
	out, err := script("env").Output()
	if err != nil {
		return fmt.Errorf("scripts/up.sh env: %w", err)
	}
	environment = map[string]string{}
	for _, m := range exported.FindAllStringSubmatch(string(out), -1) {
		environment[m[1]] = m[2]
	}
	return nil
}

// docker runs a command of the engine that runs the stack.
func docker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := harness.TryUp(t, append([]string{"docker"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// replicas returns the base URLs of the replicas of a service, past the proxy.
func replicas(t testing.TB, service string) (urls []string) {
	t.Helper()
	for _, c := range harness.Containers(t, service) {
		urls = append(urls, "http://"+net.JoinHostPort(c.Address, replicated[service]))
	}
	if len(urls) < 2 {
		t.Fatalf("%s has %d replicas; want at least 2 (%s_REPLICAS)", service, len(urls), strings.ToUpper(strings.ReplaceAll(service, "-", "_")))
	}
	return urls
}

// waitReady waits until every replica of a service is ready and the proxy has noticed: a replica restarted before the
// proxy knows the previous one again may be the last one it knows.
func waitReady(t testing.TB, service string, n int) {
	t.Helper()
	harness.Eventually(t, 3*time.Minute, func() error {
		all := harness.Containers(t, service)
		if len(all) != n {
			return fmt.Errorf("%s has %d running containers, want %d", service, len(all), n)
		}
		for _, c := range all {
			answer, err := harness.TryCall(http.MethodGet, "http://"+net.JoinHostPort(c.Address, replicated[service])+"/readyz", "", nil)
			if err != nil {
				return err
			}
			if answer.Status != http.StatusOK {
				return fmt.Errorf("%s answers %d on /readyz", c.Name, answer.Status)
			}
		}
		return checkProxyKnows(t, service, n)
	})
}

// checkProxyKnows returns an error unless the proxy sends requests to n replicas of the service.
func checkProxyKnows(t testing.TB, service string, n int) error {
	t.Helper()
	proxies := harness.Containers(t, "proxy")
	if len(proxies) != 1 {
		return fmt.Errorf("%d proxies run, want 1", len(proxies))
	}
	answer, err := harness.TryCall(http.MethodGet, "http://"+net.JoinHostPort(proxies[0].Address, "8404")+"/metrics", "", nil)
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("\nhaproxy_backend_active_servers{proxy=%q} %d\n", service, n); !strings.Contains(string(answer.Body), want) {
		return fmt.Errorf("the proxy does not know %d replicas of %s", n, service)
	}
	return nil
}

// login signs in at a dashboard and returns the session's token.
func login(t testing.TB, base, role string) string {
	t.Helper()
	var token string
	harness.Eventually(t, 2*time.Minute, func() error { // the database may just have moved
		a, err := harness.TryCall(http.MethodPost, base+"/api/auth/login", "", map[string]string{"password": environment["DASHBOARD_"+strings.ToUpper(role)+"_PASSWORD"]}, "Host", "localhost")
		if err != nil {
			return err
		}
		if a.Status != http.StatusOK {
			return fmt.Errorf("login as %s at %s: %d %s; want a token", role, base, a.Status, a.Body)
		}
		token, _ = a.JSON(t)["token"].(string)
		return nil
	})
	return token
}

// call sends a request that must be answered, with any status. Replicas are addressed directly, so the Host is a name
// that the dashboard accepts.
func call(t testing.TB, method, url, token string, body any, headers ...string) harness.Answer {
	t.Helper()
	return harness.Call(t, method, url, token, body, append([]string{"Host", "localhost"}, headers...)...)
}

// sleep lets time pass where the test is about time: how long something is unavailable, or under load.
func sleep(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
