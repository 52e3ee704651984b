// Package samples holds the initial content of the sample cluster: the manifests, when each was applied, and the
// programs in its registry.
package samples

import (
	"embed"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/admission"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/controllers"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// history lists the changes to the cluster before the process started, oldest first.
var history = []struct {
	ago  time.Duration
	file string
	// quiet reports that nothing happens between the first minutes and the next step, so that time is skipped.
	quiet bool
}{
	{72 * time.Hour, "system", true},
	{71 * time.Hour, "healthy", true},
	{25 * time.Minute, "platform", true},
	{18 * time.Minute, "workloads", false},
	{12 * time.Minute, "shop", false},
}

// settling is the part of a quiet time that is simulated.
const settling = 5 * time.Minute

// stride is the shortest step through the past.
const stride = 20 * time.Second

// Seed lives the cluster's history up to now: the same controllers that run later give every object its past,
// so that restart counts, events and ages fit together.
func Seed(tx store.Tx, m *controllers.Manager, now time.Time) {
	for i, step := range history {
		at := now.Add(-step.ago)
		applyFile(tx, step.file, at)
		until := now
		if i+1 < len(history) {
			until = now.Add(-history[i+1].ago)
			if quiet := at.Add(settling); step.quiet && quiet.Before(until) {
				until = quiet
			}
		}
		for !at.After(until) {
			next := m.Settle(tx, at)
			if next.IsZero() {
				break
			}
			// The past is simulated in strides, since each pass costs start-up time.
			if next.Before(at.Add(stride)) {
				next = at.Add(stride)
			}
			at = next
		}
	}
	m.Settle(tx, now)
}

// applyFile creates or replaces every object of a file. The files are part of the binary and a test reads them all, so a fault in one is a bug.
func applyFile(tx store.Tx, file string, at time.Time) {
	data, err := manifests.ReadFile("manifests/" + file + ".yaml")
	if err != nil {
		panic(err)
	}
	for i, doc := range strings.Split(string(data), "\n---\n") {
		decoded, gvk, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
		if err != nil {
			panic(fmt.Sprintf("%s.yaml, document %d: %v", file, i, err))
		}
		kind, ok := resource.ForKind(*gvk)
		if !ok {
			panic(fmt.Sprintf("%s.yaml, document %d: %s is not served", file, i, gvk))
		}
		o := decoded.(resource.Object)
		o.GetObjectKind().SetGroupVersionKind(*gvk)
		key := kind.GroupResource()
		if kind.Namespaced && o.GetNamespace() == "" {
			o.SetNamespace("default")
		}
		if old, exists := tx.Get(key, o.GetNamespace(), o.GetName()); exists {
			err = admission.Update(tx, kind, old, o, "")
		} else {
			given := decoded.DeepCopyObject().(resource.Object)
			if err = admission.Create(tx, kind, o, at); err == nil && kind.Status {
				admission.KeepStatus(o, given)
			}
		}
		if err != nil {
			panic(fmt.Sprintf("%s.yaml, %s %s: %v", file, gvk.Kind, o.GetName(), err))
		}
		tx.Put(key, o)
	}
}
