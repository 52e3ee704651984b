package change_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/libs/samplecluster"
	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/change"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/event"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// world is a seeded cluster, the service on it, and a second client.
type world struct {
	*change.Service
	t   *testing.T
	ctx context.Context
	// hand is the second client, which acts for other users.
	hand kubernetes.Interface
	dyn  dynamic.Interface
	wire *wire
}

// inWorld runs a test on a fresh cluster, in a synctest bubble.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, ctx: t.Context(), wire: &wire{}}
		s := samplecluster.New(time.Now)
		var err error
		if w.hand, err = kubernetes.NewForConfig(s.Config()); err != nil {
			t.Fatal(err)
		}
		if w.dyn, err = dynamic.NewForConfig(s.Config()); err != nil {
			t.Fatal(err)
		}
		cfg := s.Config()
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { w.wire.next = next; return w.wire })
		t.Cleanup(s.Close)
		c, err := cluster.Open(t.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) { return cfg, s.Close }})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		policy := guard.Policy{Protected: []string{"kube-system"}, Hidden: []string{"kube-public"}}
		w.Service, err = change.New(change.Config{Policy: policy}, change.Deps{Cluster: c, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		test(w)
	})
}

// wire lets writes get lost, on the way there or back. Dry runs are not counted.
type wire struct {
	next http.RoundTripper
	// lose decides for the n-th write, from 1, whether it is sent and whether its answer arrives; nil means both.
	lose   func(n int, r *http.Request) (sent, answered bool)
	writes atomic.Int32
	calls  atomic.Int32
	down   atomic.Bool
}

var errLost = errors.New("connection reset")

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.calls.Add(1)
	if w.down.Load() {
		return nil, errLost
	}
	if r.Method == http.MethodGet || r.URL.Query().Has("dryRun") || dryBody(r) {
		return w.next.RoundTrip(r)
	}
	n := int(w.writes.Add(1))
	sent, answered := true, true
	if w.lose != nil {
		sent, answered = w.lose(n, r)
	}
	if !sent {
		return nil, errLost
	}
	resp, err := w.next.RoundTrip(r)
	if !answered {
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, errLost
	}
	return resp, err
}

// dryBody finds dry runs of deletions and evictions, which have the option in their body.
func dryBody(r *http.Request) bool {
	if r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	text := new(strings.Builder)
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf)
		text.Write(buf[:n])
		if err != nil {
			return strings.Contains(text.String(), `"dryRun":["All"]`)
		}
	}
}

func (w *world) op(command string) operation.Operation {
	w.t.Helper()
	o, err := kubectl.Parse(command)
	if err != nil {
		w.t.Fatalf("%s: %v", command, err)
	}
	return o
}

func (w *world) ops(commands ...string) []operation.Operation {
	w.t.Helper()
	var ops []operation.Operation
	for _, c := range commands {
		ops = append(ops, w.op(c))
	}
	return ops
}

func (w *world) planner() change.Planner { return change.Planner{Service: w.Service} }

// turnBy returns a turn of a role whose user wrote the words.
func turnBy(role guard.Role, words string) turn.Turn {
	return turn.Turn{Who: event.Who{Principal: "ann", Role: role}, Query: words, Scope: "shop"}
}

// propose plans commands for an admin who wrote them.
func (w *world) propose(commands ...string) action.Plan {
	w.t.Helper()
	p, err := w.try(guard.Admin, commands...)
	if err != nil {
		w.t.Fatalf("%v: %v", commands, err)
	}
	return p
}

func (w *world) try(role guard.Role, commands ...string) (action.Plan, error) {
	w.t.Helper()
	return w.planner().Plan(w.ctx, turnBy(role, strings.Join(commands, " ")), w.ops(commands...))
}

// approved returns the action of a plan after its approval and its last dry run.
func (w *world) approved(p action.Plan) action.Action {
	w.t.Helper()
	a := action.Action{Operations: p.Operations, Digest: p.Digest, Command: p.Command}
	again, err := w.Plan(w.ctx, guard.Admin, a.Ops())
	if err != nil {
		w.t.Fatalf("%s: the last look: %v", p.Command, err)
	}
	if again.Digest != p.Digest {
		w.t.Fatalf("%s: the digest changed though nothing did:\n%+v\n%+v; want again.Digest == %v", p.Command, p.Operations, again.Operations, p.Digest)
	}
	now := time.Now()
	a.Observed, a.StartedAt = again.Operations, &now
	return a
}

