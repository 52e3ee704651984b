package investigate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// TestEvidenceTakesBoundedTime: logs that do not arrive end the reading, the answer mentions it, and nothing is called
// healthy.
func TestEvidenceTakesBoundedTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := readFixture(t, "", "healthy")
		s.Deployments[0].Status.ReadyReplicas = *s.Deployments[0].Spec.Replicas
		b := toolsOn(s)
		b.run = func(ctx context.Context, _ operation.Operation) (turn.Output, error) {
			<-ctx.Done()
			return turn.Output{}, context.Cause(ctx)
		}
		begin := time.Now()
		a := askOnce(t, b, "", "what is wrong with gallery?")
		checkAnswer(t, "what is wrong with gallery?", a, []string{"Not looked at:", "reading stopped after 10s"}, []string{allClear})
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("it took %s, want 10s", took)
		}
	})
}

// TestLogsAsEvidence asks about a deployment whose log shows a fault that its objects do not.
func TestLogsAsEvidence(t *testing.T) {
	t.Parallel()
	addService := func(s *engine.Snapshot, name string, ready bool) {
		s.Services = append(s.Services, corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.77", Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 5432}}},
		})
		s.EndpointSlices = append(s.EndpointSlices, discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			Endpoints:  []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		})
	}
	mountConfig := func(s *engine.Snapshot) {
		spec := &s.Deployments[0].Spec.Template.Spec
		spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/etc/gallery"}}
	}
	for _, row := range []struct {
		name, query, log string
		change           func(*engine.Snapshot)
		must, not        []string
	}{
		{"nothing in the log", "what is wrong with gallery?", "INFO ready\nINFO 0 errors\n", nil, []string{allClear + " with deployment `gallery`", "Read 2 lines from 1 log of 1 pod."}, []string{"left out"}},
		{"first error and what precedes it", "why does gallery fail?", "2026-01-02T10:00:00Z INFO POST /upload\n2026-01-02T10:00:01Z ERROR relation \"albums\" does not exist\n2026-01-02T10:00:09Z ERROR relation \"albums\" does not exist\n", nil,
			[]string{"2 times from 2026-01-02 10:00:01 to 2026-01-02 10:00:09", `relation "albums" does not exist`, "the line before it is", "POST /upload"}, []string{allClear}},
		{"host leads to its service", "is gallery failing?", "ERROR could not connect to gallery-db:5432: connection refused\n", func(s *engine.Snapshot) { addService(s, "gallery-db", false) },
			[]string{"`gallery-db` is service `gallery-db` in namespace `media`, which has 0 ready endpoints"}, []string{allClear}},
		{"host with a namespace, on another port", "is gallery failing?", "ERROR dial tcp gallery-db.media.svc.cluster.local:5433: i/o timeout\n", func(s *engine.Snapshot) { addService(s, "gallery-db", true) },
			[]string{"1 ready endpoint.", "It has no port `5433`"}, []string{allClear}},
		{"address of a service", "is gallery failing?", "ERROR dial tcp 10.96.0.77:5432: i/o timeout\n", func(s *engine.Snapshot) { addService(s, "gallery-db", true) }, []string{"`10.96.0.77` is service `gallery-db`"}, []string{allClear}},
		{"full disk", "why does gallery fail?", "ERROR write /var/lib/gallery/thumbs/1.png: no space left on device\n", func(s *engine.Snapshot) {
			spec := &s.Deployments[0].Spec.Template.Spec
			spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "thumbs"}}}}
			spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/gallery"}}
			s.Claims = append(s.Claims, corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "thumbs"},
				Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}},
			})
		}, []string{"volume claim `thumbs` of 5Gi", "To enlarge it"}, []string{allClear}},
		{"no space for watches", "why does gallery fail?", "ERROR failed to watch /etc/gallery/app.yaml: no space left on device\n", mountConfig, []string{"no space left on device"}, []string{"be full", "is full"}},
		{"no space on a volume that nothing fills", "why does gallery fail?", "ERROR write /etc/gallery/app.yaml: no space left on device\n", mountConfig, nil, []string{"be full", "is full"}},
		{"innermost mount", "why does gallery fail?", "ERROR write /etc/gallery/tmp/x: no space left on device\n", func(s *engine.Snapshot) {
			mountConfig(s)
			spec := &s.Deployments[0].Spec.Template.Spec
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "tmp", MountPath: "/etc/gallery/tmp"})
		}, []string{"The volume `tmp` at `/etc/gallery/tmp` may be full"}, nil},
		{"word that is a service by chance", "is gallery failing?", "ERROR failed to write to cache: permission denied\n", func(s *engine.Snapshot) { addService(s, "cache", false) }, []string{"permission denied"}, []string{"`cache` is service"}},
		{"service of an external name", "is gallery failing?", "ERROR dial tcp: lookup cache: no such host\n", func(s *engine.Snapshot) {
			addService(s, "cache", false)
			s.Services[len(s.Services)-1].Spec.Type, s.Services[len(s.Services)-1].Spec.Selector = corev1.ServiceTypeExternalName, nil
		}, []string{"no such host"}, []string{"`cache` is service"}},
		{"slow by its log", "why is gallery slow?", "GET /a took 20ms\nGET /b took 4.2s\nGET /c took 3900ms\n", func(s *engine.Snapshot) {
			s.Pods[0].Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
			s.Usage = map[engine.Log]corev1.ResourceList{{Namespace: "media", Pod: s.Pods[0].Name, Container: "gallery"}: {corev1.ResourceCPU: resource.MustParse("99m")}}
		}, []string{"the longest is 4.2s", "uses 99m of its CPU limit of 100m", "99th percentile"}, nil},
		{"what could not be read", "what is wrong with gallery?", "", nil, []string{"No object shows a fault in deployment `gallery`", "Not looked at:", "The kubelet does not answer", "kubectl logs gallery-1-abcde -c gallery -n media", "1 log was not read"}, []string{allClear}},
		{"health of a good log", "is gallery healthy?", "INFO ready\n", nil, []string{allClear, "Read 1 line"}, []string{"were not read"}},
		{"health without logs", "is gallery healthy?", "", nil, []string{"No object shows a fault in deployment `gallery`", "The log of pod `gallery-1-abcde`"}, []string{allClear}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := readFixture(t, "", "healthy")
			s.Deployments[0].Status.ReadyReplicas = *s.Deployments[0].Spec.Replicas
			s.Pods[0].Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
			if row.change != nil {
				row.change(s)
			}
			b := toolsOn(s)
			b.run = func(_ context.Context, op operation.Operation) (turn.Output, error) {
				if op.Verb == operation.Logs && row.log == "" {
					return turn.Output{}, operation.Refuse(operation.Unavailable, "", "The kubelet does not answer.")
				}
				return turn.Output{Text: row.log, Whole: row.log}, nil
			}
			a := askOnce(t, b, "", row.query)
			checkAnswer(t, row.query, a, row.must, row.not)
		})
	}
}

