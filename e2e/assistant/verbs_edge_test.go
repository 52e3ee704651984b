//go:build e2e

package assistant_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/e2e/harness"
)

// conformance: a real API server passes the sample cluster's suite, too.
func (w *world) conformance(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "test", "-tags", "realcluster", "-count", "1", "-v", "-run", "^TestRealCluster$", ".")
	cmd.Dir = filepath.Join(harness.Root(t), "libs", "samplecluster")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestRealCluster")) {
		t.Errorf("%v\n%s; want bytes.Contains(out, []byte(\"--- PASS: TestRealCluster\"))", err, out)
	}
}

const bounded = web + `
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: few}
spec: {hard: {count/secrets: "0", count/configmaps: "2"}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: none}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}
`

// rejected: the API server's rejection is the answer; no approval is requested.
func (w *world) rejected(t *testing.T) {
	c := w.corner(t, "vreject", configMap("settings", "part: shop"), 0)
	c.wait(t, map[string]string{"configmaps/kube-root-ca.crt": "there"}) // the controller's own counts, too
	c.apply(t, bounded)
	c.wait(t, webReady)
	// The quota counts, which takes its controller a while when kinds come and go, and another manager owns a field.
	if err := retryUntil(60*time.Second, func() error {
		raw, err := w.Client.Discovery().RESTClient().Get().AbsPath("/api/v1/namespaces/vreject/resourcequotas/few").Do(t.Context()).Raw()
		if err == nil && !bytes.Contains(raw, []byte(`"used":{"count/configmaps":"2"`)) {
			err = fmt.Errorf("the quota has not counted: %s", raw)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	c.edit(t, "configmaps/settings", `{"data":{"level":"warn"}}`)
	pod, err := c.read(t.Context(), "pods {.items[0].metadata.name}")
	if err != nil {
		t.Fatal(err)
	}
	w.webhook(t, c.ns, "deny", func(*admissionv1.AdmissionRequest) string { return "labels are not for changing here" })
	k, mark := w.talk(t, c.ns), w.door.mark()
	for ask, answer := range map[string]string{
		manifestCommand("kubectl create", limits):                                                                                 `exceeded quota: few.*count/configmaps`,
		`kubectl patch deployment web -p '{"spec":{"replicas":-1}}'`:                                                              `spec.replicas.*greater than or equal to 0`,
		`kubectl patch deployment web -p '{"spec":{"replicaz":2}}'`:                                                               `(?i)unknown field.*spec.replicaz`,
		`kubectl patch deployment web --type=merge -p '{"spec":{"selector":{"matchLabels":{"app":"other"}}}}'`:                    `(?i)immutable|does not match`,
		manifestCommand("kubectl apply --server-side", debug):                                                                     `(?i)force`,
		manifestCommand("kubectl create", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 70000}]}\n"): `(?i)spec.ports.*1.*65535`,
		manifestCommand("kubectl create", strings.ReplaceAll(settings, "level: info", "level: 5")):                                `(?i)level|string`,
		manifestCommand("kubectl create", strings.TrimPrefix(web, "\n---\n")):                                                     `(?i)already exists`,
		"kubectl evict pod/" + pod:                      `(?i)none.*|disruption budget`,
		"kubectl label configmap settings a=b":          `labels are not for changing here`,
		"kubectl label configmap settings part=other":   `(?i)overwrite`,
		"kubectl scale deployment nobody --replicas=2":  `(?i)not found|no deployment|nobody`,
		"kubectl rollout undo deployment web":           `(?i)no earlier revision`,
		"kubectl scale deployment web --replicas=1":     `(?i)nothing would change`,
		"kubectl set image deployment web other=x:1":    `(?i)no container`,
		"kubectl delete configmap --all -n kube-system": `(?i)protected`,
		"kubectl delete secret any":                     `(?i)secret`,
		manifestCommand("kubectl create", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: hunter2-s3cr3t}\n"): `(?i)secret`,
		manifestCommand("kubectl apply", "apiVersion: unknown.test/v9\nkind: Gadget\nmetadata: {name: g}\n"):                      `(?i)gadget`,
		`kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":""}]}}}}'`:             `(?i)image.*required`,
	} {
		a := k.say(ask)
		if len(a.approvals) > 0 || a.waiting != nil {
			t.Errorf("%s: somebody is asked\n%s; want len(a.approvals) <= 0 && a.waiting == nil", ask, a.text)
			k.say("no")
			continue
		}
		if wrong := findMismatches(a.text, []string{answer}, nil); wrong != nil {
			t.Errorf("%s: %v\n%s; want wrong == nil", ask, wrong, a.text)
		}
	}
	if calls := c.written(w.door, mark); len(calls) > 0 {
		t.Errorf("written: %q; want len(calls) <= 0", calls)
	}
	if strings.Contains(k.wire.String(), "hunter2-s3cr3t") {
		t.Error("a secret's value was shown")
	}
}

// stale: an object edited between the prompt and the approval is shown again, and not written.
func (w *world) stale(t *testing.T) {
	c := w.corner(t, "vstale", web+plain, 0)
	c.wait(t, webReady)
	applyEarlier(settings)(t, c)
	for i, ask := range []struct{ query, object, edit, shows string }{
		{`kubectl patch deployment web -p '{"spec":{"replicas":2}}'`, "deployments/web", `{"spec":{"minReadySeconds":1}}`, `(?m)^\+\s+replicas: 2$`},
		{"kubectl delete configmap plain", "configmaps/plain", `{"data":{"mode":"edited"}}`, `(?m)^-\s+mode: edited$`},
		{manifestCommand("kubectl apply --server-side", debug), "configmaps/settings", `{"data":{"more":"edited"}}`, `(?m)^ \s+more: edited$`},
	} {
		k, mark := w.talk(t, c.ns), w.door.mark()
		k.session += fmt.Sprint(i)
		p := requireOneApproval(t, k.say(ask.query))
		c.edit(t, ask.object, ask.edit)
		a := k.say("yes")
		fresh := requireOneApproval(t, a)
		if fresh.ID == p.ID || fresh.Digest == p.Digest || fresh.Summary != p.Summary {
			t.Errorf("%s: of a stale action came %+v; want fresh.ID != p.ID && fresh.Digest != p.Digest && fresh.Summary == p.Summary", ask.query, fresh)
		}
		requireMatches(t, a, ask.shows)
		if doc := k.action(p.ID); doc["state"] != "stale" || doc["replaced_by"] != fresh.ID {
			t.Errorf(`%s: the edited object's action is %v, replaced by %v; want doc["state"] == "stale" && doc["replaced_by"] == fresh.ID`, ask.query, doc["state"], doc["replaced_by"])
		}
		if calls := c.written(w.door, mark); len(calls) > 0 {
			t.Errorf("%s: written: %q; want len(calls) <= 0", ask.query, calls)
		}
		k.say("no")
	}
}

// lostWrites are one write of each class, on separate objects.
var lostWrites = []struct{ query, call string }{
	{"kubectl scale deployment web --replicas=2", "PATCH deployments/web"},
	{"kubectl create job report-now --from=cronjob/report", "POST jobs"},
	{"kubectl delete configmap plain", "DELETE configmaps/plain"},
	{"kubectl evict pod alone", "POST pods/alone/eviction"},
}

// lost: the API server has carried a write out, and its answer gets lost; then the client is gone, too. Nothing is
// written a second time, and the outcome is reported.
func (w *world) lost(t *testing.T) {
	own, database := openDoor(t, w.Config), newDatabase(t) // no other replica may rescue its actions
	mine := launchAssistant(t, database, own.kubeconfig)
	propose := func(ns string) (c *corner, talks []*talk, asked []approval) {
		c = w.corner(t, ns, web+report+plain+alone, 0)
		c.wait(t, webReady)
		c.wait(t, map[string]string{"pods/alone {.status.phase}": "Running"})
		for i, x := range lostWrites {
			k := w.talk(t, ns)
			k.url, k.session = mine.url, k.session+fmt.Sprint(i)
			talks, asked = append(talks, k), append(asked, requireOneApproval(t, k.say(x.query)))
		}
		return c, talks, asked
	}
	decide := func(talks []*talk) (wait func()) {
		var wg sync.WaitGroup
		for _, k := range talks {
			wg.Go(func() { _, _ = k.try("yes") }) // with a killed process it is cut off
		}
		return wg.Wait
	}
	settled := func(c *corner, talks []*talk, asked []approval, states ...string) {
		t.Helper()
		for i, k := range talks {
			k.url = mine.url
			var doc map[string]any
			if err := retryUntil(90*time.Second, func() error {
				if doc = k.action(asked[i].ID); doc["finished_at"] == nil {
					return fmt.Errorf("%s: the action is %v", asked[i].Summary, doc["state"])
				}
				return nil
			}); err != nil {
				t.Error(err)
				continue
			}
			if !strings.Contains(strings.Join(states, " "), fmt.Sprint(doc["state"])) || doc["digest"] != asked[i].Digest {
				t.Errorf(`%s: the action is %v, %v; want strings.Contains(strings.Join(states, " "), fmt.Sprint(doc["state"])) && doc["digest"] == asked[i].Digest`, asked[i].Summary, doc["state"], doc["result"])
			}
			t.Logf("%s: %v, %v", asked[i].Summary, doc["state"], doc["result"])
		}
		calls := make([]string, len(lostWrites))
		for i, x := range lostWrites {
			calls[i] = x.call
		}
		c.exactly(t, own, 0, calls)
	}

	c, talks, asked := propose("vlost")
	own.loseAnswers()
	decide(talks)()
	own.atWrite(nil, nil)
	settled(c, talks, asked, "succeeded", "unknown")

	c, talks, asked = propose("vkill")
	reached := own.holdAnswers(len(talks))
	gone := decide(talks)
	<-reached
	mine.kill()
	gone()
	own.atWrite(nil, nil)
	mine = launchAssistant(t, database, own.kubeconfig)
	settled(c, talks, asked, "succeeded", "unknown")
	for i, k := range talks {
		k.say("yes") // with nothing to approve, it does nothing
		if doc := k.action(asked[i].ID); doc["finished_at"] == nil {
			t.Errorf(`%s is at it again; want doc["finished_at"] != nil`, asked[i].Summary)
		}
	}
	settled(c, talks, asked, "succeeded", "unknown")
	c.wait(t, map[string]string{"deployments/web {.metadata.generation}": "2", "jobs/report-now": "there", "configmaps/plain": "absent", "pods/alone": "absent"})
}

// webhook installs an admission webhook for changes of ConfigMaps in a namespace. refuse returns the reason, or "". One
// that declares side effects is written to the store as an older API server left it: none accepts it any more.
func (w *world) webhook(t *testing.T, ns, effects string, refuse func(*admissionv1.AdmissionRequest) string) *atomic.Int32 {
	t.Helper()
	var calls atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(rw, "no review", http.StatusBadRequest)
			return
		}
		calls.Add(1)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if why := refuse(review.Request); why != "" {
			review.Response.Allowed = false
			review.Response.Result = &metav1.Status{Message: why, Code: http.StatusForbidden}
		}
		review.Request = nil
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(review) // the API server may be gone
	}))
	t.Cleanup(server.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	doc := fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":%[1]q,"uid":"00000000-0000-4000-8000-000000000001","creationTimestamp":"2020-01-01T00:00:00Z"},
"webhooks":[{"name":"%[1]s.webhook.test","clientConfig":{"url":%[2]q,"caBundle":%[3]q},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["UPDATE"],"resources":["configmaps"],"scope":"*"}],
"failurePolicy":"Fail","matchPolicy":"Equivalent","sideEffects":%[4]q,"timeoutSeconds":5,"admissionReviewVersions":["v1"],"objectSelector":{},"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":%[1]q}}}]}`,
		ns, server.URL, ca, map[string]string{"deny": "None", "some": "Some"}[effects])
	if effects == "deny" {
		if err := w.Client.Discovery().RESTClient().Post().AbsPath("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations").Body([]byte(doc)).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		return &calls
	}
	put, err := json.Marshal(map[string][]byte{"key": []byte("/registry/validatingwebhookconfigurations/" + ns), "value": []byte(doc)})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(w.Etcd+"/v3/kv/put", "application/json", bytes.NewReader(put))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("put into the store: %d %s %v; want resp.StatusCode == http.StatusOK", resp.StatusCode, answer, err)
	}
	return &calls
}

// undryable: where a webhook does not support dry runs, the prompt reports it and always requires approval; the
// approved change is written once.
func (w *world) undryable(t *testing.T) {
	c := w.corner(t, "vundry", plain, 0)
	calls := w.webhook(t, c.ns, "some", func(*admissionv1.AdmissionRequest) string { return "" })
	// The API server knows the webhook when it refuses a dry run.
	if err := retryUntil(30*time.Second, func() error {
		err := w.Client.Discovery().RESTClient().Patch(types.MergePatchType).AbsPath(c.path("configmaps/plain")).Param("dryRun", "All").Body([]byte(`{"data":{"mode":"two"}}`)).Do(t.Context()).Error()
		if err == nil || !strings.Contains(err.Error(), "does not support dry run") {
			return fmt.Errorf("a rehearsal answers %v", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	k, mark := w.talk(t, c.ns), w.door.mark()
	a := k.say("kubectl label configmap plain a=b", autoApprove)
	p := requireOneApproval(t, a)
	if p.Risk != "high" || !p.Always {
		t.Errorf(`asked for %+v; want p.Risk == "high" && p.Always`, p)
	}
	requireMatches(t, a, `the server cannot rehearse it`, `(?m)^\+\s+a: b$`)
	if n := calls.Load(); n > 0 || len(c.written(w.door, mark)) > 0 {
		t.Errorf("the webhook was called %d times before yes; want n <= 0 && len(c.written(w.door, mark)) <= 0", n)
	}
	requireMatches(t, k.say("yes"), `has the label a`)
	k.sameDigest(p, "succeeded")
	c.exactly(t, w.door, mark, []string{"PATCH configmaps/plain"})
	c.wait(t, map[string]string{"configmaps/plain {.metadata.labels.a}": "b"})
	if n := calls.Load(); n != 1 {
		t.Errorf("the webhook was called %d times; want 1", n)
	}
}
