package workload

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// helperExpr matches names of containers, or of their images, that keep running next to a program until they are
// stopped.
var helperExpr = regexp.MustCompile(`(?i)proxy|sidecar|envoy|istio|linkerd|agent|exporter|collector|otel|fluent|vector|promtail|logger|shipper|vault|daprd|tunnel`)

// lingerTime is how long a helper may take to end once its program has.
const lingerTime = 15 * time.Second

// checkLingering explains Sidecar: a helper in the pod of a Job that keeps running after the Job's own program has
// finished, so that the pod never completes. Native sidecars, which are init containers that restart, are ended by the
// kubelet.
func checkLingering(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	if w.Ref.Kind != "Job" || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
		return nil
	}
	var done string
	var left []engine.Container
	for _, c := range engine.ListContainers(pod) {
		if c.Init {
			continue
		}
		end := c.Status.State.Terminated
		switch {
		case end == nil && c.Status.State.Running != nil && helperExpr.MatchString(c.Spec.Name+" "+c.Spec.Image):
			left = append(left, c)
		case end == nil || end.ExitCode != 0 || x.Taken.Sub(end.FinishedAt.Time) < lingerTime:
			return nil
		default:
			done = c.Spec.Name
		}
	}
	if done == "" || len(left) == 0 {
		return nil
	}
	var names []string
	for _, c := range left {
		names = append(names, c.Spec.Name)
	}
	slices.Sort(names)
	f := engine.Finding{Class: engine.Sidecar, Object: w.Ref, Container: left[0].Spec.Name, Confidence: engine.High}
	f.Evidence = []string{fmt.Sprintf("Container %s of the pod has finished without an error; %s still runs.", engine.QuoteCode(done), engine.QuoteCodes(names))}
	f.Cause = fmt.Sprintf("The container %s keeps running after the program has finished, so the pod never ends and the job never completes.", engine.QuoteCodes(names))
	f.Text = "Make it a native sidecar (an init container with `restartPolicy: Always`), which the kubelet ends, or let it end when the program does."
	return []engine.Finding{f}
}
