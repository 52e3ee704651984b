package program_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

func TestRun(t *testing.T) {
	t.Parallel()
	limited := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}
	for _, tc := range []struct {
		name string
		p    program.Program
		spec corev1.Container
		env  map[string]string
		want string // ends, exit code, reason, last line
	}{
		{"serves", program.Program{}, corev1.Container{}, nil, "false 0  "},
		{"command in the image", program.Program{Commands: []string{"server"}}, corev1.Container{Command: []string{"/bin/server"}}, nil, "false 0  "},
		{"command not in the image", program.Program{Commands: []string{"server"}}, corev1.Container{Command: []string{"sever"}}, nil, "true 128 StartError "},
		{"any command", program.Program{Commands: []string{program.Any}}, corev1.Container{Command: []string{"sever"}}, nil, "false 0  "},
		{"script unchecked", program.Program{}, corev1.Container{Command: []string{"sh", "-c", "sever --now"}}, nil, "false 0  "},
		{"script checked", program.Program{Commands: []string{"server"}, ChecksScripts: true}, corev1.Container{Command: []string{"sh", "-c"}, Args: []string{"sever --now"}}, nil, "true 127  /bin/sh: 1: sever: not found"},
		{"variable empty", program.Program{Needs: []string{"URL"}}, corev1.Container{}, nil, "true 1  FATAL configuration: required environment variable URL is empty"},
		{"variable set", program.Program{Needs: []string{"URL"}}, corev1.Container{}, map[string]string{"URL": "x"}, "false 0  "},
		{"memory", program.Program{Memory: resource.MustParse("65Mi")}, corev1.Container{Resources: limited}, nil, "true 137 OOMKilled INFO loading working set into memory"},
		{"peer answers", program.Program{Peer: "PEER", WaitsForPeer: true}, corev1.Container{}, map[string]string{"PEER": "up:1"}, "true 0  "},
		{"peer does not answer", program.Program{Peer: "PEER", WaitsForPeer: true}, corev1.Container{}, map[string]string{"PEER": "down:1"}, "false 0  "},
		{"waits forever", program.Program{WaitsForPeer: true}, corev1.Container{}, nil, "false 0  "},
	} {
		out := tc.p.Run(program.Container{Spec: &tc.spec, Env: tc.env, Reach: func(address string) string {
			if strings.HasPrefix(address, "up:") {
				return ""
			}
			return "refused"
		}})
		last := ""
		if len(out.Lines) > 0 {
			last = out.Lines[len(out.Lines)-1]
		}
		if got := fmt.Sprintf("%t %d %s %s", out.Ends, out.ExitCode, out.Reason, last); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestProbeFailure(t *testing.T) {
	t.Parallel()
	spec := &corev1.Container{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}
	get := func(port intstr.IntOrString, path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: port, Path: path}}}
	}
	p := &program.Program{Port: 8080, Paths: []string{"/healthz"}}
	for _, tc := range []struct {
		name  string
		out   program.Outcome
		probe *corev1.Probe
		want  string
	}{
		{"no probe", program.Outcome{Program: p}, nil, ""},
		{"unknown image", program.Outcome{}, get(intstr.FromInt32(1), "/"), ""},
		{"named port", program.Outcome{Program: p}, get(intstr.FromString("http"), "/healthz"), ""},
		{"wrong port", program.Outcome{Program: p}, get(intstr.FromInt32(80), "/healthz"), `Get "http://10.0.0.1:80/healthz": dial tcp 10.0.0.1:80: connect: connection refused`},
		{"wrong path", program.Outcome{Program: p}, get(intstr.FromInt32(8080), "/health"), "HTTP probe failed with statuscode: 404"},
		{"unhealthy", program.Outcome{Program: p, Unhealthy: true}, get(intstr.FromInt32(8080), "/healthz"), "HTTP probe failed with statuscode: 503"},
		{"any port and path", program.Outcome{Program: &program.Program{Port: program.AnyPort, Paths: []string{program.Any}}}, get(intstr.FromInt32(1), "/x"), ""},
	} {
		if got := tc.out.ProbeFailure(tc.probe, spec, "10.0.0.1"); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestSource(t *testing.T) {
	t.Parallel()
	yes := true
	s := program.Source{
		ConfigMap: func(name string) (*corev1.ConfigMap, error) {
			if name == "settings" {
				return &corev1.ConfigMap{Data: map[string]string{"mode": "fast", "app.conf": ""}}, nil
			}
			return nil, nil
		},
		Secret: func(name string) (*corev1.Secret, error) {
			if name == "broken" {
				return nil, fmt.Errorf("no answer")
			}
			return nil, nil
		},
	}
	fromMap := func(name, key string, optional *bool) corev1.Container {
		return corev1.Container{Env: []corev1.EnvVar{{Name: "MODE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional}}}}}
	}
	for _, tc := range []struct {
		name string
		spec corev1.Container
		want string // MODE, what is missing, error
	}{
		{"key there", fromMap("settings", "mode", nil), "fast, , <nil>"},
		{"key absent", fromMap("settings", "mod", nil), ", couldn't find key mod in ConfigMap shop/settings, <nil>"},
		{"map absent", fromMap("setting", "mode", nil), `, configmap "setting" not found, <nil>`},
		{"optional", fromMap("setting", "mode", &yes), ", , <nil>"},
		{"no answer", corev1.Container{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "broken"}}}}}, ", , no answer"},
	} {
		env, missing, err := s.ResolveEnvironment("shop", &tc.spec)
		if got := fmt.Sprintf("%s, %s, %v", env["MODE"], missing, err); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	volume := func(key string) []corev1.Volume {
		return []corev1.Volume{{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Items: []corev1.KeyToPath{{Key: key}},
		}}}}
	}
	for key, want := range map[string]string{"app.conf": "", "app.yaml": `MountVolume.SetUp failed for volume "conf" : configmap references non-existent config key: app.yaml`} {
		if got, err := s.MountFailure(volume(key)); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", key, got, err, want)
		}
	}
}
