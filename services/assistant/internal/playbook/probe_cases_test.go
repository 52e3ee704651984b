package playbook_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

const notConnected = `probe failed: timeout: failed to connect service "10.1.2.3:9100" within 1s: context deadline exceeded`

func TestProbeCases(t *testing.T) {
	t.Parallel()
	// liveness replaces the probe of the container in a13_liveness_path, and the kubelet's message about it.
	liveness := func(p corev1.Probe, said string) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			s.Pods[0].Spec.Containers[0].LivenessProbe = &p
			s.Events[0].Message = said
		}
	}
	readiness := func(p corev1.Probe, said string) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			s.Pods[0].Spec.Containers[0].ReadinessProbe = &p
			s.Events[0].Message = said
		}
	}
	grpc := func(port int32) corev1.Probe {
		return corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: port}}, PeriodSeconds: 10, FailureThreshold: 3}
	}
	http := func(port int) corev1.Probe {
		return corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/health", Port: intstr.FromInt(port)}}, PeriodSeconds: 10, FailureThreshold: 3}
	}
	hasty := grpc(8080)
	hasty.InitialDelaySeconds, hasty.PeriodSeconds, hasty.FailureThreshold = 2, 3, 1
	strict := grpc(8080)
	strict.InitialDelaySeconds, strict.PeriodSeconds, strict.FailureThreshold = 60, 1, 2
	ended := func(code int32, at time.Duration) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			end := s.Pods[0].Status.ContainerStatuses[0].LastTerminationState.Terminated
			end.ExitCode = code
			for i := range s.Events {
				s.Events[i].LastTimestamp = metav1.Time{Time: end.FinishedAt.Add(at)}
			}
		}
	}
	const frame = `net/http: HTTP/1.x transport connection broken: malformed HTTP response "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05"`
	checkCases(t, []changeCase{
		{"gRPC liveness on a port that is not declared", "a13_liveness_path", "", liveness(grpc(9100), "Liveness "+notConnected), "The liveness probe asks port `9100`, and the container declares `8080`."},
		{"gRPC readiness on a port that is not declared", "a14_probe_port", "", readiness(grpc(9100), "Readiness "+notConnected), "The readiness probe asks port `9100`, and the container declares `8080`."},
		{"gRPC readiness on a declared port", "a14_probe_port", "", readiness(grpc(8080), "Readiness "+notConnected), "Nothing answers on port 8080"},
		{"HTTP liveness on a gRPC port", "a13_liveness_path", "", liveness(http(8080), `Liveness probe failed: Get "http://10.1.2.3:8080/health": `+frame), "speaks another protocol than the liveness probe"},
		{"HTTP liveness on a gRPC port is first HTTP/2", "a13_liveness_path", "", liveness(http(8080), `Liveness probe failed: Get "http://10.1.2.3:8080/health": `+frame), "first frame of HTTP/2"},
		{"HTTP liveness beside a gRPC readiness", "a13_liveness_path", "", func(s *engine.Snapshot) {
			liveness(http(8080), `Liveness probe failed: Get "http://10.1.2.3:8080/health": `+frame)(s)
			ready := grpc(8080)
			s.Pods[0].Spec.Containers[0].ReadinessProbe = &ready
		}, "Let the liveness probe ask as the readiness probe does."},
		{"HTTPS readiness on a port without TLS", "a14_probe_port", "", readiness(http(8080), `Readiness probe failed: Get "https://10.1.2.3:8080/health": http: server gave HTTP response to HTTPS client`), "answers without TLS"},
		{"gRPC readiness on an HTTP port", "a14_probe_port", "", readiness(grpc(8080), `Readiness probe failed: error: health rpc failed: rpc error: code = Unavailable desc = connection error: desc = "error reading server preface: http2: frame too large"`), "asks by gRPC, and what answers is not gRPC"},
		{"gRPC without a health service", "a14_probe_port", "", readiness(grpc(8080), `Readiness probe failed: error: this server does not implement the grpc health protocol (grpc.health.v1.Health)`), "does not have the health service"},
		{"killed by its probe, with a code of its own", "a13_liveness_path", "", ended(2, 0), "liveness probe failed"},
		{"killed by its probe some time ago, ended by itself now", "a13_liveness_path", "", ended(2, -10*time.Minute), "exits on its own"},
		{"probe that does not wait for the start", "a13_liveness_path", "", liveness(hasty, `Liveness probe failed: timeout: failed to connect service "10.1.2.3:8080" within 1s: context deadline exceeded`), "(initialDelaySeconds 2 + periodSeconds 3 × failureThreshold 1)"},
		{"probe that does not wait, and the life of the run", "a13_liveness_path", "", liveness(hasty, `Liveness probe failed: timeout: health rpc did not complete within 1s`), "lived 50 seconds"},
		{"probe that allows no pause", "a13_liveness_path", "", liveness(strict, `Liveness probe failed: timeout: health rpc did not complete within 1s`), "is too strict"},
	})
}
