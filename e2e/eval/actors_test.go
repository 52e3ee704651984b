//go:build e2e

package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/mlp-platform/platform/e2e/kube/kubelet"
)

// actors simulate the kubelets of the pods of scenarios: they write statuses and events once, and store logs and usage.
type actors struct {
	client kubernetes.Interface

	mu    sync.Mutex
	casts map[string][]*Workload // guarded by mu: by namespace
	pods  map[types.UID]*actor   // guarded by mu
}

// actor is one pod.
type actor struct {
	namespace, name string
	workload        *Workload
	part            []part // of each container
	pod             corev1.Pod
	told            bool
	pending         bool // no node; nothing is written
}

// part is the behaviour of one container in one pod.
type part struct {
	*Container
	log, previous []kubelet.Line
}

func newActors(client kubernetes.Interface) *actors {
	return &actors{client: client, casts: map[string][]*Workload{}, pods: map[types.UID]*actor{}}
}

// engage registers the workloads of a scenario before they are created.
func (a *actors) engage(s *Scenario) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range s.Workloads {
		a.casts[s.Namespace] = append(a.casts[s.Namespace], &s.Workloads[i])
	}
}

// run works until ctx ends.
func (a *actors) run(ctx context.Context) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			a.look(ctx)
		}
	}
}

// look gives every new pod its status. The next round repairs a failure.
func (a *actors) look(ctx context.Context) {
	list, err := a.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return
	}
	slices.SortFunc(list.Items, func(x, y corev1.Pod) int { return strings.Compare(x.Name, y.Name) })
	for i := range list.Items {
		p := &list.Items[i]
		x := a.find(p)
		if x == nil || x.told || p.DeletionTimestamp != nil {
			continue
		}
		if p.Spec.NodeName == "" || x.workload.State == "pending" {
			a.mu.Lock()
			x.pending = true
			a.mu.Unlock()
			continue
		}
		if x.play(ctx, a.client, p) == nil {
			a.mu.Lock()
			x.told, x.pending = true, false
			a.mu.Unlock()
		}
	}
}

// find returns the actor of a pod, nil if it belongs to no scenario.
func (a *actors) find(p *corev1.Pod) *actor {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x, ok := a.pods[p.UID]; ok {
		return x
	}
	for _, w := range a.casts[p.Namespace] {
		if p.Labels["app"] != w.Name {
			continue
		}
		before := 0
		for _, other := range a.pods {
			if other.workload == w {
				before++
			}
		}
		x := &actor{namespace: p.Namespace, name: p.Name, workload: w, pod: *p}
		well := w.Broken > 0 && before >= w.Broken
		for _, c := range append([]Container{w.Container}, w.Sidecars...) {
			x.part = append(x.part, newPart(c, well))
		}
		for _, c := range w.Init {
			c.State = cmp.Or(c.State, "completed")
			x.part = append(x.part, newPart(c, well))
		}
		a.pods[p.UID] = x
		return x
	}
	return nil
}

func newPart(c Container, well bool) part {
	if well {
		c.State, c.Restarts, c.Events = "ready", 0, nil
		if c.Script == nil {
			c.Log = ""
		}
	}
	if c.Script != nil {
		var err error
		if c.Log, c.Exit, err = runScript(*c.Script); err != nil {
			panic(err) // no figure may come of it
		}
	}
	p := part{Container: &c}
	now := time.Now()
	p.log = writeLines(c.Log, c.Repeat, now)
	p.previous = p.log
	if c.Previous != "" {
		p.previous = writeLines(c.Previous, c.Repeat, now.Add(-time.Minute))
	}
	return p
}

// settled reports whether all pods of a workload exist and match their description.
func (a *actors) settled(namespace string, w *Workload) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	told := 0
	for _, x := range a.pods {
		if x.workload == w && (x.told || x.pending) {
			told++
		}
	}
	if told < w.pods() {
		return fmt.Errorf("%d of %d pods of %s in %s are as described", told, w.pods(), w.Name, namespace)
	}
	return nil
}

// Log implements kubelet.Source.
func (a *actors) Log(namespace, pod, container string, previous bool) ([]kubelet.Line, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.pods {
		if x.namespace != namespace || x.name != pod {
			continue
		}
		for _, p := range x.part {
			if p.Name == container {
				if previous {
					return p.previous, p.Restarts > 0 || p.State == "crash"
				}
				return p.log, true
			}
		}
	}
	return nil, false
}

// Usage implements kubelet.Source.
func (a *actors) Usage(namespace string) []map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	var items []map[string]any
	for _, x := range a.pods {
		if !x.told || namespace != "" && x.namespace != namespace {
			continue
		}
		var containers []any
		for _, p := range x.part[:1+len(x.workload.Sidecars)] {
			if !slices.Contains([]string{"", "ready", "unready"}, p.State) {
				continue
			}
			containers = append(containers, map[string]any{"name": p.Name, "usage": map[string]any{"cpu": cmp.Or(p.Usage["cpu"], "12m"), "memory": cmp.Or(p.Usage["memory"], "48Mi")}})
		}
		if len(containers) > 0 {
			items = append(items, map[string]any{
				"metadata":  map[string]any{"name": x.name, "namespace": x.namespace, "labels": x.pod.Labels},
				"timestamp": time.Now().UTC().Format(time.RFC3339), "window": "15s", "containers": containers,
			})
		}
	}
	return items
}

// span is the time that a log covers.
const span = 9 * time.Minute

// writeLines spreads the lines of a text over the last minutes. In a line, $t is its time in RFC 3339, $d its date and
// time with a space between, $h its time of day, $n its number and $g a growing number.
func writeLines(text string, repeat int, end time.Time) []kubelet.Line {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	var all []string
	for range max(repeat, 1) {
		all = append(all, strings.Split(text, "\n")...)
	}
	lines := make([]kubelet.Line, len(all))
	for i, l := range all {
		at := end.Add(-span + span*time.Duration(i+1)/time.Duration(len(all))).UTC()
		lines[i] = kubelet.Line{At: at, Text: strings.NewReplacer(
			"$t", at.Format("2006-01-02T15:04:05.000Z"), "$d", at.Format("2006-01-02 15:04:05"), "$h", at.Format("15:04:05"),
			"$n", fmt.Sprint(i+1), "$g", fmt.Sprint(100+37*i),
		).Replace(l)}
	}
	return lines
}
