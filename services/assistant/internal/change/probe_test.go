package change_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// writes has one of each class, with a concurrent change by another client.
var writes = []struct {
	name, command  string
	op             operation.Operation // where there is no command
	short, ns, obj string
	// theirs is a patch by another client; empty: the client deletes the object, or creates it.
	theirs string
	// unproven means that nothing in the cluster distinguishes our write from another client's.
	unproven bool
}{
	{name: "patch of the spec", command: "kubectl scale deployment/cart --replicas=3", short: "deploy", ns: "shop", obj: "cart", theirs: `{"spec":{"replicas":3}}`},
	{name: "restart", command: "kubectl rollout restart deployment/checkout -n payments", short: "deploy", ns: "payments", obj: "checkout", theirs: `{"spec":{"minReadySeconds":1}}`},
	{name: "undo", command: "kubectl rollout undo deployment/web", short: "deploy", ns: "shop", obj: "web", theirs: `{"spec":{"minReadySeconds":1}}`},
	{name: "image", command: "kubectl set image deployment/cart cart=registry.example/shop/cart:3.0.0", short: "deploy", ns: "shop", obj: "cart", theirs: `{"spec":{"minReadySeconds":1}}`},
	{name: "resources", command: "kubectl set resources deployment/ledger -n payments --limits=memory=0.25Gi", short: "deploy", ns: "payments", obj: "ledger", theirs: `{"spec":{"minReadySeconds":1}}`},
	{name: "environment", command: "kubectl set env deployment/redis EXTRA=1", short: "deploy", ns: "shop", obj: "redis", theirs: `{"spec":{"minReadySeconds":1}}`},
	{name: "resume of a cron job", command: `kubectl patch cronjob/nightly-report -n reports --type=merge -p '{"spec":{"suspend":false}}'`, short: "cj", ns: "reports", obj: "nightly-report", theirs: `{"spec":{"suspend":false}}`},
	{name: "label", command: "kubectl label service/redis tier=web", short: "svc", ns: "shop", obj: "redis", theirs: `{"metadata":{"labels":{"tier":"web"}}}`},
	{name: "strategic patch", command: `kubectl patch service/catalog -p '{"spec":{"selector":{"version":"v1"}}}'`, short: "svc", ns: "shop", obj: "catalog", theirs: `{"spec":{"selector":{"version":"v1"}}}`},
	{name: "JSON patch of a container", command: `kubectl patch deployment/gallery -n media --type=json -p '[{"op":"test","path":"/spec/template/spec/containers/0/name","value":"gallery"},{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example/media/gallery:9.0.0"}]'`, short: "deploy", ns: "media", obj: "gallery", theirs: `{"spec":{"minReadySeconds":1}}`},
	{name: "JSON patch that removes", command: `kubectl patch deployment/player -n media --type=json -p '[{"op":"remove","path":"/metadata/labels/app"}]'`, short: "deploy", ns: "media", obj: "player", theirs: `{"metadata":{"labels":{"app":null,"x":"y"}}}`, unproven: true},
	{name: "removal of a label", command: "kubectl label deployment/db app-", short: "deploy", ns: "shop", obj: "db", theirs: `{"metadata":{"labels":{"app":null,"x":"y"}}}`, unproven: true},
	{name: "cordon", command: "kubectl cordon worker-1", short: "node", obj: "worker-1", theirs: `{"spec":{"unschedulable":true}}`},
	{name: "taint", command: "kubectl taint node worker-2 a=b:NoSchedule", short: "node", obj: "worker-2", theirs: `{"spec":{"taints":[{"key":"a","value":"b","effect":"NoSchedule"}]}}`},
	{name: "job", command: "kubectl create job once --from=cronjob/nightly-report -n reports", short: "job", ns: "reports", obj: "once"},
	{name: "service", command: "kubectl expose deployment/redis --port=6379 --name=cache", short: "svc", ns: "shop", obj: "cache"},
	{name: "autoscaler", command: "kubectl autoscale deployment/cart --min=2 --max=5", short: "hpa", ns: "shop", obj: "cart"},
	{name: "create", op: operation.Operation{Verb: operation.Create, Manifest: oneMap}, short: "cm", ns: "shop", obj: "one"},
	{name: "apply of what is not there", op: operation.Operation{Verb: operation.Apply, Manifest: secondMap}, short: "cm", ns: "shop", obj: "second"},
	{name: "apply", op: operation.Operation{Verb: operation.Apply, Manifest: cartService}, short: "svc", ns: "shop", obj: "cart", theirs: `{"metadata":{"labels":{"tier":"front"}}}`},
	{name: "replace", op: operation.Operation{Verb: operation.Replace, Manifest: strings.Replace(cartService, "front", "back", 1)}, short: "svc", ns: "shop", obj: "cart", theirs: `{"metadata":{"labels":{"tier":"back"}}}`},
	{name: "drain", command: "kubectl drain worker-3 --ignore-daemonsets", short: "node", obj: "worker-3", theirs: `{"spec":{"unschedulable":true}}`},
}

const (
	oneMap      = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {colour: red}\n"
	secondMap   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\ndata: {colour: red}\n"
	cartService = "apiVersion: v1\nkind: Service\nmetadata: {name: cart, labels: {tier: front}}\nspec: {selector: {app: cart}, ports: [{name: http, port: 80, targetPort: 8080}]}\n"
)

func (w *world) lost(i int) action.Action {
	w.t.Helper()
	o := writes[i].op
	if writes[i].command != "" {
		o = w.op(writes[i].command)
	}
	return w.approved(w.planned(o))
}

