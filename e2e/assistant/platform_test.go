//go:build e2e

package assistant_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// TestPlatform follows a newcomer: the platform starts the assistant with its own cluster, says so in every answer,
// asks before it changes anything, and the ledger names the requester, the approver and the outcome.
func TestPlatform(t *testing.T) {
	t.Parallel()
	p := harness.New(t, "PLATFORM_SEED=false")
	p.Start(t, time.Minute)
	k := &talk{t: t, url: p.Env["ASSISTANT_URL"], key: p.Env["ASSISTANT_ADMIN_KEY"], session: "first"}

	a := k.say("what is wrong in shop?")
	requireMatches(t, a, `^3 things are wrong`, `(?s)api.*web.*catalog`, `sample cluster[^\n]*\n*$`)
	if len(a.approvals) > 0 {
		t.Errorf("a question asks for an approval:\n%s; want len(a.approvals) <= 0", a.text)
	}
	asked := requireOneApproval(t, k.say("roll api back in shop"))
	if !asked.Always || asked.Risk != "high" {
		t.Errorf(`asked %+v; want asked.Always && asked.Risk == "high"`, asked)
	}
	// Readonly callers read and change nothing.
	r := &talk{t: t, url: k.url, key: p.Env["ASSISTANT_READONLY_KEY"], session: "reader", scope: "shop"}
	if a := r.say("scale cart to 3"); len(a.approvals) > 0 {
		t.Errorf("a readonly caller is asked:\n%s; want len(a.approvals) <= 0", a.text)
	}
	// An operator may decide what operators may do, even in the admin's session with a message.
	o := &talk{t: t, url: k.url, key: p.Env["ASSISTANT_OPERATOR_KEY"], session: "first"}
	requireMatches(t, o.say("approve "+asked.ID), `2 of 2`)
	requireMatches(t, k.say("what is wrong in shop?"), `^2 things are wrong`, `(?s)web.*catalog`)

	harness.Eventually(t, 30*time.Second, func() error {
		doc := harness.Want(t, http.StatusOK, "GET", p.Env["CONTROL_PLANE_URL"]+"/audit/events?tenant=platform&source=assistant&limit=100", p.Env["CONTROL_PLANE_TOKEN"], nil).JSON(t)
		seen := fmt.Sprint(doc)
		for _, want := range []string{"assistant.action.proposed", "assistant.action.decided", "assistant.action.executed", asked.ID, asked.Digest, "assistant.action.refused", "assistant.turn.finished"} {
			if !strings.Contains(seen, want) {
				return fmt.Errorf("the ledger does not tell %s: %s", want, seen)
			}
		}
		for _, e := range doc["items"].([]any) {
			e := e.(map[string]any)
			details, _ := e["details"].(map[string]any)
			if e["action"] == "assistant.action.executed" && details["digest"] == asked.Digest {
				if details["requester"] == "" || details["decider"] == "" || details["requester"] == details["decider"] || !strings.Contains(fmt.Sprint(details["result"]), "rolled back") {
					return fmt.Errorf("the ledger tells %v", e)
				}
				return nil
			}
		}
		return fmt.Errorf("the ledger does not tell of the execution: %s", seen)
	})
	if v := harness.Want(t, http.StatusOK, "GET", p.Env["CONTROL_PLANE_URL"]+"/audit/verify?tenant=platform", p.Env["CONTROL_PLANE_TOKEN"], nil).JSON(t); v["ok"] != true && v["valid"] != true && v["verified"] != true {
		t.Errorf(`the ledger does not verify: %v; want ((v["ok"] == true || v["valid"] == true) || v["verified"] == true)`, v)
	}

	// Messages and decisions survive a crash; the sample cluster starts over.
	_, before := k.get("/v1/events/replay/first")
	p.Kill()
	p.Start(t, time.Minute)
	k.url = p.Env["ASSISTANT_URL"]
	if _, after := k.get("/v1/events/replay/first"); string(after) != string(before) {
		t.Errorf("the replay differs after a restart")
	}
	requireMatches(t, k.say("what is wrong in shop?"), `^3 things are wrong`)
}

// TestPlatformDeadCluster: with a kubeconfig of an unreachable cluster everything else starts, and the affected answers
// report it.
func TestPlatformDeadCluster(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"d","cluster":{"server":"http://127.0.0.1:1"}}],"contexts":[{"name":"d","context":{"cluster":"d"}}],"current-context":"d"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := harness.New(t, "PLATFORM_SEED=false", "KUBECONFIG="+file)
	p.Start(t, time.Minute)
	k := &talk{t: t, url: p.Env["ASSISTANT_URL"], key: p.Env["ASSISTANT_ADMIN_KEY"], session: "dead"}
	if status, _ := k.get("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("readyz answers %d; want %v", status, http.StatusServiceUnavailable)
	}
	if status, _ := k.get("/v1/namespaces"); status != http.StatusServiceUnavailable {
		t.Errorf("the namespaces answer %d; want %v", status, http.StatusServiceUnavailable)
	}
	a := k.say("what is wrong?")
	if !slices.Equal(a.errors, []string{"cluster_unreachable"}) {
		t.Errorf(`errors %v; want slices.Equal(a.errors, []string{"cluster_unreachable"})`, a.errors)
	}
	requireMatches(t, a, `does not answer`)
}
