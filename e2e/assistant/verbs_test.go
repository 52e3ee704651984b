//go:build e2e

package assistant_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/jsonpath"

	"github.com/mlp-platform/platform/e2e/kube"
)

// change is one write, from the request to the state that the API server holds afterwards. In its texts NS is the
// case's own namespace, which is also in the names of its nodes and kinds.
type change struct {
	name    string
	objects string                        // YAML of the initial objects
	nodes   int                           // the case's own nodes, NS-a, NS-b…; only its pods may run there
	before  func(t *testing.T, c *corner) // further preparation
	ask     string
	command string   // shown in the prompt
	risk    string   // and its risk; a trailing ! means that it always needs approval
	shows   []string // patterns in the prompt
	hides   []string // never shown
	writes  []string // patterns of the calls, each of which occurs once
	says    []string // patterns in the observed result
	holds   map[string]string
}

// corner is one case's part of the world.
type corner struct {
	*world
	ns string
}

func (c *corner) fill(text string) string { return strings.ReplaceAll(text, "NS", c.ns) }

// homes are the API paths of the kinds.
var homes = map[string]string{
	"deployments": "/apis/apps/v1", "replicasets": "/apis/apps/v1", "statefulsets": "/apis/apps/v1", "daemonsets": "/apis/apps/v1", "cronjobs": "/apis/batch/v1", "jobs": "/apis/batch/v1",
	"horizontalpodautoscalers": "/apis/autoscaling/v2", "configmaps": "/api/v1", "services": "/api/v1", "pods": "/api/v1", "widgetsNS": "/apis/shop.test/v1",
}

// path returns the API path of an object; nodes and custom kinds' definitions have no namespace.
func (c *corner) path(object string) string {
	kind, _, _ := strings.Cut(object, "/")
	switch kind {
	case "nodes":
		return c.fill("/api/v1/" + object)
	case "customresourcedefinitions":
		return c.fill("/apis/apiextensions.k8s.io/v1/" + object)
	}
	return c.fill(homes[kind] + "/namespaces/NS/" + object)
}

// read returns a field of an object as kubectl's jsonpath would; "absent" if there is no such object.
func (c *corner) read(ctx context.Context, what string) (string, error) {
	object, place, _ := strings.Cut(what, " ")
	raw, err := c.Client.Discovery().RESTClient().Get().AbsPath(c.path(object)).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return "absent", nil
	}
	if err != nil || place == "" {
		return "there", err
	}
	var doc any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return "", err
	}
	j := jsonpath.New(what).AllowMissingKeys(true)
	if err := j.Parse(place); err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = j.Execute(&b, doc)
	return b.String(), err
}

// is returns a check that fields of objects have these values.
func (c *corner) is(ctx context.Context, holds map[string]string) func() error {
	return func() error {
		for what, want := range holds {
			if got, err := c.read(ctx, what); err != nil || got != c.fill(want) {
				return fmt.Errorf("%s is %q, want %q, %v", c.fill(what), got, c.fill(want), err)
			}
		}
		return nil
	}
}

func (c *corner) wait(t *testing.T, holds map[string]string) {
	t.Helper()
	if err := retryUntil(60*time.Second, c.is(t.Context(), holds)); err != nil {
		t.Fatal(err)
	}
}

// edit is a concurrent change by another client.
func (c *corner) edit(t *testing.T, object, patch string) {
	t.Helper()
	if err := c.Client.Discovery().RESTClient().Patch(types.MergePatchType).AbsPath(c.path(object)).Body([]byte(patch)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

// written returns the calls about the case's objects.
func (c *corner) written(from *door, mark int) (calls []string) {
	for _, w := range from.written(mark, "") {
		if strings.Contains(w.path, c.ns) {
			calls = append(calls, w.method+" "+w.path)
		}
	}
	return calls
}

// corner creates the namespace of a case with its objects.
func (w *world) corner(t *testing.T, ns string, objects string, nodes int) *corner {
	t.Helper()
	c := &corner{w, ns}
	if err := w.Namespace(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		c.join(t, string(rune('a'+i)))
	}
	if strings.Contains(objects, "CustomResourceDefinition") {
		// Its objects can be created once it is served.
		definition, rest, _ := strings.Cut(objects, "\n---\n")
		c.apply(t, definition)
		if err := retryUntil(30*time.Second, func() error {
			return w.Client.Discovery().RESTClient().Get().AbsPath(c.fill("/apis/shop.test/v1/widgetsNS")).Do(t.Context()).Error()
		}); err != nil {
			t.Fatal(err)
		}
		objects = rest
	}
	c.apply(t, objects)
	return c
}

func (c *corner) apply(t *testing.T, objects string) {
	t.Helper()
	if objects == "" {
		return
	}
	if err := c.Apply(t.Context(), c.ns, c.fill(objects)); err != nil {
		t.Fatal(err)
	}
}

// sideBySide runs more subtests in parallel than there are CPUs: they mostly wait for the cluster.
func sideBySide(t *testing.T, names []string, run func(t *testing.T, i int)) {
	slots := make(chan struct{}, 10)
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.Run(name, func(t *testing.T) { run(t, i) })
		})
	}
	wg.Wait()
}

