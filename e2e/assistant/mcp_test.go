//go:build e2e

package assistant_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
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
