//go:build e2e && full

package assistant_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/e2e/kube"
	"github.com/mlp-platform/platform/e2e/kube/node"
)

// realFault is a fault on a real node, whose kubelet, runtime and kernel report it in their own words.
type realFault struct {
	name    string
	objects string // in a namespace of the fault's name
	shows   func(w *world, namespace string) func() error
	symptom string   // the question of a user who sees only the symptom
	truth   []string // patterns in a right answer
	never   []string // patterns in no right answer
	// clear is set for what breaks nothing: an answer may report that nothing is wrong
	clear bool
	// symptomOnly omits the question what is wrong in the namespace, which the assistant cannot answer yet
	symptomOnly bool
}

// TestAssistantOnARealNode asks the assistant about ten faults on a real node: what is wrong in the namespace, unless
// the fault is symptomOnly, and about the symptom.
func TestAssistantOnARealNode(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := kube.StartWithoutNodes(t)
	t.Cleanup(c.Stop)
	n := node.Start(t, c)
	t.Logf("a node is ready after %s", time.Since(began).Round(time.Second))
	c.Kubelet.Serve(n)
	w := &world{Cluster: c, table: &table{}}
	if err := c.Kubelet.ServeMetrics(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.open(t)
	verdicts := &verdictTable{}
	t.Run("all", func(t *testing.T) {
		for _, f := range realFaults() {
			if f.name == "dns" {
				continue
			}
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				f.run(t, w, verdicts)
			})
		}
	})
	t.Run("bundles", func(t *testing.T) { testBundles(t, w) })
	// Last: a cluster DNS that is down affects every other answer.
	for _, f := range realFaults() {
		if f.name != "dns" {
			continue
		}
		if err := w.Apply(t.Context(), "kube-system", clusterDNS); err != nil {
			t.Fatal(err)
		}
		t.Run(f.name, func(t *testing.T) { f.run(t, w, verdicts) })
	}
	verdicts.print(t)
}

func (f realFault) run(t *testing.T, w *world, verdicts *verdictTable) {
	if err := w.Namespace(t.Context(), f.name); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := w.Apply(t.Context(), f.name, strings.ReplaceAll(f.objects, "IMAGE", node.Busybox)); err != nil {
		t.Fatal(err)
	}
	limit := 4 * time.Minute
	if end, ok := t.Deadline(); ok {
		limit = min(limit, time.Until(end)-time.Minute) // a test that runs out of time must still end its node
	}
	if err := retryUntil(limit, f.shows(w, f.name)); err != nil {
		t.Fatalf("the fault does not show: %v", err)
	}
	shown := time.Since(began)
	for wording, question := range map[string]string{"vague": "what is wrong in namespace " + f.name + "?", "symptom": f.symptom} {
		if wording == "vague" && f.symptomOnly {
			verdicts.add(verdictRow{fault: f.name, wording: wording, verdict: "not asked", shown: shown})
			continue
		}
		k := w.talk(t, "")
		k.session = "real-" + f.name + "-" + wording
		if wording == "symptom" {
			k.scope = f.name
		}
		asked := time.Now()
		a := k.say(question)
		verdict := f.judge(a.text)
		verdicts.add(verdictRow{f.name, wording, question, verdict, shown, time.Since(asked)})
		if verdict != "right" {
			t.Errorf("%s: %q: %s:\n%s", f.name, question, verdict, a.text)
		} else {
			t.Logf("%q:\n%s", question, a.text)
		}
	}
}

var realAllClear = regexp.MustCompile(`(?i)nothing (was found |is )?wrong|no (problems?|faults?|issues?) (was |were )?found|(everything|all) (is|looks) (well|fine|healthy)|(\bis|\bare) healthy`)

// judge compares an answer with the truth.
func (f realFault) judge(text string) string {
	for _, p := range f.never {
		if regexp.MustCompile(`(?i)` + p).MatchString(text) {
			return "wrong: says " + p
		}
	}
	for _, p := range f.truth {
		if !regexp.MustCompile(`(?i)` + p).MatchString(text) {
			if !f.clear && realAllClear.MatchString(text) {
				return "false all-clear"
			}
			return "missed: lacks " + p
		}
	}
	return "right"
}

// verdictTable is the table that the test prints at the end.
type verdictTable struct {
	mu   sync.Mutex
	rows []verdictRow // guarded by mu
}

type verdictRow struct {
	fault, wording, question, verdict string
	shown, took                       time.Duration
}

func (v *verdictTable) add(r verdictRow) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rows = append(v.rows, r)
}

func (v *verdictTable) print(t testing.TB) {
	v.mu.Lock()
	defer v.mu.Unlock()
	verdicts := map[string]verdictRow{}
	for _, r := range v.rows {
		verdicts[r.fault+" "+r.wording] = r
	}
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "fault\tshown after\tvague\tseconds\tby symptom\tseconds")
	for _, f := range realFaults() {
		vague, symptom := verdicts[f.name+" vague"], verdicts[f.name+" symptom"]
		fmt.Fprintf(tw, "%s\t%.0fs\t%s\t%.1f\t%s\t%.1f\n", f.name, vague.shown.Seconds(), vague.verdict, vague.took.Seconds(), symptom.verdict, symptom.took.Seconds())
	}
	tw.Flush()
	t.Logf("\n%s", b.String())
	if err := os.WriteFile(filepath.Join(harness.Root(t), ".cache", "scenarios-realnode.txt"), []byte(b.String()), 0o644); err != nil {
		t.Error(err)
	}
}

// terminated returns a check that a container of the namespace ended, now or the last time, and matches holds.
func terminated(w *world, namespace string, holds func(*corev1.ContainerStateTerminated) bool) func() error {
	return w.pods(namespace, 1, "ended as wanted", func(p *corev1.Pod) bool {
		for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
			for _, end := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
				if end != nil && holds(end) {
					return true
				}
			}
		}
		return false
	})
}

// logged returns a check that the only running pod of an app has logged a text.
func logged(w *world, namespace, app, text string) func() error {
	return func() error {
		list, err := w.Client.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return err
		}
		for _, p := range list.Items {
			log, err := w.Client.CoreV1().Pods(namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(context.Background())
			if err == nil && strings.Contains(string(log), text) {
				return nil
			}
		}
		return fmt.Errorf("no log of %s has %q", app, text)
	}
}

// usesCPU returns a check that a container of the namespace uses at least this many millicores.
func usesCPU(w *world, namespace string, thousandths int64) func() error {
	return func() error {
		raw, err := w.Client.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces/" + namespace + "/pods").DoRaw(context.Background())
		if err != nil {
			return err
		}
		var list struct {
			Items []struct {
				Containers []struct {
					Usage struct{ CPU resource.Quantity }
				}
			}
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		for _, p := range list.Items {
			for _, c := range p.Containers {
				if c.Usage.CPU.MilliValue() >= thousandths {
					return nil
				}
			}
		}
		return fmt.Errorf("no container uses %dm: %s", thousandths, raw)
	}
}
