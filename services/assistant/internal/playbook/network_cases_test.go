package playbook_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
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
		}, "it lacks `tls.key`"},
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

// serveTLS makes the ingress of a16 valid, with TLS, and gives it a Secret.
func serveTLS(s *engine.Snapshot, host string, c redact.Certificate) {
	spec := &s.Ingresses[0].Spec
	spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number = 80
	spec.Rules[0].Host = host
	spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}, SecretName: "store-tls"}}
	s.Secrets = append(s.Secrets, tlsSecret("store-tls", c))
}

func tlsSecret(name string, c redact.Certificate) engine.SecretKeys {
	return engine.SecretKeys{Namespace: "store", Name: name, Keys: []string{"tls.crt", "tls.key"}, Certificate: &c}
}

// soundCertificate returns a certificate valid at noon of 2 January 2026, the time of the snapshots.
func soundCertificate(names ...string) redact.Certificate {
	return redact.Certificate{Names: names, NotBefore: time.Date(2025, 12, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
}

func TestCertificateCases(t *testing.T) {
	t.Parallel()
	at := func(host string, c redact.Certificate) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) { serveTLS(s, host, c) }
	}
	until := func(end time.Time) redact.Certificate {
		c := soundCertificate("store.example")
		c.NotAfter = end
		return c
	}
	broken := func(f redact.CertificateFault) redact.Certificate {
		c := soundCertificate("store.example")
		c.Fault = f
		return c
	}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	early := soundCertificate("store.example")
	early.NotBefore = noon.Add(time.Hour)
	cases := []changeCase{
		{"sound", "a16_ingress_port", "", at("store.example", soundCertificate("store.example")), ""},
		{"of the wildcard", "a16_ingress_port", "", at("www.store.example", soundCertificate("*.store.example")), ""},
		{"wildcard for itself", "a16_ingress_port", "", at("*.store.example", soundCertificate("*.store.example")), ""},
		{"in another case", "a16_ingress_port", "", at("store.example", soundCertificate("other.example", "store.example")), ""},
		{"expired", "a16_ingress_port", "", at("store.example", until(noon.Add(-48*time.Hour))), "Its certificate expired on 2025-12-31T12:00:00Z (2 days ago), so clients that check it refuse the connection. (Confidence: high.)"},
		{"expired this moment", "a16_ingress_port", "", at("store.example", until(noon)), "Its certificate expired on 2026-01-02T12:00:00Z"},
		{"a second before", "a16_ingress_port", "", at("store.example", until(noon.Add(time.Second))), ""},
		{"seen at the ingress", "a16_ingress_port", "", at("store.example", until(noon)), "A consequence: ingress `front`. Its certificate is that of the Secret `store-tls`."},
		{"not yet valid", "a16_ingress_port", "", at("store.example", early), "not valid before 2026-01-02T13:00:00Z, and it is 2026-01-02T12:00:00Z now"},
		{"another name", "a16_ingress_port", "", at("store.example", soundCertificate("shop.example")), "The certificate in the Secret `store-tls` does not cover `store.example` of the ingress"},
		{"two labels below a wildcard", "a16_ingress_port", "", at("a.b.store.example", soundCertificate("*.store.example")), "The wildcard `*.store.example` matches exactly one label"},
		{"the wildcard's parent", "a16_ingress_port", "", at("store.example", soundCertificate("*.store.example")), "The wildcard `*.store.example` matches exactly one label"},
		{"no name at all", "a16_ingress_port", "", at("store.example", soundCertificate()), "clients do not look at its common name"},
		{"key of another", "a16_ingress_port", "", at("store.example", broken(redact.KeyOfAnother)), "does not belong to its `tls.crt`"},
		{"swapped", "a16_ingress_port", "", at("store.example", redact.Certificate{Fault: redact.CertificateIsKey}), "Certificate and key may be swapped"},
		{"no PEM", "a16_ingress_port", "", at("store.example", redact.Certificate{Fault: redact.CertificateNotPEM}), "it holds no PEM block `CERTIFICATE`"},
		{"unreadable", "a16_ingress_port", "", at("store.example", redact.Certificate{Fault: redact.CertificateUnreadable}), "(Confidence: medium.)"},
		{"another Secret fits", "a16_ingress_port", "", func(s *engine.Snapshot) {
			serveTLS(s, "store.example", soundCertificate("shop.example"))
			s.Secrets = append(s.Secrets, tlsSecret("front-tls", soundCertificate("store.example")))
		}, `{"spec":{"tls":[{"hosts":["store.example"],"secretName":"front-tls"}]}}`},
		{"the one that fits is expired", "a16_ingress_port", "", func(s *engine.Snapshot) {
			serveTLS(s, "store.example", soundCertificate("shop.example"))
			s.Secrets = append(s.Secrets, tlsSecret("front-tls", until(noon)))
		}, "or name another Secret that has one.\n"},
		{"hosts from the rules", "a16_ingress_port", "", func(s *engine.Snapshot) {
			serveTLS(s, "store.example", soundCertificate("shop.example"))
			s.Ingresses[0].Spec.TLS[0].Hosts = nil
		}, "does not cover `store.example`"},
		{"of an issuer", "a16_ingress_port", "", func(s *engine.Snapshot) {
			serveTLS(s, "store.example", until(noon))
			s.Ingresses[0].Annotations = map[string]string{"cert-manager.io/issuer": "letters"}
		}, "their issuer has not renewed the Secret"},
		{"nothing uses it", "a16_ingress_port", "", func(s *engine.Snapshot) {
			serveTLS(s, "store.example", soundCertificate("store.example"))
			s.Secrets = append(s.Secrets, tlsSecret("old-tls", until(noon)))
		}, ""},
		{"a pod mounts it", "a16_ingress_port", "", func(s *engine.Snapshot) {
			serveTLS(s, "store.example", soundCertificate("store.example"))
			s.Secrets = append(s.Secrets, tlsSecret("own-tls", until(noon)))
			s.Pods[0].Spec.Volumes = []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "own-tls"}}}}
		}, "refuse the connection. (Confidence: medium.)"},
		{"Secrets unread", "a16_ingress_port", "", func(s *engine.Snapshot) {
			serveTLS(s, "store.example", until(noon))
			s.Unread["secrets"] = true
		}, ""},
	}
	checkCases(t, cases)
	for _, tc := range cases { // no remedy for a certificate is to delete or write a Secret
		s := readSnapshot(t, tc.file)
		tc.change(s)
		if text := engine.Answer(s, playbook.Diagnose(s, "")); strings.Contains(text, "kubectl delete") || strings.Contains(text, "patch secret") {
			t.Errorf("%s: proposes to write a Secret:\n%s", tc.name, text)
		}
	}
	s := readSnapshot(t, "a16_ingress_port")
	serveTLS(s, "store.example", soundCertificate("store.example"))
	s.Secrets = append(s.Secrets, tlsSecret("old-tls", until(noon)))
	if meant := playbook.Meant(s); len(meant) != 1 || meant[0].Object.Name != "old-tls" || !strings.Contains(meant[0].Cause, "expired on") {
		t.Errorf("got %+v; want the Secret old-tls, which nothing uses, told to whoever asks about it", meant)
	}
}

func TestPolicyCases(t *testing.T) {
	t.Parallel()
	policy := func(s *engine.Snapshot) *networkingv1.NetworkPolicySpec { return &s.NetworkPolicies[0].Spec }
	well := func(s *engine.Snapshot) { // the client shows no symptom
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
		}, "it allows only pods with `role=backend` on `TCP 9090`"},
		{"label that chooses the pods", "a17_policy", "", func(s *engine.Snapshot) {
			s.Deployments[0].Spec.Selector.MatchLabels["role"] = "backend"
		}, "or let the policy name a label that they have.\n"},
		{"nothing may leave", "a17_policy", "", func(s *engine.Snapshot) {
			*policy(s) = networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}}
		}, "it allows nothing"},
		{"caller not known", "a17_policy", "", func(s *engine.Snapshot) {
			well(s)
			for i := range s.Pods {
				s.Pods[i].Spec.Containers[0].Env = nil
			}
		}, "no pod in the namespace has it"},
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
		s.Pods = s.Pods[:1] // the future caller
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