func (w *world) wantEffect(what string, a action.Action, want action.Effect) {
	w.t.Helper()
	got, err := w.Probe(w.ctx, a)
	if err != nil || got != want {
		w.t.Errorf("%s: effect %d, %v; want %d", what, got, err, want)
	}
}

// A lost answer leaves the effect to be determined, for every class of writes, whether or not the request arrived. A
// process that dies between the write and its record leaves the same state.
func TestProbe(t *testing.T) {
	inWorld(t, func(w *world) {
		for i, c := range writes {
			a := w.lost(i)
			w.wantEffect(c.name+", not made", a, action.Unmoved)
			if c.name != "drain" { // which tries for 300 s
				w.wire.lose = func(int, *http.Request) (bool, bool) { return false, false }
				if _, err := w.Execute(w.ctx, a); !errors.Is(err, action.ErrNoAnswer) {
					t.Fatalf("%s, not sent: %v; want errors.Is(err, action.ErrNoAnswer)", c.name, err)
				}
				w.wantEffect(c.name+", not sent", a, action.Unmoved)
				w.wire.lose = func(int, *http.Request) (bool, bool) { return true, false }
			}
			if told, err := w.Execute(w.ctx, a); !errors.Is(err, action.ErrNoAnswer) && c.name != "drain" {
				t.Fatalf(`%s, sent: %q, %v; want (errors.Is(err, action.ErrNoAnswer) || c.name == "drain")`, c.name, told, err)
			}
			w.wire.lose = nil
			want := action.Present
			if c.unproven {
				want = action.Unclear
			}
			synctest.Wait()
			w.wantEffect(c.name+", without an answer", a, want)
			if seen, err := w.Verify(w.ctx, a); err != nil || seen == "" {
				t.Errorf(`%s: verify: %q, %v; want seen != ""`, c.name, seen, err)
			}

			// A late call of the dead process has no second effect.
			was := w.find(c.short, c.ns, c.obj)
			if _, err := w.Execute(w.ctx, a); err == nil {
				if now := w.find(c.short, c.ns, c.obj); now.GetResourceVersion() != was.GetResourceVersion() {
					t.Errorf("%s: written twice; want now.GetResourceVersion() == was.GetResourceVersion()", c.name)
				}
			}
		}
	})
}

// Another client's change is not taken for ours, even if it is identical.
func TestProbeOfAnotherHand(t *testing.T) {
	inWorld(t, func(w *world) {
		for i, c := range writes {
			a := w.lost(i)
			if c.theirs == "" {
				w.make(c.short, c.ns, c.obj)
			} else {
				w.edit(c.short, c.ns, c.obj, c.theirs)
			}
			w.wantEffect(c.name, a, action.Unclear)
		}
	})
}

// make creates an object of the same name as another client.
func (w *world) make(short, namespace, name string) {
	w.t.Helper()
	spec := map[string]string{
		"job": `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":%q},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"registry.example/reports/nightly:3.0.0"}]}}}}`,
		"svc": `{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},"spec":{"selector":{"app":"redis"},"ports":[{"port":6379}]}}`,
		"hpa": `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":%q},"spec":{"minReplicas":2,"maxReplicas":5,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"cart"}}}`,
		"cm":  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"colour":"red"}}`,
	}[short]
	w.create(short, namespace, fmt.Sprintf(spec, name))
	synctest.Wait()
}

// A removed object is gone, no matter who removed it; one that comes back under the name is another.
func TestProbeOfRemovals(t *testing.T) {
	inWorld(t, func(w *world) {
		for name, command := range map[string]func(*world) string{
			"delete": func(*world) string { return "kubectl delete deployment/cart" },
			"evict": func(w *world) string {
				return "kubectl evict pod/" + w.podsOf("payments", "checkout")[0] + " -n payments"
			},
		} {
			a := w.approved(w.propose(command(w)))
			w.wantEffect(name+", not made", a, action.Unmoved)
			w.wire.lose = func(int, *http.Request) (bool, bool) { return false, false }
			if _, err := w.Execute(w.ctx, a); !errors.Is(err, action.ErrNoAnswer) {
				t.Fatal(err, "want errors.Is(err, action.ErrNoAnswer)")
			}
			w.wantEffect(name+", not sent", a, action.Unmoved)
			w.wire.lose = func(int, *http.Request) (bool, bool) { return true, false }
			if _, err := w.Execute(w.ctx, a); !errors.Is(err, action.ErrNoAnswer) {
				t.Fatal(err, "want errors.Is(err, action.ErrNoAnswer)")
			}
			w.wire.lose = nil
			w.wantEffect(name+", without an answer", a, action.Present)
			synctest.Wait()
			w.wantEffect(name+", later", a, action.Present)
		}
	})
}

// A forced replace that ended between its two calls is reported as such.
func TestProbeOfForcedReplace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.runPlan(w.planned(operation.Operation{Verb: operation.Create, Manifest: oneMap}))
		a := w.approved(w.planned(operation.Operation{Verb: operation.Replace, Manifest: oneMap, Force: true}))
		w.wantEffect("", a, action.Unmoved)
		first := w.wire.writes.Load()
		w.wire.lose = func(n int, _ *http.Request) (bool, bool) { return n == int(first)+1, true }
		told, err := w.Execute(w.ctx, a)
		if !errors.Is(err, action.ErrNoAnswer) || told != "configmap/one in shop was deleted." {
			t.Errorf(`%q, %v; want errors.Is(err, action.ErrNoAnswer) && told == "configmap/one in shop was deleted."`, told, err)
		}
		w.wantEffect("", a, action.Unclear)
		w.wire.lose = nil
		w.create("cm", "shop", oneMapJSON)
		w.wantEffect("", a, action.Unclear) // another client's
	})
}

const oneMapJSON = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"colour":"red"}}`
