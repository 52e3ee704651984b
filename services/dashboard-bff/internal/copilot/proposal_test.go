package copilot

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
)

func TestCommandsAreFoundInCodeOnly(t *testing.T) {
	t.Parallel()
	answer := "Run kubectl get pods, or `kubectl get nodes`, or ``mlp status --json``.\n\n" +
		"    kubectl patch service/catalog -n shop -p '{\"spec\":{\"selector\":{\"version\":\"v1\"}}}'\n\n" +
		"- in a list:\n\n  ```sh\n  $ mlp approvals approve JPCP\n  # a comment\n  echo done\n  ```\n\n" +
		"~~~\nkubectl get nodes\nkubectl delete pod x | tee log\n~~~\n\n`kubectl`\n"
	want := []api.Proposal{
		{Command: "kubectl get nodes"},
		{Command: "mlp status --json"},
		{Command: `kubectl patch service/catalog -n shop -p '{"spec":{"selector":{"version":"v1"}}}'`, RequiresApproval: true},
		{Command: "mlp approvals approve JPCP", RequiresApproval: true},
	}
	if diff := cmp.Diff(want, parseProposals(answer)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAtMostTenProposals(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 15 {
		lines = append(lines, "    kubectl get pod p"+strings.Repeat("x", i))
	}
	if got := parseProposals(strings.Join(lines, "\n")); len(got) != 10 {
		t.Errorf("got %d, want 10", len(got))
	}
	if got := parseProposals("nothing to run"); got == nil || len(got) != 0 {
		t.Errorf("got %#v, want an empty list", got)
	}
}

func TestLinesThatDoMoreThanOneCommandAreNoProposals(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"kubectl get pods | sh", "kubectl get pods > /etc/passwd", "kubectl get pods < x", "kubectl get pods; rm -rf /", "kubectl get pods && reboot",
		"kubectl get pods &", "kubectl get $(whoami)", "kubectl get `whoami`", "kubectl get $NAME", "kubectl get \"$NAME\"", "kubectl get \"`x`\"",
		"kubectl get pods #", "kubectl get pod *", "kubectl get {a,b}", "kubectl get pods \\", "kubectl get 'pods", "kubectl get \"pods", "kubectl get !!",
		"kubectl get ~/x", "kubectl", "mlp", "sudo kubectl get pods", "KUBECONFIG=x kubectl get pods", "kubectl-evil get", "/tmp/kubectl get pods", "mlpx status",
		"kubectl get <name>", "kubectl get po\u202eds", "kubectl get po\u200bds", "kubectl get po\x1b[2Jds", "kubectl get po\x00ds", "kubectl get po\u00a0ds",
		"kubectl get " + strings.Repeat("x", 1000), "kubectl get pods (a)", "kubectl get \xff",
	} {
		if words, ok := splitCommand(line); ok {
			t.Errorf("%q: got %q, want no command", line, words)
		}
	}
}

// A real shell splits what the parser accepts in the same way.
func TestShellAgreesWithTheSplitting(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"kubectl get pods", "kubectl  get\tpods", `kubectl get 'a b' "c d" e'f'g""`, `kubectl patch x -p '{"a":"$HOME *|;"}'`, `kubectl annotate x "a=it's"`,
		"mlp retrain JPCP --reason 'it is late'", "kubectl get a=b@c%d^e+f,g:h", "kubectl get é",
	} {
		words, ok := splitCommand(line)
		shell := exec.CommandContext(t.Context(), "sh", "-c", `show() { for word; do printf '%s\n' "$word"; done; }; kubectl() { show kubectl "$@"; }; mlp() { show mlp "$@"; }; `+line)
		out, err := shell.Output()
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		if diff := cmp.Diff(want, words); diff != "" || !ok {
			t.Errorf("%q: accepted %t, want true; -shell +parser:\n%s", line, ok, diff)
		}
	}
}