// run proposes, approves and executes.
func (w *world) run(commands ...string) (action.Action, string) {
	w.t.Helper()
	return w.runPlan(w.propose(commands...))
}

func (w *world) runPlan(p action.Plan) (action.Action, string) {
	w.t.Helper()
	a := w.approved(p)
	told, err := w.Execute(w.ctx, a)
	if err != nil {
		w.t.Fatalf("%s: %v", p.Command, err)
	}
	return a, told
}

// plan is propose for typed operations.
func (w *world) plan(ops ...operation.Operation) (action.Plan, error) {
	w.t.Helper()
	words := ""
	for _, o := range ops {
		words += o.Manifest + " " + o.Patch
	}
	return w.planner().Plan(w.ctx, turnBy(guard.Admin, words), ops)
}

func (w *world) planned(ops ...operation.Operation) action.Plan {
	w.t.Helper()
	p, err := w.plan(ops...)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// verified also reads back the result.
func (w *world) verified(commands ...string) (told, seen string) {
	w.t.Helper()
	a, told := w.run(commands...)
	seen, err := w.Verify(w.ctx, a)
	if err != nil {
		w.t.Fatalf("%v: verify: %v", commands, err)
	}
	return told, seen
}

func (w *world) want(what, got string, parts ...string) {
	w.t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			w.t.Errorf("%s lacks %q:\n%s; want strings.Contains(got, p)", what, p, got)
		}
	}
}

// refused expects commands to be answered with a sentence.
func (w *world) refused(sentence string, commands ...string) {
	w.t.Helper()
	p, err := w.try(guard.Admin, commands...)
	if err == nil && p.Verdict.Answer == guard.Refuse {
		err = errors.New(p.Verdict.Reason)
	}
	if err == nil || !strings.Contains(err.Error(), sentence) {
		w.t.Errorf("%v: %v, want %q", commands, err, sentence)
	}
}

func (w *world) get(gvr, namespace, name string) object {
	w.t.Helper()
	o := w.find(gvr, namespace, name)
	if o == nil {
		w.t.Fatalf("no %s %s/%s; want o != nil", gvr, namespace, name)
	}
	return o.Object
}

type object = map[string]any

func (w *world) find(resource, namespace, name string) *unstructured.Unstructured {
	w.t.Helper()
	o, err := w.dyn.Resource(gvrOf(resource)).Namespace(namespace).Get(w.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return o
}

func (w *world) podsOf(namespace, app string) []string {
	w.t.Helper()
	pods, err := w.hand.CoreV1().Pods(namespace).List(w.ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, p := range pods.Items {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

var resources = map[string]schema.GroupVersionResource{
	"deploy": {Group: "apps", Version: "v1", Resource: "deployments"},
	"rs":     {Group: "apps", Version: "v1", Resource: "replicasets"},
	"sts":    {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"svc":    {Version: "v1", Resource: "services"},
	"cm":     {Version: "v1", Resource: "configmaps"},
	"ns":     {Version: "v1", Resource: "namespaces"},
	"node":   {Version: "v1", Resource: "nodes"},
	"pod":    {Version: "v1", Resource: "pods"},
	"job":    {Group: "batch", Version: "v1", Resource: "jobs"},
	"ds":     {Group: "apps", Version: "v1", Resource: "daemonsets"},
	"cj":     {Group: "batch", Version: "v1", Resource: "cronjobs"},
	"pdb":    {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	"hpa":    {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
}

func gvrOf(short string) schema.GroupVersionResource { return resources[short] }

// edit patches an object as another client.
func (w *world) edit(short, namespace, name, patch string) {
	w.t.Helper()
	if _, err := w.dyn.Resource(gvrOf(short)).Namespace(namespace).Patch(w.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait() // the controllers have reacted
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}

// create creates an object as another client.
func (w *world) create(short, namespace, manifest string) {
	w.t.Helper()
	var o unstructured.Unstructured
	if err := o.UnmarshalJSON([]byte(manifest)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.dyn.Resource(gvrOf(short)).Namespace(namespace).Create(w.ctx, &o, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		w.t.Fatal(err)
	}
}
