package storage

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

func TestRefusedAttachment(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "worker-2"}}
	for message, want := range map[string]string{
		`AttachVolume.Attach failed for volume "pvc-1" : rpc error: code = ResourceExhausted desc = attachment limit of 26 volumes exceeded`: "as many volumes as it may have",
		`AttachVolume.Attach failed for volume "pvc-1" : rpc error: code = Internal desc = the disk is in another zone`:                      "cannot be attached to node `worker-2`.",
	} {
		f := refusedAttachment(pod, &engine.Workload{}, &corev1.Event{Message: message})
		if !strings.Contains(f.Cause, want) || !strings.Contains(f.Evidence[0], "AttachVolume") {
			t.Errorf("%s: cause %q with %q, want %q", message, f.Cause, f.Evidence, want)
		}
	}
}
