package assistant_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"

	"github.com/mlp-platform/platform/libs/samplecluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

const accountFile = "../../deploy/kubernetes/assistant-account.yaml"

// right is a permission that a rule grants: one verb on one resource.
type right struct{ group, resource, verb string }

func (r right) String() string { return fmt.Sprintf("%s %s.%s", r.verb, r.resource, r.group) }

// clusterRoles are those of a file of manifests, by name.
func clusterRoles(t *testing.T, path string) map[string]map[right]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[right]bool{}
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var role rbacv1.ClusterRole
		err := documents.Decode(&role)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if role.Kind != "ClusterRole" {
			continue
		}
		rights := map[right]bool{}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						rights[right{group, resource, verb}] = true
					}
				}
			}
		}
		found[role.Name] = rights
	}
}

// rightOf returns the right that a request needs; none for an address that is not a resource, which every account may
// read.
func rightOf(r *http.Request) (right, bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var group string
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return right{}, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodGet: "get"}[r.Method]
	if len(parts) == 1 && verb == "get" {
		verb = "list"
	}
	if len(parts) == 1 && verb == "delete" {
		verb = "deletecollection"
	}
	if len(parts) > 2 {
		return right{group, parts[0] + "/" + parts[2], verb}, true
	}
	return right{group, parts[0], verb}, true
}

// gate stands before the sample cluster and lets pass what the rules allow.
type gate struct {
	next  http.RoundTripper
	rules map[right]bool

	mu     sync.Mutex // guards used and denied
	used   map[right]bool
	denied map[right]bool
}

