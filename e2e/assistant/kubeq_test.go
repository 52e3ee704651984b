//go:build e2e

package assistant_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/e2e/kube"
	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// kubeQ is the public terminal client, as its package installs it, with a separate home directory.
func kubeQ(t *testing.T, home, url, key string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, venvPython(t, "kq"), append([]string{"--url", url, "--api-key", key}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm", "LANG=C.UTF-8"}
	return cmd
}

// testKubeQ drives kube-q, unmodified, as a person at a terminal does.
func testKubeQ(t *testing.T, w *world) {
	const ns = "desk"
	if err := w.Namespace(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	for _, d := range []diagnosis{
		{deployment: setEnvironment(kube.Deployment(ns, "api", goodImage, 1, crashing), corev1.EnvVar{Name: "DATABASE_URL"})},
		{deployment: kube.Deployment(ns, "web", "registry.test/web:1", 1, program.Program{})},
	} {
		if _, err := w.Client.AppsV1().Deployments(ns).Create(t.Context(), d.deployment, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := retryUntil(60*time.Second, joinChecks(w.waiting(ns, 1, "CrashLoopBackOff"), w.readyPods(ns, 1))); err != nil {
		t.Fatal(err)
	}
	home, front := t.TempDir(), openBreaker(t, w.process.url)
	chats := func() []posted { return front.requests("/v1/chat/completions") }
	writes := func(n int, when string) {
		t.Helper()
		if calls := w.door.written(0, ns); len(calls) != n {
			t.Fatalf("%d writes %s, want %d:\n%s", len(calls), when, n, formatCalls(calls))
		}
	}
	prompt := `You \[` + ns + `\]: \s*$`

	k := atTerminal(t, kubeQ(t, home, front.url, adminKey))
	k.see(`You: \s*$`)
	if h := front.requests("/healthz"); len(h) == 0 {
		t.Error("it did not ask for health at its start")
	}

	// The namespaces: offered on completion, an absent one refused, one chosen.
	k.press("/ns ")
	k.see(`kube-node-lease`)
	k.enter("nowhere")
	k.see(`'nowhere' not found in the cluster`)
	k.enter("/ns " + ns)
	k.see(`Active namespace set to ` + ns)
	k.see(prompt)

	k.enter("why does api crash?")
	k.see(`⚙ list → Running: kubectl get pods -n ` + ns)
	k.see(`⚙ logs → Running: kubectl logs api-`)
	k.see(`DATABASE_URL is set to nothing`)
	k.see(prompt)
	if first := chats()[0]; !strings.Contains(first.body, "[context: namespace="+ns+"]") {
		t.Errorf(`it sent %s; want strings.Contains(first.body, "[context: namespace="+ns+"]")`, first.body)
	}

	// Denied: nothing runs.
	k.enter("scale web to 3")
	k.see(`kubectl scale deployment/web -n ` + ns + ` --replicas=3`)
	k.see(`(?s)Approval required.*/approve to run it.*/deny to cancel`)
	k.see(`HITL> \s*$`)
	writes(0, "before a decision")
	k.enter("/deny")
	k.see(`Denied: kubectl scale`)
	k.see(prompt)
	writes(0, "after /deny")

	// Approved: it runs once, and the answer reports the observed result.
	k.enter("scale web to 3")
	k.see(`HITL> \s*$`)
	k.enter("/approve")
	k.see(`3 of 3|3/3|3 ready`)
	k.see(prompt)
	writes(1, "after /approve")

	// When a stream breaks off, the client requests it again under the same id, so nothing runs twice: a question, an
	// approved write while it is carried out, and an answer that never begins.
	again := func(line, behind, then string) {
		t.Helper()
		before := len(chats())
		broken := front.next(behind)
		k.enter(line)
		<-broken
		k.see(`Retrying in`)
		k.see(then)
		k.see(`(You \[` + ns + `\]:|HITL>) \s*$`)
		if sent := chats()[before:]; len(sent) != 2 || sent[0] != sent[1] {
			t.Errorf("%q was sent as %+v; want len(sent) == 2 && sent[0] == sent[1]", line, sent)
		}
	}
	again("what is wrong?", `"phase":"snapshot"`, `DATABASE_URL is set to nothing`)
	k.enter("scale web to 2")
	k.see(`HITL> \s*$`)
	again("/approve", `"phase":"executing"`, `2 of 2|2/2|2 ready`)
	writes(2, "after an /approve whose stream broke")
	again("scale web to 4", "", `kubectl scale deployment/web -n `+ns+` --replicas=4`)
	writes(2, "before a decision")
	k.leave()

	// All turns were in one session; a session with a pending approval is resumed by its id.
	all := chats()
	session := all[0].session
	if slices.ContainsFunc(all, func(p posted) bool { return p.session != session || p.id == "" }) || session == "" {
		t.Errorf(`requests of several sessions, or without an id: %+v; want !slices.ContainsFunc(all, func(p posted) bool { return p.session != session || p.id == "" }) && session != ""`, all)
	}
	k = atTerminal(t, kubeQ(t, home, front.url, adminKey, "--session-id", session))
	k.see(`Resumed \d+ messages`)
	k.see(`(You( \[\S+\])?:|HITL>) \s*$`)
	k.enter("/approve")
	k.see(`4 of 4|4/4|4 ready`)
	k.see(`You( \[\S+\])?: \s*$`)
	writes(3, "after an /approve in a session taken up again")
	k.leave()
	if p := chats()[len(chats())-1]; p.session != session {
		t.Errorf("it went on with session %s, want %s", p.session, session)
	}

	// Once, without a terminal.
	for _, c := range []struct {
		key   string
		args  []string
		say   string
		wrote int
	}{
		{adminKey, []string{"--output", "plain", "-q", "what is wrong in " + ns + "?"}, `DATABASE_URL`, 3},
		{adminKey, []string{"--output", "plain", "-q", "kubectl scale deployment web -n " + ns + " --replicas=5"}, `kubectl scale deployment/web`, 3},
		{adminKey, []string{"--output", "plain", "--auto-approve", "-q", "kubectl scale deployment web -n " + ns + " --replicas=1"}, `1 of 1|1/1|1 ready`, 4},
		{readonlyKey, []string{"--output", "plain", "--auto-approve", "-q", "kubectl scale deployment web -n " + ns + " --replicas=2"}, `(?i)refuse|may not|read`, 4},
	} {
		out, err := kubeQ(t, home, front.url, c.key, c.args...).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v\n%s", c.args, err, out)
		}
		if wrong := findMismatches(string(out), []string{c.say}, nil); wrong != nil {
			t.Errorf("%v: %v\n%s; want wrong == nil", c.args, wrong, out)
		}
		writes(c.wrote, fmt.Sprint("after ", c.args))
	}
	if out, err := kubeQ(t, home, front.url, "ki-ro-nobody-knows-this-key", "--output", "plain", "-q", "what is wrong?").CombinedOutput(); !strings.Contains(strings.ToLower(string(out)), "key") {
		t.Errorf("of a key that is not known, it says %v\n%s; want strings.Contains(strings.ToLower(string(out)), \"key\")", err, out)
	}
}