// TestVerbs runs every write verb over the wire: the prompt, the calls to the API server, and the state afterwards.
// Further cases are about writes that are lost, stale, rejected or cannot be dry-run.
func TestVerbs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, []kube.Node{{Name: "node-a", CPU: "32", Memory: "64Gi"}, {Name: "node-b", CPU: "32", Memory: "64Gi"}}, "ASSISTANT_ENGINE=playbooks", "ASSISTANT_MAX_STREAMS=64")
	var names []string
	var runs []func(*testing.T)
	add := func(name string, run func(*testing.T)) { names, runs = append(names, name), append(runs, run) }
	// The slowest ones begin first.
	add("conformance", w.conformance)
	add("lost", w.lost)
	add("rejected", w.rejected)
	add("drain", w.drain)
	for i, c := range slices.Concat(nodeChanges(), workloadChanges(), manifestChanges(), objectChanges()) {
		add(c.name, func(t *testing.T) { c.run(t, w, fmt.Sprintf("v%02d", i)) })
	}
	add("stale", w.stale)
	add("no dry run", w.undryable)
	sideBySide(t, names, func(t *testing.T, i int) { runs[i](t) })
}

func (x change) run(t *testing.T, w *world, ns string) {
	c := w.corner(t, ns, x.objects, x.nodes)
	if x.before != nil {
		x.before(t, c)
	}
	k, mark := w.talk(t, ns), w.door.mark()
	a := k.say(c.fill(x.ask))
	p := requireOneApproval(t, a)
	risk, always := strings.CutSuffix(x.risk, "!")
	if p.Summary != c.fill(x.command) || p.Risk != risk || p.Always != always {
		t.Errorf("asked for %q, risk %s, always %v\nwant     %q, risk %s; want p.Summary == c.fill(x.command) && p.Risk == risk && p.Always == always", p.Summary, p.Risk, p.Always, c.fill(x.command), x.risk)
	}
	for _, pattern := range x.shows {
		requireMatches(t, a, c.fill(pattern))
	}
	if calls := c.written(w.door, mark); len(calls) > 0 {
		t.Errorf("written before yes: %q; want len(calls) <= 0", calls)
	}
	done := k.say("yes")
	for _, pattern := range x.says {
		requireMatches(t, done, c.fill(pattern))
	}
	k.sameDigest(p, "succeeded")
	if err := retryUntil(10*time.Second, c.is(t.Context(), x.holds)); err != nil {
		t.Error(err)
	}
	c.exactly(t, w.door, mark, x.writes)
	for _, secret := range x.hides {
		if strings.Contains(k.wire.String(), secret) {
			t.Errorf("%q was shown; want !strings.Contains(k.wire.String(), secret)", secret)
		}
	}
}

// exactly compares the calls with patterns, one pattern per call.
func (c *corner) exactly(t *testing.T, from *door, mark int, patterns []string) {
	t.Helper()
	calls := c.written(from, mark)
	left := slices.Clone(calls)
	for _, p := range patterns {
		method, object, _ := strings.Cut(p, " ")
		whole := regexp.MustCompile("^" + method + " " + c.path(object) + "$")
		i := slices.IndexFunc(left, whole.MatchString)
		if i < 0 {
			t.Errorf("no call %s in %q; want i >= 0", whole, calls)
			return
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		t.Errorf("calls that nobody approved: %q; want len(left) <= 0", left)
	}
}