// ServeHTTP is part of http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	needs, is := rightOf(r)
	// Everybody may ask about their own rights.
	if is && needs.group != "authorization.k8s.io" {
		g.mu.Lock()
		g.used[needs] = true
		allowed := g.rules[needs]
		if !allowed {
			g.denied[needs] = true
		}
		g.mu.Unlock()
		if !allowed {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"the account may not %s"}`, needs)
			return
		}
	}
	// The body is read before it is passed on: the server closes it with the first byte of an answer.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went
	}
	out := r.Clone(r.Context())
	out.Body, out.RequestURI, out.URL.Scheme, out.URL.Host = io.NopCloser(bytes.NewReader(body)), "", "http", strings.TrimPrefix(samplecluster.Host, "http://")
	resp, err := g.next.RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body) // a client that went needs no answer
}

// TestAccount holds the roles that the manual gives the assistant's account against what it does: with them everything
// it is asked works, and every right to read is used.
func TestAccount(t *testing.T) {
	t.Parallel()
	roles := clusterRoles(t, accountFile)
	reader, writer := roles["cluster-assistant-reader"], roles["cluster-assistant-writer"]
	if len(reader) < 40 || len(writer) < 20 {
		t.Fatalf("%d rights to read, %d to write; want len(reader) >= 40 && len(writer) >= 20", len(reader), len(writer))
	}
	for r := range reader {
		if r.verb != "get" && r.verb != "list" {
			t.Errorf(`the reader may %s; want (r.verb == "get" || r.verb == "list")`, r)
		}
	}
	sample := samplecluster.New(time.Now)
	t.Cleanup(sample.Close)
	g := &gate{next: sample.Config().Transport, rules: map[right]bool{}, used: map[right]bool{}, denied: map[right]bool{}}
	for _, role := range []map[right]bool{reader, writer} {
		for r := range role {
			g.rules[r] = true
		}
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, []byte("{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], "+
		"users: [{name: a, user: {}}], clusters: [{name: a, cluster: {server: "+server.URL+"}}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := startBench(t, "KUBECONFIG="+config, "ASSISTANT_VERIFY_TIMEOUT=1s")

	for _, question := range []string{"what is wrong?", "what is wrong in shop?", "who can delete pods in shop?", "secrets in payments", "usage", "recent changes",
		"what happens if I drain worker-1?", "kubectl rollout history deployment/web -n shop", "kubectl logs deployment/api -n shop", "kubectl describe statefulset/warehouse -n reports",
		"kubectl rollout history statefulset/warehouse -n reports", "kubectl top nodes", "kubectl auth can-i delete pods -n shop"} {
		b.say(admin, "reads", question)
	}
	for r := range reader { // a name that a person gives is compared with the rules as written
		if kind := r.resource + dotPrefix(r.group); r.verb == "get" && r.resource != "pods/log" {
			b.say(admin, "reads-by-line", "kubectl get "+kind+" -A")
			b.say(admin, "reads-by-line", "kubectl get "+kind+" "+nameOf(r)+" -n shop")
		}
	}
	done := map[operation.Verb]bool{}
	client, err := kubernetes.NewForConfig(sample.Config())
	if err != nil {
		t.Fatal(err)
	}
	pods, err := client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{LabelSelector: "app=cart"})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("%v, %v; want len(pods.Items) != 0", pods, err)
	}
	for i, w := range writes {
		session, line := fmt.Sprintf("%s-%d", w.verb, i), strings.ReplaceAll(w.line, "POD", pods.Items[0].Name)
		p := b.propose(admin, session, line)
		b.say(admin, session, "approve "+p.ActionID)
		if doc := b.action(admin, session, p.ActionID); doc["state"] != "succeeded" {
			t.Errorf(`%s: %v %v; want doc["state"] == "succeeded"`, line, doc["state"], doc["result"])
		}
		done[w.verb] = true
	}
	for _, verb := range operation.Verbs() {
		if verb.Writes() && !done[verb] {
			t.Errorf("%s was not tried; want (!verb.Writes() || done[verb])", verb)
		}
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	for r := range g.denied {
		t.Errorf("the rules lack: %s", r)
	}
	for r := range reader {
		if !g.used[r] && !unserved[r.resource] {
			t.Errorf("nothing needs: %s", r)
		}
	}
}

// unserved lists kinds that the sample cluster does not let anyone read by name, or, like resource claims, the Gateway
// API and what other controllers add, does not serve.
var unserved = map[string]bool{
	"controllerrevisions": true, "mutatingwebhookconfigurations": true, "resourceclaims": true, "validatingwebhookconfigurations": true,
	"gatewayclasses": true, "gateways": true, "grpcroutes": true, "httproutes": true, "referencegrants": true, "tlsroutes": true,
	"applications": true, "certificaterequests": true, "certificates": true, "challenges": true, "clusterissuers": true, "issuers": true, "orders": true,
}

func dotPrefix(group string) string {
	if group == "" {
		return ""
	}
	return "." + group
}

// nameOf is a name for an object that is read; whether there is one does not matter to the rules.
func nameOf(r right) string {
	if r.resource == "namespaces" {
		return "shop"
	}
	return "web"
}

// writes holds lines for every verb that writes, in an order in which the sample cluster can carry them out. POD is
// replaced by a pod of the deployment cart.
var writes = []struct {
	verb operation.Verb
	line string
}{
	{operation.Scale, "kubectl scale deployment/cart -n shop --replicas=3"},
	{operation.Label, "kubectl label pod/POD -n shop team=web"},
	{operation.Evict, "kubectl evict pod/POD -n shop"},
	{operation.Restart, "kubectl rollout restart deployment/redis -n shop"},
	{operation.Undo, "kubectl rollout undo deployment/web -n shop"},
	{operation.Pause, "kubectl rollout pause deployment/api -n shop"},
	{operation.Resume, "resume cronjob nightly-report in reports"},
	{operation.Suspend, "suspend cronjob hourly-summary in reports"},
	{operation.RunJob, "kubectl create job by-hand -n reports --from=cronjob/hourly-summary"},
	{operation.SetImage, "kubectl set image deployment/catalog catalog=registry.example/shop/catalog:1.4.3 -n shop"},
	{operation.SetResources, "kubectl set resources deployment/ledger -n payments --limits=memory=256Mi"},
	{operation.SetEnv, "kubectl set env deployment/cart -n shop MODE=fast"},
	{operation.Expose, "kubectl expose deployment/catalog -n shop --name=catalog-two --port=80"},
	// Not of cart, whose disruption budget would then keep the last pod on the drained node.
	{operation.Autoscale, "kubectl autoscale deployment/redis -n shop --min=1 --max=4 --cpu=80%"},
	{operation.Annotate, "kubectl annotate service/catalog -n shop note=seen"},
	{operation.Patch, `kubectl patch service/catalog -n shop -p '{"spec":{"selector":{"version":"v1"}}}'`},
	{operation.Create, "kubectl create -f - <<'EOF'\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: made, namespace: shop}\ndata: {a: b}\nEOF"},
	{operation.Apply, "kubectl apply -f - <<'EOF'\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied, namespace: shop}\ndata: {a: b}\nEOF"},
	{operation.Replace, "kubectl replace -f - <<'EOF'\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: made, namespace: shop}\ndata: {a: c}\nEOF"},
	{operation.Delete, "kubectl delete deployment/db -n shop"},
	{operation.Cordon, "kubectl cordon worker-2"},
	{operation.Uncordon, "kubectl uncordon worker-2"},
	{operation.Taint, "kubectl taint nodes worker-2 spare=yes:NoSchedule"},
	{operation.Drain, "kubectl drain worker-3 --ignore-daemonsets --delete-emptydir-data --force"},
}
