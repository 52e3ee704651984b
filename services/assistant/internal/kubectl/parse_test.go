package kubectl_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"

// TestRefused has every form that is refused for all users.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		line   string
		reason operation.Reason
	}{
		// Shell syntax.
		{"kubectl get pod a;b", operation.ShellSyntax},
		{"kubectl get pod a && rm x", operation.ShellSyntax},
		{"kubectl get pod a & ", operation.ShellSyntax},
		{"kubectl get pod a | sh", operation.ShellSyntax},
		{"kubectl get pod $(id)", operation.ShellSyntax},
		{"kubectl get pod `id`", operation.ShellSyntax},
		{"kubectl get pod $HOME", operation.ShellSyntax},
		{`kubectl get pod "$HOME"`, operation.ShellSyntax},
		{"kubectl get pod \"`id`\"", operation.ShellSyntax},
		{"kubectl get pod a > /etc/passwd", operation.ShellSyntax},
		{"kubectl get pod < /etc/passwd", operation.ShellSyntax},
		{"kubectl get pod a\nkubectl get pod b", operation.ShellSyntax},
		{"kubectl get pod *", operation.ShellSyntax},
		{"kubectl get pod a?", operation.ShellSyntax},
		{"kubectl get pod [ab]", operation.ShellSyntax},
		{"kubectl get pod {a,b}", operation.ShellSyntax},
		{"kubectl get pod (a)", operation.ShellSyntax},
		{"kubectl get pod ~root", operation.ShellSyntax},
		{"kubectl get pod a # b", operation.ShellSyntax},
		{"kubectl get pod ! a", operation.ShellSyntax},
		{`kubectl get pod a\ b`, operation.ShellSyntax},
		{"kubectl get pod 'a", operation.ShellSyntax},
		{`kubectl get pod "a`, operation.ShellSyntax},
		{"kubectl get pod “a”", operation.ShellSyntax},
		{"kubectl get pod a\x00", operation.ShellSyntax},
		{"kubectl get pod \xff", operation.ShellSyntax},
		// Names that begin with a dash, even after the end of the flags.
		{"kubectl get pod -- -a", operation.InvalidArgument},
		{"kubectl delete pod x -- --dry-run=server", operation.InvalidArgument},
		{"kubectl delete pod x -- --dry-run", operation.InvalidArgument},
		{"kubectl get pod '-- a'", operation.UnknownFlag},
		{"kubectl -- get pod", operation.UnknownVerb},
		{"kubectl get pod -n -x", operation.InvalidArgument},
		// Another identity, another cluster.
		{"kubectl get pod x --as=admin", operation.ForbiddenFlag},
		{"kubectl get pod x --as admin", operation.ForbiddenFlag},
		{"kubectl get pod x --as-group=system:masters", operation.ForbiddenFlag},
		{"kubectl get pod x --as-uid=1", operation.ForbiddenFlag},
		{"kubectl get pod x --as-user-extra=a=b", operation.ForbiddenFlag},
		{"kubectl --as=admin get pod x", operation.ForbiddenFlag},
		{"kubectl get pod x '--as=admin'", operation.ForbiddenFlag},
		{"kubectl get pod x --user=a", operation.ForbiddenFlag},
		{"kubectl get pod x --token=a", operation.ForbiddenFlag},
		{"kubectl get pod x --server=https://x", operation.ForbiddenFlag},
		{"kubectl get pod x -s https://x", operation.ForbiddenFlag},
		{"kubectl get pod x -shttps://x", operation.ForbiddenFlag},
		{"kubectl get pod x -As https://x", operation.UnknownFlag},
		{"kubectl get pod x --kubeconfig=/x", operation.ForbiddenFlag},
		{"kubectl get pod x --context=prod", operation.ForbiddenFlag},
		{"kubectl get pod x --cluster=prod", operation.ForbiddenFlag},
		{"kubectl get pod x --username=a", operation.ForbiddenFlag},
		{"kubectl get pod x --password=a", operation.ForbiddenFlag},
		// TLS.
		{"kubectl get pod x --insecure-skip-tls-verify", operation.ForbiddenFlag},
		{"kubectl get pod x --insecure-skip-tls-verify=true", operation.ForbiddenFlag},
		{"kubectl get pod x --certificate-authority=/x", operation.ForbiddenFlag},
		{"kubectl get pod x --client-certificate=/x", operation.ForbiddenFlag},
		{"kubectl get pod x --client-key=/x", operation.ForbiddenFlag},
		{"kubectl get pod x --tls-server-name=x", operation.ForbiddenFlag},
		// Raw access and files.
		{"kubectl get --raw /api/v1/secrets", operation.ForbiddenFlag},
		{"kubectl get --raw=/api/v1/secrets", operation.ForbiddenFlag},
		{"kubectl apply -f x.yaml", operation.ForbiddenFlag},
		{"kubectl apply -fx.yaml", operation.ForbiddenFlag},
		{"kubectl apply --filename=./x", operation.ForbiddenFlag},
		{"kubectl create -f https://x/y.yaml", operation.ForbiddenFlag},
		{"kubectl replace -f /dev/stdin", operation.ForbiddenFlag},
		{"kubectl delete -f x.yaml", operation.UnknownFlag},
		{"kubectl apply -k dir", operation.UnknownFlag},
		{"kubectl apply -R -f -", operation.UnknownFlag},
		// Commands.
		{"kubectl exec api -- sh", operation.ForbiddenVerb},
		{"kubectl attach api", operation.ForbiddenVerb},
		{"kubectl cp a:/x y", operation.ForbiddenVerb},
		{"kubectl debug node/n", operation.ForbiddenVerb},
		{"kubectl run x --image=y", operation.ForbiddenVerb},
		{"kubectl port-forward api 80", operation.ForbiddenVerb},
		{"kubectl proxy", operation.ForbiddenVerb},
		{"kubectl edit deployment api", operation.ForbiddenVerb},
		{"kubectl auth reconcile -f -", operation.ForbiddenVerb},
		{"kubectl create token default", operation.ForbiddenVerb},
		{"kubectl -n shop create token default", operation.ForbiddenVerb},
		{"kubectl certificate approve x", operation.ForbiddenVerb},
		{"kubectl config set-context x", operation.ForbiddenVerb},
		{"kubectl config view", operation.ForbiddenVerb},
		{"kubectl cluster-info dump", operation.ForbiddenVerb},
		{"kubectl cluster-info pods", operation.InvalidArgument},
		{"kubectl frobnicate", operation.UnknownVerb},
		{"kubectl rollout status deployment/api", operation.UnknownVerb},
		{"kubectl set serviceaccount deployment/api boss", operation.UnknownVerb},
		{"kubectl", operation.UnknownVerb},
		{"", operation.UnknownVerb},
		{"helm list", operation.UnknownVerb},
		{"/usr/bin/kubectl get pods", operation.UnknownVerb},
		// Ambiguous input.
		{"kubectl get pods -n a -n b", operation.InvalidArgument},
		{"kubectl -n a get pods -n b", operation.InvalidArgument},
		{"kubectl -n a cordon n1", operation.InvalidArgument},
		{"kubectl get pods -n a -A", operation.InvalidArgument},
		{"kubectl get pods -l ''", operation.InvalidArgument},
		{"kubectl get pods -l ,", operation.InvalidArgument},
		{"kubectl delete pods", operation.MissingArgument},
		{"kubectl delete pods x --all", operation.MissingArgument},
		{"kubectl delete pods x -l a=b", operation.MissingArgument},
		{"kubectl delete pods --all -l a=b", operation.InvalidArgument},
		{"kubectl delete pod/a svc", operation.InvalidArgument},
		{"kubectl delete pod x --dry-run", operation.MissingArgument},
		{"kubectl delete pod x --dry-run=maybe", operation.InvalidArgument},
		{"kubectl get pod A_b", operation.InvalidArgument},
		{"kubectl get pod ../x", operation.InvalidArgument},
		{"kubectl get pods -w=false", operation.InvalidArgument},
		{"kubectl get pods --frob", operation.UnknownFlag},
		{"kubectl get pods -o jsonpath=x", operation.InvalidArgument},
		{"kubectl get pods --help", operation.UnknownFlag},
		{"kubectl logs -f api", operation.UnknownFlag},
		{"kubectl logs api --tail=501", operation.InvalidArgument},
		{"kubectl logs api --since=25h", operation.InvalidArgument},
		{"kubectl scale deploy/api --replicas=-1", operation.InvalidArgument},
		{"kubectl scale deploy/api", operation.MissingArgument},
		{"kubectl scale deploy --replicas=1", operation.MissingArgument},
		{"kubectl scale deploy api --all --replicas=1", operation.MissingArgument},
		{"kubectl scale deploy -l app=api --all --replicas=1", operation.InvalidArgument},
		{"kubectl scale deploy --all -A --replicas=1", operation.UnknownFlag},
		{"kubectl set env deploy/api A=1 A=2", operation.InvalidArgument},
		{"kubectl set env deploy/api A=1 A-", operation.InvalidArgument},
		{"kubectl autoscale deploy/api --max=3 --cpu=80", operation.InvalidArgument},
		{"kubectl autoscale deploy/api --max=3 --cpu=80% --cpu-percent=70", operation.InvalidArgument},
		{"kubectl patch deploy/api --type=json -p '[]'", operation.InvalidManifest},
		{"kubectl patch deploy/api --type=json -p '{\"a\":1}'", operation.InvalidManifest},
		{"kubectl patch deploy/api --type=json -p '[{\"op\":'", operation.InvalidManifest},
		{"kubectl patch deploy/api -p '[{\"op\":\"remove\",\"path\":\"/spec/x\"}]'", operation.InvalidManifest},
		{"kubectl patch deploy/api --type=jsonp -p '[]'", operation.InvalidArgument},
		{"kubectl patch deploy/api -p '{\"a\":1,\"a\":2}'", operation.InvalidManifest},
		{"kubectl taint pod x a=b:NoSchedule", operation.InvalidArgument},
		{"kubectl taint node x a=b:Never", operation.InvalidArgument},
		{"kubectl drain pod/x", operation.InvalidArgument},
		{"kubectl auth can-i get", operation.MissingArgument},
		{"kubectl auth can-i get pods --list", operation.MissingArgument},
		{"kubectl apply --server-side=false -f - <<'EOF'\n" + configMap + "EOF", operation.InvalidArgument},
		{"kubectl apply --prune -f - <<'EOF'\n" + configMap + "EOF", operation.InvalidArgument},
		// Manifests.
		{"kubectl apply -f -", operation.MissingArgument},
		{"kubectl apply <<'EOF'\n" + configMap + "EOF", operation.MissingArgument},
		{"kubectl get pods <<'EOF'\n" + configMap + "EOF", operation.InvalidArgument},
		{"kubectl apply -f - <<'EOF'\n" + configMap, operation.ShellSyntax},
		{"kubectl apply -f - <<'EOF'\n" + configMap + "EOF\nkubectl delete ns shop", operation.ShellSyntax},
		{"kubectl apply -f - <<'EOF' | sh\n" + configMap + "EOF", operation.ShellSyntax},
		{"kubectl apply -f - <<-EOF\n" + configMap + "EOF", operation.ShellSyntax},
		{"kubectl apply -f - <<EOF\n" + configMap + "data: {a: $(id)}\nEOF", operation.ShellSyntax},
		{"kubectl apply -f - <<'EOF'\nkind: X\nEOF", operation.InvalidManifest},
		{"kubectl create job x --image=busybox", operation.UnknownFlag},
		{"kubectl create job x", operation.ForbiddenVerb},
		{"kubectl get pods" + strings.Repeat(" a", 1000), operation.TooLarge},
		{"kubectl get pods" + strings.Repeat(" a", 499), operation.TooLarge},
		{"kubectl get " + strings.Repeat("a", kubectl.MaxLine), operation.TooLarge},
	} {
		o, err := kubectl.Parse(tc.line)
		var fault *operation.Fault
		if !errors.As(err, &fault) || !reflect.DeepEqual(o, operation.Operation{}) {
			t.Errorf("%.80q is read as %+v (%v); want errors.As(err, &fault) && reflect.DeepEqual(o, operation.Operation{})", tc.line, o, err)
			continue
		}
		if fault.Reason != tc.reason || fault.Sentence == "" || len(fault.Sentence) > 400 {
			t.Errorf("%.80q: %s: %s; want %s", tc.line, fault.Reason, fault.Sentence, tc.reason)
		}
	}
}

