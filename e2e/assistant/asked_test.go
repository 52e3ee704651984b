//go:build e2e

package assistant_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/e2e/kube"
	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// asked is a question or command, and patterns that the answer must and must not match.
type asked struct {
	query    string
	say, not []string
}

// askedObjects are in namespace asked, beside two deployments: web is healthy, api crashes.
const askedObjects = `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: team-runbooks}
data:
  api.md: |
    When api crashes, ask the storage team for its address.
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {tier: front}}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Pod
metadata: {name: far, labels: {tier: none}, annotations: {owner: ann}}
spec:
  nodeSelector: {disk: absent}
  containers: [{name: far, image: registry.test/far:1}]
`

// TestAsked requests numbers, relations and data that is not read, and types lines in kubectl's syntax, on a real
// control plane.
func TestAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, []kube.Node{{Name: "node-a", CPU: "8", Memory: "16Gi"}}, "ASSISTANT_ENGINE=playbooks")
	const ns = "asked"
	api := setEnvironment(kube.Deployment(ns, "api", goodImage, 1, crashing), corev1.EnvVar{Name: "DATABASE_URL"})
	api.Annotations = map[string]string{"example.com/runbook-url": "https://wiki.example/api"}
	w.deploy(t, diagnosis{id: ns, objects: askedObjects, deployment: kube.Deployment(ns, "web", "registry.test/shop/web:1.0.0", 3, program.Program{})})
	if _, err := w.Client.AppsV1().Deployments(ns).Create(t.Context(), api, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := kube.Until(joinChecks(w.readyPods(ns, 3), w.waiting(ns, 1, "CrashLoopBackOff"))); err != nil {
		t.Fatal(err)
	}
	for i, row := range askedRows() {
		t.Run(fmt.Sprintf("%02d", i), func(t *testing.T) {
			k := w.talk(t, ns)
			a := k.say(row.query)
			requireMatches(t, a, row.say...)
			for _, not := range row.not {
				if m := regexp.MustCompile(not).FindString(a.text); m != "" {
					t.Errorf("%q says %q:\n%s", row.query, m, a.text)
				}
			}
		})
	}
	if strings.Contains(dumpSchema(t, w.database), secretValue) {
		t.Error("the value of a Secret that somebody typed is in the store")
	}
	w.conflict(t, ns)
}

// conflict applies an object that another manager owns: the answer names both ways to resolve it.
func (w *world) conflict(t *testing.T, ns string) {
	t.Helper()
	force := true
	if _, err := w.Client.CoreV1().ConfigMaps(ns).Patch(t.Context(), "owned", types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owned"},"data":{"colour":"red"}}`),
		metav1.PatchOptions{FieldManager: "kubectl", Force: &force}); err != nil {
		t.Fatal(err)
	}
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: owned\ndata:\n  colour: blue\n"
	for _, command := range []string{"kubectl apply --server-side", "kubectl diff"} {
		a := w.talk(t, ns).say(manifestCommand(command, manifest))
		requireMatches(t, a, "(?i)another field manager owns", `"kubectl"`, "leave those fields out", "--force-conflicts")
		if strings.Contains(a.text, "changed meanwhile") {
			t.Errorf("%s is told as changed meanwhile:\n%s", command, a.text)
		}
	}
}

func askedRows() []asked {
	return []asked{
		{query: "how many pods are not running?", say: []string{"^2 of 5 pods in namespace `asked`: not running\\.", "`far`"}},
		{query: "how many pods are pending?", say: []string{"^1 of 5 pods in namespace `asked`: pending"}},
		{query: "how many pods have label tier=none?", say: []string{"^1 of 5 pods"}},
		{query: "which pods have annotation owner=ann?", say: []string{"^1 of 5 pods", "`far`"}},
		{query: "which pods use image shop/web?", say: []string{"^3 of 5 pods"}},
		{query: "how many pods run on node-a?", say: []string{"^4 of 4 pods of `node-a`|^There are 4 pods of `node-a`"}},
		{query: "how many pods are behind service web?", say: []string{"There are 3 pods of `web`"}},
		{query: "how many pods were restarted?", say: []string{"^1 of 5 pods", "restarted at least 1 time"}},
		{query: "which pod uses the most memory?", say: []string{"^Pod `[a-z0-9-]+` in namespace `asked` uses the most memory: \\d+"}},
		{query: "why does api crash?", say: []string{"DATABASE_URL", "team's own runbook", "https://wiki\\.example/api", "ask the storage team"}},
		{query: "is there a runbook for web?", say: []string{"No runbook was found"}},
		{query: "what time is it?", say: []string{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`}},
		{query: "how do I port-forward to the web service?", say: []string{`kubectl port-forward service/web 8080:80 -n asked`}},
		{query: "kubectl get all", say: []string{`pods:`, `services:`, `deployments:`, `replicasets:`}, not: []string{"refused", "statefulsets:"}},
		{query: `kubectl get pods -o jsonpath='{range .items[*]}{.metadata.name}={.status.phase};{end}'`, say: []string{`far=Pending;`}},
		{query: "kubectl get pod far -o jsonpath={.metadata.labels.tier}", say: []string{`    none`}},
		{query: "kubectl get pods -o custom-columns=NAME:.metadata.name,TIER:.metadata.labels.tier", say: []string{`NAME\s+TIER`, `far\s+none`, `<none>`}},
		{query: "kubectl get pods -o name | grep far", say: []string{`    pod/far`}, not: []string{"web"}},
		{query: "kubectl get pods | grep -v NAME | wc -l", say: []string{`    5$`}},
		{query: "kubectl get pods | grep web | sort -r | head -n 1", say: []string{`    web-`}},
		{query: "kubectl get pods | sh", say: []string{"refused"}},
		{query: "kubectl delete pod far | grep far", say: []string{"refused", "Only the result of a read"}},
		{query: "kubectl get deployments --sort-by=.spec.replicas", say: []string{`(?s)api.*web`}},
		{query: "kubectl get deployments --sort-by={.metadata.name}", say: []string{`(?s)api.*web`}},
		{query: "kubectl rollout status deployment/web", say: []string{"Successfully rolled out: 3 of 3"}},
		{query: "kubectl rollout status deployment/api --watch=false", say: []string{"Not done: 0 of 1 updated replicas are available"}},
		{query: "kubectl wait --for=condition=Available deployment/web --timeout=5s", say: []string{"Condition met"}},
		{query: "kubectl wait --for=condition=Ready pod/far --timeout=1s", say: []string{"Not met after 1s"}},
		{query: "kubectl wait --for=delete pod/gone --timeout=1s", say: []string{"It is gone"}},
		{query: "kubectl wait --for=jsonpath='{.status.phase}'=Pending pod/far", say: []string{"Condition met"}},
		{query: "kubectl get pods -w", say: []string{"watched"}},
		{query: "kubectl top pods --containers", say: []string{`Container .* uses the most CPU`}},
		{query: "kubectl auth whoami", say: []string{"Username", "assistant's own account"}},
		{query: "kubectl api-resources | grep -c deployments", say: []string{`    1$`}},
		{query: "kubectl cluster-info", say: []string{`Version v\d`}},
		{query: "kubectl create secret generic db --from-literal=password=" + secretValue, say: []string{"never writes Secrets", "password=VALUE"}, not: []string{secretValue, "approve"}},
		{query: "kubectl create configmap colours --from-literal=a=red --from-literal=b='light blue'", say: []string{"This line changes the cluster", "light blue"}},
		{query: "no", say: []string{"."}},
		{query: "is our rds database slow?", say: []string{"no access to `rds`"}, not: []string{"healthy"}},
	}
}
