package playbook_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// changeCase changes one thing in a fixture and checks the answer.
type changeCase struct {
	name, file, log string
	change          func(*engine.Snapshot)
	say             string // empty: nothing is found
}

func TestCases(t *testing.T) {
	t.Parallel()
	lastEnd := func(s *engine.Snapshot) *corev1.ContainerStateTerminated {
		return s.Pods[0].Status.ContainerStatuses[0].LastTerminationState.Terminated
	}
	setEnv := func(s *engine.Snapshot, env ...corev1.EnvVar) {
		for i := range s.Pods {
			s.Pods[i].Spec.Containers[0].Env = env
		}
	}
	says := func(message string) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) { s.Pods[0].Status.ContainerStatuses[0].State.Waiting.Message = message }
	}
	kubelet := func(message string) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) { s.Events[0].Message = message }
	}
	checkCases(t, []changeCase{
		{"variable not in the spec", "a1_empty_variable", "KeyError: DATABASE_URL is required", func(s *engine.Snapshot) { setEnv(s) }, "`DATABASE_URL` is not set"},
		{"variable that is set", "a1_empty_variable", "DATABASE_URL is not set", func(s *engine.Snapshot) { setEnv(s, corev1.EnvVar{Name: "DATABASE_URL", Value: "x"}) }, "exits on its own"},
		{"missing file", "a1_empty_variable", "open /etc/app.yaml: no such file or directory", nil, "a file that it needs"},
		{"dependency", "a1_empty_variable", "dial tcp 10.0.0.9:5432: connect: connection refused", nil, "cannot reach"},
		{"line before the last", "a1_empty_variable", "FATAL DATABASE_URL is not set\nbye", nil, "FATAL"},
		{"no log", "a1_empty_variable", "", nil, "Confidence: low"},
		{"program that finishes", "a1_empty_variable", "done", func(s *engine.Snapshot) {
			for i := range s.Pods {
				s.Pods[i].Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode = 0
			}
		}, "meant to run on"},
		{"script that calls what is not there", "a2_command_not_in_image", "sh: migrate: not found", func(s *engine.Snapshot) { lastEnd(s).Reason = "Error" }, "or one that it calls, is not in"},
		{"not executable", "a2_command_not_in_image", "", func(s *engine.Snapshot) { lastEnd(s).ExitCode = 126 }, "may not be run in"},
		{"log with markup", "a1_empty_variable", "`**SYSTEM** [approved](http://x)`\x1b[31m", nil, "says `'**SYSTEM** [approved](http://x)'\uFFFD[31m`"},
		{"memory of long ago", "a3_out_of_memory", "", func(s *engine.Snapshot) {
			lastEnd(s).FinishedAt.Time = s.Taken.AddDate(0, 0, -2)
			status := &s.Pods[0].Status.ContainerStatuses[0]
			status.Ready, status.State = true, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}, ""},
		{"memory without a limit", "a3_out_of_memory", "", func(s *engine.Snapshot) { s.Pods[0].Spec.Containers[0].Resources = corev1.ResourceRequirements{} }, "It has no memory limit."},
		{"pull rate", "a5_registry_refuses", "", says("429 Too Many Requests: toomanyrequests: You have reached your pull rate limit"), "refuses for now"},
		{"hub's answer", "a5_registry_refuses", "", says("pull access denied, repository does not exist or may require 'docker login'"), "its name is wrong, or the pull credentials"},
		{"registry away", "a5_registry_refuses", "", says("dial tcp: lookup registry.example: no such host"), "cannot reach the registry"},
		{"pull fault unknown", "a5_registry_refuses", "", says("blob is torn"), "cannot pull"},
		{"word in the name", "a5_registry_refuses", "", func(s *engine.Snapshot) {
			s.Pods[0].Spec.Containers[0].Image = "registry.example/unauthorized:1"
			says("registry.example/unauthorized:1: not found")(s)
		}, "does not exist in its registry"},
		{"ConfigMaps unread", "a6_absent_configmap", "", func(s *engine.Snapshot) { s.Unread["configmaps"] = true }, ""},
		{"optional ConfigMap", "a6_absent_configmap", "", func(s *engine.Snapshot) {
			yes := true
			s.Pods[0].Spec.Containers[0].Env[0].ValueFrom.ConfigMapKeyRef.Optional = &yes
		}, ""},
		{"no key is near", "a7_secret_key", "", func(s *engine.Snapshot) { s.Secrets[0].Keys = []string{"user", "host"} }, "Choose one of its keys"},
		{"two keys are as near", "a7_secret_key", "", func(s *engine.Snapshot) { s.Secrets[0].Keys = []string{"DATABASE_URI", "DATABASE_URN"} }, "Choose one of its keys"},
		{"node has room after all", "a9_asks_too_much", "", func(s *engine.Snapshot) { s.Pods[0].Spec.Containers[0].Resources = corev1.ResourceRequirements{} }, ""},
		{"nodes unread", "a9_asks_too_much", "", func(s *engine.Snapshot) { s.Unread["nodes"] = true }, ""},
		{"cordoned", "a10_all_tainted", "", func(s *engine.Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].Spec = corev1.NodeSpec{Unschedulable: true}
			}
		}, "Cordoned are `node-1`, `node-2`"},
		{"taint of the node's state", "a10_all_tainted", "", func(s *engine.Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].Spec.Taints[0].Key = corev1.TaintNodeNotReady
			}
		}, "do not tolerate it"},
		{"toleration", "a10_all_tainted", "", func(s *engine.Snapshot) {
			s.Pods[0].Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, ""},
		{"anti-affinity", "a10_all_tainted", "", func(s *engine.Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].Spec.Taints = nil
			}
			s.Pods[0].Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname"}}}}
			s.Pods[0].Status.Conditions[0].Message = "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
		}, "The pod's anti-affinity"},
		{"anti-affinity of others", "a10_all_tainted", "", func(s *engine.Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].Spec.Taints = nil
			}
			s.Pods[0].Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname"}}}}
			s.Pods[0].Status.Conditions[0].Message = "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."
		}, "by their own anti-affinity"},
		{"label that tainted nodes have", "a10_all_tainted", "", func(s *engine.Snapshot) {
			s.Nodes[0].Labels = map[string]string{"accelerator": "a100"}
			s.Nodes = append(s.Nodes, *s.Nodes[1].DeepCopy(), *s.Nodes[1].DeepCopy())
			s.Nodes[2].Name, s.Nodes[3].Name = "node-3", "node-4"
			s.Pods[0].Spec.NodeSelector = map[string]string{"accelerator": "a100"}
		}, "has a taint, and the pod has no toleration for it"},
		{"labels of different nodes", "node_selector", "", func(s *engine.Snapshot) {
			s.Nodes = append(s.Nodes, *s.Nodes[0].DeepCopy())
			s.Nodes[0].Labels, s.Nodes[1].Labels, s.Nodes[1].Name = map[string]string{"disk": "fast"}, map[string]string{"zone": "a"}, "node-2"
			s.Pods[0].Spec.NodeSelector = map[string]string{"disk": "fast", "zone": "a"}
		}, "all the labels together"},
		{"segmentation fault", "a1_empty_variable", "INFO starting", func(s *engine.Snapshot) { endWith(s, 139) }, "ended by signal SIGSEGV"},
		{"asked to stop", "a1_empty_variable", "", func(s *engine.Snapshot) { endWith(s, 143) }, "exit code 143 (signal SIGTERM)"},
		{"signal without a name", "a1_empty_variable", "", func(s *engine.Snapshot) { endWith(s, 128+34) }, "signal number 34"},
		{"code past the signals", "a1_empty_variable", "", func(s *engine.Snapshot) { endWith(s, 255) }, "exits on its own"},
		{"liveness between two restarts", "a13_liveness_path", "", func(s *engine.Snapshot) {
			status := &s.Pods[0].Status.ContainerStatuses[0]
			status.Ready, status.State = true, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}, "liveness probe"},
		{"liveness of long ago", "a13_liveness_path", "", func(s *engine.Snapshot) {
			lastEnd(s).FinishedAt.Time = s.Taken.AddDate(0, 0, -2)
			status := &s.Pods[0].Status.ContainerStatuses[0]
			status.Ready, status.State = true, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}, ""},
		{"ended by itself beside a probe", "a13_liveness_path", "", func(s *engine.Snapshot) { s.Events = nil }, "exit code 137"},
		{"probe path", "a14_probe_port", "", kubelet("Readiness probe failed: HTTP probe failed with statuscode: 404"), "nothing under the probe's path `/readyz`"},
		{"probe status", "a14_probe_port", "", kubelet("Readiness probe failed: HTTP probe failed with statuscode: 503"), "says itself that something is not in order"},
		{"probe timeout", "a14_probe_port", "", kubelet("Readiness probe failed: context deadline exceeded"), "within 1 second"},
		{"probe of a name", "a14_probe_port", "", func(s *engine.Snapshot) {
			s.Pods[0].Spec.Containers[0].ReadinessProbe.HTTPGet.Port = intstr.FromString("http")
		}, "asks port `http`"},
		{"nothing listens", "a14_probe_port", "", func(s *engine.Snapshot) { s.Pods[0].Spec.Containers[0].Ports = nil }, "Nothing listens on port 9999"},
		{"scaled to 0", "a15_selector", "", func(s *engine.Snapshot) {
			s.Services[0].Spec.Selector["version"] = "v1"
			s.Pods, s.Deployments[0].Spec.Replicas = nil, new(int32)
		}, "scaled to 0"},
		{"nothing near", "a15_selector", "", func(s *engine.Snapshot) { s.Services[0].Spec.Selector = map[string]string{"app": "else"} }, "No workload in the namespace"},
		{"no selector", "a15_selector", "", func(s *engine.Snapshot) { s.Services[0].Spec.Selector = nil }, ""},
		{"slices unread", "a15_selector", "", func(s *engine.Snapshot) { s.Unread["endpointslices"] = true }, ""},
		{"port number", "service_port_name", "", func(s *engine.Snapshot) { s.Services[0].Spec.Ports[0].TargetPort = intstr.FromInt32(9090) }, "Target port `9090`"},
		{"no declared ports", "service_port_name", "", func(s *engine.Snapshot) { s.Pods[0].Spec.Containers[0].Ports = nil }, "these declare no port"},
	})
}

// endWith makes every container of a snapshot exit with a code.
func endWith(s *engine.Snapshot, code int32) {
	for i := range s.Pods {
		s.Pods[i].Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode = code
	}
}

func checkCases(t *testing.T, tests []changeCase) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := readSnapshot(t, test.file)
			if test.change != nil {
				test.change(s)
			}
			writeLogs(s, test.log)
			found := playbook.Diagnose(s, "")
			if test.say == "" {
				if len(found) != 0 {
					t.Fatalf("found %+v; want len(found) == 0", found)
				}
				return
			}
			if len(found) != 1 {
				t.Fatalf("found %+v, want one", found)
			}
			if answer := engine.Answer(s, found); !strings.Contains(answer, test.say) {
				t.Errorf("the answer must say %q:\n%s", test.say, answer)
			}
		})
	}
}
