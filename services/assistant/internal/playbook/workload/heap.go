package workload

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// heapExpr matches the option for the largest heap of a Java virtual machine, and of Node.js in MiB.
var heapExpr = regexp.MustCompile(`(?:^|\s)(?:(-Xmx)(\d{1,9})([kKmMgG])\b|(--max[-_]old[-_]space[-_]size)[= ](\d{1,9})\b)`)

// explainHeap reports, in a finding about a container that the kernel killed for its memory, a heap that may grow beyond
// the limit.
func explainHeap(f *engine.Finding, c *corev1.Container) {
	limit, ok := c.Resources.Limits[corev1.ResourceMemory]
	if !ok {
		return
	}
	settings := []struct{ where, text string }{{"Its command line", strings.Join(append(append([]string{}, c.Command...), c.Args...), " ")}}
	for _, v := range c.Env {
		settings = append(settings, struct{ where, text string }{"The variable " + engine.QuoteCode(v.Name), v.Value})
	}
	for _, s := range settings {
		for _, m := range heapExpr.FindAllStringSubmatch(s.text, -1) {
			amount, option := m[2]+map[string]string{"k": "Ki", "m": "Mi", "g": "Gi"}[strings.ToLower(m[3])], m[1]+m[2]+m[3]
			if m[4] != "" {
				amount, option = m[5]+"Mi", m[4]+"="+m[5]
			}
			heap, err := resource.ParseQuantity(amount)
			if err != nil || heap.Cmp(limit) < 0 {
				continue
			}
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s has %s: the heap alone may grow to %s.", s.where, engine.QuoteCode(option), heap.String()))
			f.Cause = fmt.Sprintf("The heap may grow to %s, and the memory limit of the container is %s: it is killed before its heap is full.", heap.String(), limit.String())
			f.Text = "Choose a heap well below the limit, since a program needs memory besides its heap, or a higher limit."
			return
		}
	}
}

// explainMemoryVolumes reports the volumes of a container whose files are in memory and count towards its limit.
func explainMemoryVolumes(f *engine.Finding, pod *corev1.PodSpec, c *corev1.Container) {
	for _, mount := range c.VolumeMounts {
		for i := range pod.Volumes {
			v := &pod.Volumes[i]
			if v.Name != mount.Name || v.EmptyDir == nil || v.EmptyDir.Medium != corev1.StorageMediumMemory {
				continue
			}
			f.Evidence = append(f.Evidence, fmt.Sprintf("The emptyDir volume %s at %s has the medium Memory: files in it count towards the memory limit.", engine.QuoteCode(v.Name), engine.QuoteCode(mount.MountPath)))
			if v.EmptyDir.SizeLimit == nil {
				f.Text += fmt.Sprintf(" Give the volume %s a sizeLimit, or another medium.", engine.QuoteCode(v.Name))
			}
		}
	}
}
