//go:build e2e

package assistant_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/e2e/harness"
)

// testMCP: the protocol's official SDKs list the tools, read, and propose a change that a person then denies.
func testMCP(t *testing.T, w *world) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	packages := filepath.Join(harness.Root(t), ".cache/browser")
	const line = "kubectl scale deployment/web -n shop --replicas=7"
	for name, command := range map[string][]string{
		"Python over HTTP":     {venvPython(t, "python"), "testdata/mcp_client.py", "http", "", w.process.url, operatorKey, line},
		"Python over stdio":    {venvPython(t, "python"), "testdata/mcp_client.py", "stdio", harness.Bin(t, "assistant"), w.process.url, operatorKey, line},
		"TypeScript over HTTP": {node, "testdata/mcp_client.cjs", packages, w.process.url, operatorKey, line},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		cancel()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, errs.String())
			continue
		}
		var seen struct {
			Tools     map[string]bool
			Schemas   bool
			Diagnosis struct {
				Data struct{ Findings []map[string]any }
			}
			Proposal struct {
				ActionID  string `json:"action_id"`
				SessionID string `json:"session_id"`
				State     string
				Command   string
			}
			Refused string
		}
		if err := json.Unmarshal(out, &seen); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		reads, offered := seen.Tools["propose_change"]
		if !offered || reads || len(seen.Tools) < 20 || !seen.Tools["diagnose"] || !seen.Schemas {
			t.Errorf("%s: got the tools %v, schemas %v; want readers and propose_change, each with its schemas", name, seen.Tools, seen.Schemas)
		}
		if len(seen.Diagnosis.Data.Findings) == 0 || !strings.Contains(string(out), "DATABASE_URL") {
			t.Errorf("%s: got %s; want the empty DATABASE_URL among the findings", name, out)
		}
		if p := seen.Proposal; p.State != "pending" || p.Command != line || seen.Refused == "" {
			t.Errorf("%s: got the proposal %+v, the refusal %q; want a pending action, and a refusal of what only reads", name, p, seen.Refused)
		}
		path := w.process.url + "/v1/sessions/" + seen.Proposal.SessionID + "/actions/" + seen.Proposal.ActionID
		harness.Want(t, http.StatusOK, http.MethodPost, path, operatorKey, map[string]string{"decision": "deny"})
	}
	web, err := w.Client.AppsV1().Deployments("shop").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || *web.Spec.Replicas == 7 {
		t.Errorf("got %v replicas, %v; want those from before: nobody approved 7", web.Spec.Replicas, err)
	}
}

// inspected is what the Inspector prints of a list and of a call.
type inspected struct {
	Result struct {
		Tools []struct {
			Name                      string
			InputSchema, OutputSchema struct{ Type string }
			Annotations               struct{ ReadOnlyHint, DestructiveHint bool }
		}
		Content           []struct{ Type, Text string }
		StructuredContent struct {
			Data struct{ Findings []map[string]any }
		}
	}
	errs string // what it complains about
}

// inspect runs the protocol's official Inspector as a command and returns its exit code; target is how it reaches a server.
func inspect(t *testing.T, target []string, method ...string) (inspected, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := slices.Concat([]string{"--cli"}, target, []string{"--format", "json", "--method"}, method)
	cmd := exec.CommandContext(ctx, filepath.Join(harness.Root(t), ".cache/browser/node_modules/.bin/mcp-inspector"), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var seen inspected
	if err := json.Unmarshal(out, &seen); err != nil {
		t.Fatalf("%v: %v\n%s\n%s", method, err, out, errs.String())
	}
	// Its warnings are about lists that may be null: legal, and so encoded by Go.
	seen.errs = strings.Join(slices.DeleteFunc(strings.Split(errs.String(), "\n\n"), func(s string) bool { return strings.HasPrefix(s, "Warning: ") }), "\n")
	return seen, cmd.ProcessState.ExitCode()
}

// testInspector: the protocol's official Inspector finds every schema sound, and reads, by both ways to the assistant.
func testInspector(t *testing.T, w *world) {
	command := func(key string) []string {
		return []string{harness.Bin(t, "assistant"), "mcp", "-e", "ASSISTANT_URL=" + w.process.url, "-e", "ASSISTANT_KEY=" + key}
	}
	overHTTP := func(key string) []string {
		return []string{w.process.url + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + key}
	}
	for name, target := range map[string]func(key string) []string{"HTTP": overHTTP, "stdio": command} {
		for key, proposes := range map[string]bool{operatorKey: true, readonlyKey: false} {
			// With --strict it fails for a schema that other clients may refuse.
			list, code := inspect(t, target(key), "tools/list", "--strict")
			if code != 0 || len(list.Result.Tools) < 20 {
				t.Errorf("%s: exit code %d, %d tools; want 0, and at least 20\n%s", name, code, len(list.Result.Tools), list.errs)
			}
			offered := map[string]bool{}
			for _, one := range list.Result.Tools {
				offered[one.Name] = true
				if one.InputSchema.Type != "object" || one.OutputSchema.Type != "object" {
					t.Errorf("%s: %s: got schemas of %+v and %+v, want two of objects", name, one.Name, one.InputSchema, one.OutputSchema)
				}
				if h, writes := one.Annotations, one.Name == "propose_change"; h.ReadOnlyHint == writes || h.DestructiveHint != writes {
					t.Errorf("%s: %s: got %+v", name, one.Name, h)
				}
			}
			if !offered["diagnose"] || offered["propose_change"] != proposes {
				t.Errorf("%s: got %v; want diagnose, and propose_change only for an operator", name, offered)
			}
		}
		call, code := inspect(t, target(readonlyKey), "tools/call", "--tool-name", "diagnose", "--tool-arg", "namespace=shop")
		if r := call.Result; code != 0 || len(r.Content) != 1 || !strings.Contains(r.Content[0].Text, "The variable `DATABASE_URL` is set to nothing") || len(r.StructuredContent.Data.Findings) == 0 {
			t.Errorf("%s: exit code %d, got %+v; want the empty DATABASE_URL in the text, and findings\n%s", name, code, r, call.errs)
		}
		const failed = 5 // the tool's result is an error
		if refused, code := inspect(t, target(operatorKey), "tools/call", "--tool-name", "propose_change", "--tool-arg", "kubectl=kubectl get pods"); code != failed {
			t.Errorf("%s: exit code %d, got %+v; want a refusal of what only reads", name, code, refused.Result)
		}
	}
}
