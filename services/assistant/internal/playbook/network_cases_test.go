package playbook_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

func TestIngressCases(t *testing.T) {
	t.Parallel()
	checkCases(t, []changeCase{
		{"service absent", "a16_ingress_port", "", func(s *engine.Snapshot) {
			s.Ingresses[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = "storefrnt"
		}, "The service `storefront` is the nearest"},
		{"port by name", "a16_ingress_port", "", func(s *engine.Snapshot) {
			s.Ingresses[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port = networkingv1.ServiceBackendPort{Name: "https"}
		}, "leads to port `https`"},
		{"port by name that is there", "a16_ingress_port", "", func(s *engine.Snapshot) {
			s.Ingresses[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port = networkingv1.ServiceBackendPort{Name: "http"}
		}, ""},
		{"default backend", "a16_ingress_port", "", func(s *engine.Snapshot) {
			spec := &s.Ingresses[0].Spec
			spec.DefaultBackend, spec.Rules = &spec.Rules[0].HTTP.Paths[0].Backend, nil
		}, `{"spec":{"defaultBackend":{"service":{"name":"storefront","port":{"name":null,"number":80}}}}}`},
		{"services unread", "a16_ingress_port", "", func(s *engine.Snapshot) { s.Unread["services"] = true }, ""},
		{"class absent", "a16_ingress_port", "", func(s *engine.Snapshot) {
			s.Ingresses[0].Spec.Rules, s.Ingresses[0].Status = nil, networkingv1.IngressStatus{}
			s.Ingresses[0].Spec.IngressClassName = new("haproxy")
		}, "The ingress class `haproxy` does not exist"},
		{"no class", "a16_ingress_port", "", func(s *engine.Snapshot) {
			s.Ingresses[0].Spec.Rules, s.Ingresses[0].Status = nil, networkingv1.IngressStatus{}
			s.Ingresses[0].Spec.IngressClassName = nil
		}, "names no class and none is the default"},
		{"class by annotation", "a16_ingress_port", "", func(s *engine.Snapshot) {
			s.Ingresses[0].Spec.Rules, s.Ingresses[0].Status = nil, networkingv1.IngressStatus{}
			s.Ingresses[0].Spec.IngressClassName, s.Ingresses[0].Annotations = nil, map[string]string{"kubernetes.io/ingress.class": "nginx"}
		}, ""},
		{"certificate absent", "a16_ingress_port", "", func(s *engine.Snapshot) {
			s.Ingresses[0].Spec.Rules = nil
			s.Ingresses[0].Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"store.example"}, SecretName: "store-tls"}}
		}, "The Secret `store-tls` with the ingress's certificate does not exist"},
		{"certificate of an issuer", "a16_ingress_port", "", func(s *engine.Snapshot) {
			s.Ingresses[0].Spec.Rules = nil
			s.Ingresses[0].Annotations = map[string]string{"cert-manager.io/cluster-issuer": "letters"}
			s.Ingresses[0].Spec.TLS = []networkingv1.IngressTLS{{SecretName: "store-tls"}}
		}, "The issuer `letters` is to make it"},
		{"certificate without a key", "a16_ingress_port", "", func(s *engine.Snapshot) {
			s.Ingresses[0].Spec.Rules = nil
			s.Ingresses[0].Spec.TLS = []networkingv1.IngressTLS{{SecretName: "store-tls"}}
			s.Secrets = []engine.SecretKeys{{Namespace: "store", Name: "store-tls", Keys: []string{"tls.crt"}}}
		}, "absent are `tls.key`"},
		{"secrets unread", "a16_ingress_port", "", func(s *engine.Snapshot) {
			s.Ingresses[0].Spec.Rules, s.Unread["secrets"] = nil, true
			s.Ingresses[0].Spec.TLS = []networkingv1.IngressTLS{{SecretName: "store-tls"}}
		}, ""},
		{"backends not ready", "a16_ingress_port", "", func(s *engine.Snapshot) {
			s.Ingresses[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number = 80
			s.Pods[0].Status.Conditions[0].Status = corev1.ConditionFalse
			s.EndpointSlices[0].Endpoints = nil
		}, "A consequence: ingress `front`. It leads to the service `storefront`"},
	})
}

func TestPolicyCases(t *testing.T) {
	t.Parallel()
	policy := func(s *engine.Snapshot) *networkingv1.NetworkPolicySpec { return &s.NetworkPolicies[0].Spec }
	well := func(s *engine.Snapshot) { // the client shows nothing
		for i := range s.Pods {
			s.Pods[i].Status.ContainerStatuses[0].Ready = true
			s.Pods[i].Status.Conditions[0].Status = corev1.ConditionTrue
		}
		s.Events = nil
	}
	checkCases(t, []changeCase{
		{"client well", "a17_policy", "", well, "Confidence: medium"},
		{"another port", "a17_policy", "", func(s *engine.Snapshot) {
			policy(s).Ingress[0].From[0].PodSelector.MatchLabels = map[string]string{"role": "backend"}
			policy(s).Ingress[0].Ports[0].Port = new(intstr.FromInt32(9090))
		}, "lets in only pods with `role=backend` on `TCP 9090`"},
		{"label that chooses the pods", "a17_policy", "", func(s *engine.Snapshot) {
			s.Deployments[0].Spec.Selector.MatchLabels["role"] = "backend"
		}, "or let the policy name a label that they have.\n"},
		{"nothing may leave", "a17_policy", "", func(s *engine.Snapshot) {
			*policy(s) = networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}}
		}, "it lets out nothing"},
		{"caller not known", "a17_policy", "", func(s *engine.Snapshot) {
			well(s)
			for i := range s.Pods {
				s.Pods[i].Spec.Containers[0].Env = nil
			}
		}, "no pod of the namespace has it"},
	})
	for name, change := range map[string]func(*engine.Snapshot){
		"label is there": func(s *engine.Snapshot) { policy(s).Ingress[0].From[0].PodSelector.MatchLabels["role"] = "backend" },
		"another policy helps": func(s *engine.Snapshot) {
			p := s.NetworkPolicies[0].DeepCopy()
			p.Name, p.Spec.Ingress = "all", []networkingv1.NetworkPolicyIngressRule{{}}
			s.NetworkPolicies = append(s.NetworkPolicies, *p)
		},
		"address is let in": func(s *engine.Snapshot) {
			policy(s).Ingress[0].From = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/24"}}}
		},
		"port by range": func(s *engine.Snapshot) {
			policy(s).Ingress[0].From = nil
			policy(s).Ingress[0].Ports[0].Port, policy(s).Ingress[0].Ports[0].EndPort = new(intstr.FromInt32(8000)), new(int32(9000))
		},
		"about other pods": func(s *engine.Snapshot) { policy(s).PodSelector.MatchLabels["app"] = "else" },
		"namespaces unknown": func(s *engine.Snapshot) {
			policy(s).Ingress[0].From = []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}}}
		},
		"policies unread": func(s *engine.Snapshot) { s.Unread["networkpolicies"] = true },
		"word, not an address": func(s *engine.Snapshot) {
			s.Pods[1].Spec.Containers[0].Env[0] = corev1.EnvVar{Name: "APP_NAME", Value: "api"}
			policy(s).Ingress[0].From = nil
			policy(s).Ingress = nil
		},
		"endpoints away": func(s *engine.Snapshot) { s.Pods[0].Status.Conditions[0].Status = corev1.ConditionFalse },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := readSnapshot(t, "a17_policy")
			change(s)
			for _, f := range playbook.Diagnose(s, "") {
				if f.Class == engine.PolicyBlocks {
					t.Errorf("found %+v; want f.Class != engine.PolicyBlocks", f)
				}
			}
		})
	}
}

