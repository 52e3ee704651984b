package workload

import (
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

func TestHeapAndLimit(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, limit string
		command     []string
		env, want   string // want: in the cause; empty: the heap fits
	}{
		{"in a variable", "2Gi", nil, "-Xms512m -Xmx4g", "grow to 4Gi"},
		{"in the command", "512Mi", []string{"java", "-Xmx512M", "-jar", "app.jar"}, "", "grow to 512Mi"},
		{"of Node.js", "1Gi", []string{"node", "--max-old-space-size=2048", "server.js"}, "", "grow to 2Gi"},
		{"smaller than the limit", "2Gi", nil, "-Xmx1500m", ""},
		{"only the first heap", "2Gi", nil, "-Xms4g", ""},
		{"without a limit", "", nil, "-Xmx4g", ""},
	} {
		c := &corev1.Container{Command: row.command, Env: []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: row.env}}}
		if row.limit != "" {
			c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(row.limit)}
		}
		f := engine.Finding{}
		explainHeap(&f, c)
		if row.want == "" && f.Cause != "" || !strings.Contains(f.Cause, row.want) {
			t.Errorf("%s: cause %q, want %q", row.name, f.Cause, row.want)
		}
	}
}

func TestVolumesInMemory(t *testing.T) {
	t.Parallel()
	c := &corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}, {Name: "disk", MountPath: "/disk"}}}
	pod := &corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		{Name: "disk", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "other", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
	}}
	f := engine.Finding{}
	explainMemoryVolumes(&f, pod, c)
	if len(f.Evidence) != 1 || !strings.Contains(f.Evidence[0], "`scratch` at `/scratch`") || !strings.Contains(f.Text, "sizeLimit") {
		t.Errorf("evidence %q and text %q, want only the volume scratch and its sizeLimit", f.Evidence, f.Text)
	}
}

func TestScalingDisabled(t *testing.T) {
	t.Parallel()
	disabled, most := autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect
	for _, row := range []struct {
		behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
		want     string
	}{
		{nil, ""},
		{&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{}}, ""},
		{&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{SelectPolicy: &most}}, ""},
		{&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{SelectPolicy: &disabled}}, "scaleUp"},
		{&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{SelectPolicy: &disabled}}, "scaleDown"},
	} {
		if got := scalingDisabled(row.behavior); got != row.want {
			t.Errorf("%+v: %q, want %q", row.behavior, got, row.want)
		}
	}
}
