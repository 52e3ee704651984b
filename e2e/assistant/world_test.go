//go:build e2e

// Package assistant_test asks the built assistant about a real Kubernetes control plane, approves its proposals, kills
// it, and counts the writes on the wire.
package assistant_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/e2e/kube"
	"github.com/mlp-platform/platform/libs/testenv"
)

// TestMain allows more parallel tests than there are CPUs: they mostly wait, for a lease to expire or a node to be
// missed.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// world is a cluster with one assistant in front of it.
type world struct {
	*kube.Cluster
	door     *door
	database string
	process  *process
	table    *table
	engine   string   // of the scenarios
	model    *model   // used by the engine; nil: none
	env      []string // settings of its assistants
}

// newWorld starts everything, with settings for the assistant.
func newWorld(t testing.TB, nodes []kube.Node, env ...string) *world {
	t.Helper()
	w := &world{Cluster: kube.Start(t, nodes...), table: &table{}, env: env}
	t.Cleanup(w.Stop)
	if err := w.Kubelet.ServeMetrics(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.open(t)
	return w
}

func (w *world) open(t testing.TB) {
	t.Helper()
	w.database = newDatabase(t)
	w.door = openDoor(t, w.Config)
	w.process = w.launch(t, w.door)
}

// beside returns the same cluster with another assistant, which has a separate door and database.
func (w *world) beside(t testing.TB, env ...string) *world {
	t.Helper()
	other := &world{Cluster: w.Cluster, table: &table{}, env: env}
	other.open(t)
	return other
}

// launch starts one more assistant with the settings of this world, and further ones.
func (w *world) launch(t testing.TB, d *door, env ...string) *process {
	t.Helper()
	return launchAssistant(t, w.database, d.kubeconfig, slices.Concat(w.env, env)...)
}

// newDatabase creates an empty database, migrated by the binary.
func newDatabase(t testing.TB) string {
	t.Helper()
	return testenv.Migrated(t, "assistant-e2e", func(ctx context.Context, url string) error {
		cmd := exec.CommandContext(ctx, harness.Bin(t, "assistant"), "migrate")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PLATFORM_DATABASE_URL=" + url}
		if out, err := cmd.CombinedOutput(); err != nil {
			return errors.New(strings.TrimSpace(string(out)))
		}
		return nil
	})
}

// talk begins a session about a namespace.
func (w *world) talk(t testing.TB, scope string) *talk {
	return &talk{t: t, url: w.process.url, key: adminKey, session: strings.NewReplacer("/", ".", ",", "").Replace(t.Name()) + "-" + scope, scope: scope}
}

// event returns a check that an object in a namespace had an event with this reason.
func (w *world) event(namespace, reason string) func() error {
	return func() error {
		list, err := w.Client.CoreV1().Events(namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "reason=" + reason})
		if err == nil && len(list.Items) == 0 {
			err = fmt.Errorf("no event %s in %s", reason, namespace)
		}
		return err
	}
}

// pods returns a check that exactly n pods of a namespace satisfy holds.
func (w *world) pods(namespace string, n int, what string, holds func(*corev1.Pod) bool) func() error {
	return func() error {
		list, err := w.Client.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		found := 0
		for i := range list.Items {
			if holds(&list.Items[i]) {
				found++
			}
		}
		if found != n {
			return fmt.Errorf("%d of %d pods in %s are %s, want %d", found, len(list.Items), namespace, what, n)
		}
		return nil
	}
}

// waiting returns a check that n pods of a namespace have a container waiting for this reason.
func (w *world) waiting(namespace string, n int, reason string) func() error {
	return w.pods(namespace, n, reason, func(p *corev1.Pod) bool {
		for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
			if s.State.Waiting != nil && s.State.Waiting.Reason == reason {
				return true
			}
		}
		return false
	})
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
			return true
		}
	}
	return false
}

func (w *world) readyPods(namespace string, n int) func() error {
	return w.pods(namespace, n, "ready", podReady)
}

// joinChecks joins conditions.
func joinChecks(checks ...func() error) func() error {
	return func() error {
		for _, c := range checks {
			if err := c(); err != nil {
				return err
			}
		}
		return nil
	}
}

// table is the table that TestScenarios prints at the end.
type table struct {
	mu   sync.Mutex
	rows map[string]row // guarded by mu
}

type row struct {
	what             string
	diagnosed, fixed string // yes, no, or a dash
	unapproved       int    // writes without an approval
}

func (x *table) add(id string, r row) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.rows == nil {
		x.rows = map[string]row{}
	}
	x.rows[id] = r
}

// print writes the table to the test's output and beside the other results.
func (x *table) print(t testing.TB, engine string, ids []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "#\tscenario\tdiagnosed\tfixed after approval\tunapproved writes")
	diagnosed, fixed, unapproved := 0, 0, 0
	for _, id := range ids {
		r, ok := x.rows[id]
		if !ok {
			fmt.Fprintf(tw, "%s\t(did not end)\tno\tno\t?\n", id)
			continue
		}
		if r.diagnosed == "yes" {
			diagnosed++
		}
		if r.fixed == "yes" {
			fixed++
		}
		unapproved += r.unapproved
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\n", id, r.what, r.diagnosed, r.fixed, r.unapproved)
	}
	fmt.Fprintf(tw, "\t%d scenarios, engine %s\t%d\t%d\t%d\n", len(ids), engine, diagnosed, fixed, unapproved)
	tw.Flush()
	t.Logf("\n%s", b.String())
	file := filepath.Join(harness.Root(t), ".cache", "scenarios-"+engine+".txt")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Error(err)
	}
	if unapproved != 0 {
		t.Errorf("%d unapproved writes; want 0", unapproved)
	}
}