func TestScaledToZeroCases(t *testing.T) {
	t.Parallel()
	off := func(s *engine.Snapshot) {
		s.Services[0].Spec.Selector = s.Deployments[0].Spec.Selector.MatchLabels
		s.Services[0].Name = "app"
		s.Deployments[0].Spec.Replicas = new(int32)
		s.Pods = s.Pods[:1] // the caller-to-be of nobody
		s.NetworkPolicies, s.Events = nil, nil
	}
	checkCases(t, []changeCase{
		{"nobody asks for it", "a17_policy", "", off, "Confidence: low"},
		{"somebody is told to reach it", "a17_policy", "", func(s *engine.Snapshot) {
			off(s)
			s.Pods[0].Spec.Containers[0].Env = []corev1.EnvVar{{Name: "APP_URL", Value: "http://app.crm.svc/v1"}}
		}, "Told to reach it are pod `api-1-abcde`"},
	})
}

func TestNameCases(t *testing.T) {
	t.Parallel()
	egress := func(s *engine.Snapshot) {
		p := networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "crm", Name: "closed"}}
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
		p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}}
		s.NetworkPolicies = append(s.NetworkPolicies, p)
	}
	down := func(s *engine.Snapshot) {
		s.EndpointSlices[0].Endpoints = nil
		dns := slices.IndexFunc(s.Pods, func(p corev1.Pod) bool { return p.Namespace == "kube-system" })
		s.Pods[dns].Status.Conditions[0].Status = corev1.ConditionFalse
		s.Pods[dns].Status.ContainerStatuses[0].Ready = false
	}
	const unanswered = "dial tcp: lookup queue on 10.96.0.10:53: read udp 10.0.0.41:40000->10.96.0.10:53: i/o timeout"
	checkCases(t, []changeCase{
		{"outside the cluster", "wrong_name", "getaddrinfo ENOTFOUND smtp.mail.example", nil, "`smtp.mail.example`, which is outside the cluster"},
		{"service of another namespace", "wrong_name", "UnknownHostException: kube-dns", nil, "elsewhere are reached as `kube-dns.kube-system`"},
		{"short for another namespace", "wrong_name", `could not translate host name "kubedns.kube-system" to address: Name or service not known`, nil, "no service `kubedns` in namespace `kube-system`"},
		{"service is there", "wrong_name", "lookup queue on 10.96.0.10:53: no such host", nil, "crash loop"},
		{"no name told", "wrong_name", "socket.gaierror: [Errno -2] Name or service not known", nil, "crash loop"},
		{"services unread", "wrong_name", noSuchHost, func(s *engine.Snapshot) { s.Unread["services"] = true }, "crash loop"},
		{"policy keeps it away", "wrong_name", unanswered, egress, "keeps deployment `mailer` from the name server (DNS, port 53)"},
		{"name server down", "wrong_name", unanswered, down, "A consequence: deployment `mailer`"},
	})
}
