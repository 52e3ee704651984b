package playbook_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// TestIntentCases: routes and ingresses that are valid but most likely unintended.
func TestIntentCases(t *testing.T) {
	t.Parallel()
	// addService adds a Service with external endpoints, so that no rule judges it.
	addService := func(s *engine.Snapshot, name string) {
		s.Services = append(s.Services, corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "store", Name: name}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.90", Ports: []corev1.ServicePort{{Port: 80}}}})
	}
	match := func(path string) []gatewayapi.Match {
		m := gatewayapi.Match{}
		m.Path.Value = path
		return []gatewayapi.Match{m}
	}
	route := func(path string, services ...string) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			rules := s.Routes[0].Spec.Rules
			own := rules[0]
			rules[0].Matches, own.Matches = match(path), match("/storefront")
			s.Routes[0].Spec.Rules = append(rules, own)
			for _, name := range services {
				addService(s, name)
			}
		}
	}
	ingress := func(path, annotation, value string, services ...string) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			in := &s.Ingresses[0]
			in.Spec.Rules[0].HTTP.Paths[0].Path = path
			in.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number = 80
			paths := in.Spec.Rules[0].HTTP.Paths
			own := paths[0]
			own.Path = "/storefront"
			in.Spec.Rules[0].HTTP.Paths = append(paths, own)
			in.Annotations = map[string]string{annotation: value}
			for _, name := range services {
				addService(s, name)
			}
		}
	}
	checkCases(t, []changeCase{
		{"a route's path of another service", "gateway", "", route("/api/v1/returns", "returns-service"), "there is a service `returns-service`: most likely the wrong service is named. (Confidence: low.)"},
		{"a route's path of its own service", "gateway", "", route("/storefront/returns", "returns-service"), ""},
		{"a route's path of several services", "gateway", "", route("/returns", "returns", "returns-archive"), ""},
		{"a route's path of no service", "gateway", "", route("/api/v1", "returns"), ""},
		{"one program for all paths of a route", "gateway", "", func(s *engine.Snapshot) {
			route("/api/v1/returns", "returns-service")(s)
			s.Routes[0].Spec.Rules = s.Routes[0].Spec.Rules[:1]
		}, ""},
		{"one program for all paths of an ingress", "a16_ingress_port", "", func(s *engine.Snapshot) {
			ingress("/returns", "", "", "returns")(s)
			paths := &s.Ingresses[0].Spec.Rules[0].HTTP.Paths
			*paths = (*paths)[:1]
		}, ""},
		{"a route with a short timeout", "gateway", "", func(s *engine.Snapshot) { s.Routes[0].Spec.Rules[0].Timeouts.Request = "50ms" }, "only 50ms to answer (timeout)"},
		{"a route without a timeout", "gateway", "", func(s *engine.Snapshot) { s.Routes[0].Spec.Rules[0].Timeouts.Request = "0s" }, ""},
		{"an ingress's path of another service", "a16_ingress_port", "", ingress("/returns", "", "", "returns"), "there is a service `returns`: most likely the wrong service is named"},
		{"an ingress with a short timeout", "a16_ingress_port", "", ingress("/", "nginx.ingress.kubernetes.io/proxy-read-timeout", "1"), "only 1 second to answer (timeout)"},
		{"an ingress with a timeout", "a16_ingress_port", "", ingress("/", "nginx.ingress.kubernetes.io/proxy-read-timeout", "30"), ""},
		{"an ingress that calls by TLS", "a16_ingress_port", "", ingress("/", "nginx.ingress.kubernetes.io/backend-protocol", "HTTPS"), "by HTTPS, and its port speaks another protocol (HTTP)"},
		{"an ingress that calls as the port speaks", "a16_ingress_port", "", ingress("/", "nginx.ingress.kubernetes.io/backend-protocol", "HTTP"), ""},
	})
}