// The logs read for one answer are limited, and the answer names those it left out.
func TestEvidenceIsBounded(t *testing.T) {
	t.Parallel()
	s := readFixture(t, "", "healthy")
	s.Deployments[0].Status.ReadyReplicas = *s.Deployments[0].Spec.Replicas
	s.Pods[0].Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
	for i := range 24 {
		pod := *s.Pods[0].DeepCopy()
		pod.Name += string(rune('a' + i))
		s.Pods = append(s.Pods, pod)
	}
	b := toolsOn(s)
	b.run = func(context.Context, operation.Operation) (turn.Output, error) {
		text := strings.Repeat("INFO ready\n", 60)
		return turn.Output{Text: text, Whole: text}, nil
	}
	a := askOnce(t, b, "", "what is wrong with gallery?")
	checkAnswer(t, "gallery", a, []string{"25 logs of 25 pods", "Not looked at:", "The older lines of 5 logs"}, []string{allClear})
	reads := 0
	for _, line := range b.lines {
		if strings.HasPrefix(line, "kubectl logs") {
			reads++
		}
	}
	if reads != 45 {
		t.Errorf("%d logs were read; want the last lines of 25 and 20 whole", reads)
	}
}

// A lookup without an answer leads to the policy that blocks DNS for the pod, in any wording.
func TestLookupLeadsToThePolicy(t *testing.T) {
	t.Parallel()
	s := gallery(t)
	addDependency(s, "gallery-db")
	s.NetworkPolicies = append(s.NetworkPolicies, networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "only-db-out"},
		Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: s.Pods[0].Labels}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "gallery-db"}}}}}}}})
	for _, line := range []string{
		"ERROR dial tcp: lookup gallery-db.media.svc.cluster.local on 10.96.0.10:53: read udp 10.244.3.3:51211->10.96.0.10:53: i/o timeout",
		"requests.exceptions.ConnectionError: [Errno -3] Temporary failure in name resolution",
		"Error: getaddrinfo EAI_AGAIN gallery-db",
	} {
		b := logsBy(s, func(string) string { return line + "\n" })
		for _, query := range []string{"media is not working right", "why does gallery not work?"} {
			checkAnswer(t, query, askOnce(t, b, "media", query), []string{"`only-db-out`", "port 53"}, []string{"Its own logs show no fault"})
		}
	}
}