// TestRead has the ways people write, and the line that is shown for each.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ line, shown string }{
		{"kubectl get pods -n shop", ""},
		{"  kubectl  get\tpods -n=shop ", "kubectl get pods -n shop"},
		{"kubectl -n shop get pods", "kubectl get pods -n shop"},
		{"kubectl get pods --namespace shop", "kubectl get pods -n shop"},
		{"kubectl get pods -A", ""},
		{"kubectl get pods --all-namespaces=true", "kubectl get pods -A"},
		{"kubectl get pods,svc,pods -n shop", "kubectl get pods,svc -n shop"},
		{"kubectl get pod api", "kubectl get pod/api"},
		{"kubectl get pod/a pod/b", ""},
		{"kubectl get pod/a svc/b", ""},
		{"kubectl get pods,svc api -oyaml", "kubectl get pods,svc api -o yaml"},
		{"kubectl get deployments.apps \\\n  api", "kubectl get deployments.apps/api"},
		{"kubectl get pods --field-selector=status.phase!=Running", "kubectl get pods '--field-selector=status.phase!=Running'"},
		{"kubectl get pods -l 'a in (b,c)'", ""},
		{"kubectl delete -n shop ns,pv --all", "kubectl delete ns,pv -n shop --all"},
		{"kubectl label -nkube-system pod x a=b", "kubectl label pod/x a=b -n kube-system"},
		{"kubectl scale deployment/api -n shop --replicas=3", ""},
		{"kubectl scale deploy --replicas 0 --all -n shop", "kubectl scale deploy -n shop --all --replicas=0"},
		{"kubectl scale -l app=api --replicas=2 deploy,sts", "kubectl scale deploy,sts -l app=api --replicas=2"},
		{"kubectl scale deploy a b --replicas=2", "kubectl scale deploy/a deploy/b --replicas=2"},
		{"kubectl scale --replicas 0 deploy api", "kubectl scale deploy/api --replicas=0"},
		{"kubectl rollout undo deploy/api --to-revision=2", ""},
		{"kubectl rollout undo deploy/api --to-revision=0", "kubectl rollout undo deploy/api"},
		{`kubectl patch deploy api --type json -p '[{"path": "/spec/replicas", "value": 2, "op": "replace"}]'`, `kubectl patch deploy/api --type=json -p '[{"op":"replace","path":"/spec/replicas","value":2}]'`},
		{"kubectl patch cronjob nightly -n shop --type=merge -p '{\"spec\": {\"suspend\": false}}'", `kubectl patch cronjob/nightly -n shop --type=merge -p '{"spec":{"suspend":false}}'`},
		{`kubectl patch svc/api -p "{\"spec\":{\"selector\":{\"app\":\"api\"}}}"`, `kubectl patch svc/api -p '{"spec":{"selector":{"app":"api"}}}'`},
		{"kubectl create job now --from=cronjob/nightly", ""},
		{"kubectl set image deploy/api app=nginx:1.27", ""},
		{"kubectl set image deploy/api '*=nginx:1.27'", ""},
		{"kubectl set resources deploy/api -c app --limits=memory=256Mi,cpu=1", "kubectl set resources deploy/api -c app --limits=cpu=1,memory=256Mi"},
		{"kubectl set env deploy/api B=2 A='it'\"'\"'s' C-", `kubectl set env deploy/api 'A=it'"'"'s' B=2 C-`},
		{"kubectl annotate pod/x a=", ""},
		{"kubectl autoscale deploy/api --min=1 --max=3 --cpu-percent=80", "kubectl autoscale deploy/api --min=1 --max=3 --cpu=80%"},
		{"kubectl delete pod x --dry-run=client", "kubectl delete pod/x --dry-run=server"},
		{"kubectl delete pod x --dry-run=none --cascade=background --force=false", "kubectl delete pod/x"},
		{"kubectl delete pod -- x", "kubectl delete pod/x"},
		{"kubectl cordon node/n1 n2", "kubectl cordon n1 n2"},
		{"kubectl drain n1 --ignore-daemonsets --delete-emptydir-data --grace-period=0", "kubectl drain n1 --ignore-daemonsets --delete-emptydir-data --grace-period=0"},
		{"kubectl taint nodes n1 a=b:NoExecute c- d:NoSchedule-", "kubectl taint node n1 a=b:NoExecute c- d:NoSchedule-"},
		{"kubectl logs api-0 -c app -p --tail=50 --since=1h", "kubectl logs api-0 -c app -p --since=1h --tail=50"},
		{"kubectl logs deployment/api", ""},
		{"kubectl events --for pod/api -n shop", "kubectl events -n shop --for=pod/api"},
		{"kubectl top nodes", ""},
		{"kubectl auth can-i delete pods/api -n shop", ""},
		{"kubectl auth can-i --list", ""},
		{"kubectl explain deployment.spec.template", ""},
		{"kubectl apply -f - <<'EOF'\n" + configMap + "EOF\n", "kubectl apply --server-side -f - <<'EOF'\n" + configMap + "EOF"},
		{"kubectl create -f- -n shop <<X\r\n" + configMap + "X", "kubectl create -n shop -f - <<'EOF'\n" + configMap + "EOF"},
		{"query_prometheus 'sum(up)' --range-minutes 20", "query_prometheus --range-minutes=20 -- 'sum(up)'"},
		{`query_loki --limit=5 -- '{a="b"}'`, ""},
	} {
		o, err := kubectl.Parse(tc.line)
		if err != nil {
			t.Errorf("%s: %v", tc.line, err)
			continue
		}
		want := tc.shown
		if want == "" {
			want = tc.line
		}
		if got := kubectl.Render(o); got != want {
			t.Errorf("%s is shown as\n%s, want\n%s", tc.line, got, want)
		}
	}
}

// TestDryRunIsNoWrite: the flag counts only where it is one.
func TestDryRunIsNoWrite(t *testing.T) {
	t.Parallel()
	o, err := kubectl.Parse("kubectl delete pod x --dry-run=server")
	if err != nil || o.Risk() != operation.Low {
		t.Errorf("%+v, %v; want o.Risk() == operation.Low", o, err)
	}
	o, err = kubectl.Parse("kubectl annotate pod x note='--dry-run=server'")
	if err != nil || o.Risk() != operation.Medium {
		t.Errorf("%+v, %v; want o.Risk() == operation.Medium", o, err)
	}
}

func TestIsCommand(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]bool{"kubectl get pods": true, " kubectl\nget": true, "kubectl": true, "what does kubectl do": false, "kubectl-x": false, "": false} {
		if kubectl.IsCommand(message) != want {
			t.Errorf("%q: want %t", message, want)
		}
	}
}