func TestOnlyListedReadsNeedNoApproval(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"kubectl get pods", "kubectl get pods -n shop -o yaml", "kubectl -n shop describe deployment/api", "kubectl logs api-1 -c api -p --tail=100",
		"kubectl get pods -A --watch", "kubectl top pods -n shop", "kubectl rollout status deployment/api", "kubectl rollout history deployment/api",
		"kubectl auth can-i get pods", "kubectl events --for pod/x", "kubectl version", "kubectl explain pods.spec", "kubectl config current-context",
		"mlp status", "mlp models list --json", "mlp --json models list", "mlp drift status JPCP", "mlp approvals list --all", "mlp audit --last 12h",
		"mlp config show", "mlp pipeline validate",
	} {
		if words, ok := splitCommand(line); !ok || !isRead(words) {
			t.Errorf("%q: command %t, needs approval; want a read", line, ok)
		}
	}
	for _, line := range []string{
		"kubectl delete pod x", "kubectl scale deployment/cart --replicas=3", "kubectl apply -f x.yaml", "kubectl exec x -- ls", "kubectl cp a b", "kubectl edit x y",
		"kubectl rollout undo deployment/api", "kubectl rollout restart deployment/api", "kubectl drain n", "kubectl proxy", "kubectl port-forward x 1", "kubectl run x",
		"kubectl get --raw /api", "kubectl get -f http://x/y", "kubectl describe -f x.yaml", "kubectl get pods --as=root", "kubectl get pods --server=http://x",
		"kubectl get pods --kubeconfig x", "kubectl get pods --token=x", "kubectl get pods -o go-template-file=x", "kubectl get pods -o=custom-columns-file=x",
		"kubectl get secret db -o yaml", "kubectl get pods,secrets", "kubectl get pods -- x", "kubectl get pods -n", "kubectl cluster-info dump --output-directory=x",
		"kubectl config view", "kubectl config use-context x", "kubectl auth reconcile x", "kubectl get pods --unknown", "kubectl --as root get pods", "kubectl diff x",
		"mlp retrain JPCP", "mlp approvals approve JPCP", "mlp models cost --record", "mlp drift baseline JPCP", "mlp serve reload", "mlp serve traffic JPCP",
		"mlp config set x y", "mlp pipeline run", "mlp predict JPCP", "mlp stack down", "mlp bus init", "mlp status extra", "mlp unknown", "mlp --yes models list",
	} {
		if words, ok := splitCommand(line); !ok || isRead(words) {
			t.Errorf("%q: command %t, taken for a read; want one that needs approval", line, ok)
		}
	}
}

// Whatever an answer holds: proposals are whole lines of it, one program each, and nothing a shell would act upon.
func FuzzProposals(f *testing.F) {
	for _, s := range []string{"`kubectl get pods`", "    mlp status\n", "```\nkubectl get 'a|b'\n```", "``` `kubectl x` ```", "- `mlp a`\n\t- ~~~\n\t  kubectl b", "`kubectl get \"a\"`"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		proposals := parseProposals(answer)
		if len(proposals) > maxProposals {
			t.Fatalf("%d proposals, want at most %d", len(proposals), maxProposals)
		}
		for _, p := range proposals {
			if !strings.Contains(answer, p.Command) || strings.ContainsAny(p.Command, "\n\r\x00") {
				t.Fatalf("%q is no line of the answer", p.Command)
			}
			words, ok := splitCommand(p.Command)
			if !ok || words[0] != "mlp" && words[0] != "kubectl" || len(p.Command) > maxCommand {
				t.Fatalf("%q is no single command", p.Command)
			}
			bare := p.Command
			for _, quote := range []string{"'", `"`} { // quoted text is plain text to a shell
				for i := strings.Index(bare, quote); i >= 0; i = strings.Index(bare, quote) {
					end := strings.Index(bare[i+1:], quote)
					if end < 0 {
						return // quotes within the other kind: the differential test covers them
					}
					bare = bare[:i] + bare[i+end+2:]
				}
			}
			if strings.ContainsAny(bare, special) {
				t.Fatalf("%q holds %q outside of quotes, want none of %q", p.Command, bare, special)
			}
		}
	})
}