// The log of a running pod that is not ready is read beside the finding of its probe, which gives no cause.
func TestLogOfAPodThatIsNotReady(t *testing.T) {
	t.Parallel()
	s := readFixture(t, "", "a14_probe_port")
	pod := s.Pods[0]
	for _, probe := range []*corev1.Probe{s.Deployments[0].Spec.Template.Spec.Containers[0].ReadinessProbe, s.ReplicaSets[0].Spec.Template.Spec.Containers[0].ReadinessProbe, s.Pods[0].Spec.Containers[0].ReadinessProbe} {
		probe.HTTPGet.Port = intstr.FromInt32(8080)
	}
	s.Events[0].Message = "Readiness probe failed: HTTP probe failed with statuscode: 500"
	b := logsBy(s, func(string) string {
		return "ERROR health: vault unreachable: x509: certificate signed by unknown authority\n"
	})
	checkAnswer(t, "not ready", askOnce(t, b, pod.Namespace, "why is "+s.Deployments[0].Name+" not ready?"), []string{"readiness probe", "certificate signed by unknown authority"}, nil)
}

// A node has no log here: its pods' messages are not presented as the node's fault.
func TestLogsOfPodsOnANode(t *testing.T) {
	t.Parallel()
	checkAnswer(t, "node", askOnce(t, liveTools(t), "", "is worker-2 tired"), []string{"the logs of pods on it"}, []string{"its logs do not"})
}

// TestNumbersThatClimb: a log in which a number reaches the limit beside it is not called healthy.
func TestNumbersThatClimb(t *testing.T) {
	t.Parallel()
	log := ""
	for i := range 9 {
		log += fmt.Sprintf("2026-01-02T10:%02d:00Z INFO pool in use %d of 10\n", i, i+2)
	}
	a := askOnce(t, logsBy(gallery(t), func(string) string { return log }), "", "is gallery healthy?")
	checkAnswer(t, "a pool that fills", a, []string{"Numbers that rise", "From 2 to 10 in 9 lines", "from 2026-01-02 10:00:00 to 2026-01-02 10:08:00", "the 10 beside it stays"}, []string{allClear})
}

// TestLevelOfALineCounts: an info message is no trouble because it has a field called errors.
func TestLevelOfALineCounts(t *testing.T) {
	t.Parallel()
	log := strings.Repeat(`{"level":"info","ts":"2026-01-02T10:00:00Z","msg":"batch done","errors":0,"failed":0,"items":12}`+"\n"+`{"time":"2026-01-02T10:00:00Z","level":"INFO","msg":"flushed","failed":0}`+"\n", 5)
	a := askOnce(t, logsBy(gallery(t), func(string) string { return log }), "", "what is wrong with gallery?")
	checkAnswer(t, "lines for information", a, []string{allClear}, []string{"do not look healthy"})
}
