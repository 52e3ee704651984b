package playbook_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// withoutStatus removes a route's status, as if no controller had seen it.
func withoutStatus(s *engine.Snapshot) { s.Routes[0].Status.Parents = nil }

// refuseRoute makes the controller reject the route of the fixture.
func refuseRoute(s *engine.Snapshot, condition, reason, message string) {
	for i := range s.Routes[0].Status.Parents[0].Conditions {
		if c := &s.Routes[0].Status.Parents[0].Conditions[i]; c.Type == condition {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, message
		}
	}
}

// addRefusal adds the rejection of a controller that is unrelated to the fixture's gateway, before the report of the
// responsible one.
func addRefusal(s *engine.Snapshot) {
	said := s.Routes[0].Status.Parents[0]
	said.ControllerName, said.Conditions = "example.com/other-controller", []metav1.Condition{condition("Accepted", "False", "UnsupportedValue", "the other's words")}
	s.Routes[0].Status.Parents = append([]gatewayapi.ParentStatus{said}, s.Routes[0].Status.Parents...)
}

// refuseGateway replaces the conditions of the gateway of the fixture.
func refuseGateway(s *engine.Snapshot, conditions ...metav1.Condition) {
	s.Gateways[0].Status.Conditions = conditions
}

func condition(kind, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
}

// TestRouteParentCases: why a route is attached to no listener.
func TestRouteParentCases(t *testing.T) {
	t.Parallel()
	parent := func(s *engine.Snapshot) *gatewayapi.ParentRef { return &s.Routes[0].Spec.ParentRefs[0] }
	checkCases(t, []changeCase{
		{"healthy", "gateway", "", nil, ""},
		{"no parent", "gateway", "", func(s *engine.Snapshot) { s.Routes[0].Spec.ParentRefs = nil }, "names no gateway"},
		{"gateway absent", "gateway", "", func(s *engine.Snapshot) { parent(s).Name = "edge-gateway"; withoutStatus(s) }, "The gateway `edge-gateway` that the route is to be attached to does not exist in namespace `infra`"},
		{"gateway misspelt", "gateway", "", func(s *engine.Snapshot) { parent(s).Name = "publik"; withoutStatus(s) }, `{"spec":{"parentRefs":[{"name":"public","namespace":"infra"}]}}`},
		{"gateway of another namespace", "gateway", "", func(s *engine.Snapshot) { parent(s).Namespace = nil; withoutStatus(s) }, "Namespace `infra` has a gateway of that name"},
		{"gateways unread", "gateway", "", func(s *engine.Snapshot) { s.Gateways, s.Unread["gateways"] = nil, true }, ""},
		{"gateways not served", "gateway", "", func(s *engine.Snapshot) {
			s.Gateways, s.GatewayKinds = nil, map[string]bool{"httproutes": true}
		}, ""},
		{"section absent", "gateway", "", func(s *engine.Snapshot) { parent(s).SectionName = new("web"); withoutStatus(s) }, "has no listener with the name `web`; it has `http` (port 80), `https` (port 443)"},
		{"no listeners", "gateway", "", func(s *engine.Snapshot) {
			s.Gateways[0].Spec.Listeners, s.Gateways[0].Status.Listeners = nil, nil
			withoutStatus(s)
		}, "The route is not attached: gateway `public` has no listeners."},
		{"accepted before the last change", "gateway", "", func(s *engine.Snapshot) {
			parent(s).SectionName = new("web")
			s.Routes[0].Status.Parents[0].ParentRef.SectionName, s.Routes[0].Generation = new("web"), 2
		}, "(Confidence: medium.)"},
		{"hostile name of a gateway that is unread", "gateway", "", func(s *engine.Snapshot) {
			parent(s).Name = "x`; rm -rf /"
			s.Routes[0].Status.Parents[0].ParentRef.Name = parent(s).Name
			refuseRoute(s, "Accepted", "UnsupportedValue", "")
			s.Gateways, s.Unread["gateways"] = nil, true
		}, "Compare the route's `spec` with the listeners of gateway `x'; rm -rf /`.\n"},
		{"port absent", "gateway", "", func(s *engine.Snapshot) { parent(s).Port = new(int32(8443)); withoutStatus(s) }, "has no listener on port 8443"},
		{"namespace not the gateway's", "gateway", "", func(s *engine.Snapshot) {
			s.Gateways[0].Spec.Listeners = s.Gateways[0].Spec.Listeners[:1]
			s.Gateways[0].Spec.Listeners[0].AllowedRoutes = nil
			withoutStatus(s)
		}, "listener `http` accepts routes only from its namespace `infra`, and the route is in namespace `store`"},
		{"namespace not selected", "gateway", "", func(s *engine.Snapshot) {
			parent(s).SectionName = new("https")
			s.Namespaces[1].Labels = map[string]string{"edge": "no"}
			withoutStatus(s)
		}, "accepts routes only from namespaces labelled `edge=yes`, and namespace `store` lacks that label"},
		{"namespace with a selector that is not valid", "gateway", "", func(s *engine.Snapshot) {
			parent(s).SectionName = new("https")
			s.Gateways[0].Spec.Listeners[1].AllowedRoutes.Namespaces.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "edge", Operator: "Is"}}
			withoutStatus(s)
		}, "No controller has processed the route"},
		{"namespaces unread", "gateway", "", func(s *engine.Snapshot) {
			parent(s).SectionName = new("https")
			s.Namespaces, s.Unread["namespaces"] = nil, true
			s.Routes[0].Status.Parents[0].ParentRef.SectionName = new("https")
		}, ""},
		{"kind not taken", "gateway", "", func(s *engine.Snapshot) {
			parent(s).SectionName = new("http")
			s.Gateways[0].Spec.Listeners[0].AllowedRoutes.Kinds = []gatewayapi.RouteKind{{Kind: "GRPCRoute"}}
			withoutStatus(s)
		}, "listener `http` takes no HTTPRoute"},
		{"protocol carries no HTTP", "gateway", "", func(s *engine.Snapshot) {
			parent(s).SectionName = new("http")
			s.Gateways[0].Spec.Listeners[0].Protocol = "TCP"
			withoutStatus(s)
		}, "its `protocol` is `TCP`"},
		{"host of no listener", "gateway", "", func(s *engine.Snapshot) {
			parent(s).SectionName = new("https")
			s.Routes[0].Spec.Hostnames = []string{"www.shop.example"}
			withoutStatus(s)
		}, "listener `https` serves `*.store.example`, and the route is for `www.shop.example`"},
		{"one host of two served", "gateway", "", func(s *engine.Snapshot) {
			parent(s).SectionName = new("https")
			s.Routes[0].Status.Parents[0].ParentRef.SectionName = new("https")
			s.Routes[0].Spec.Hostnames = []string{"www.store.example", "www.shop.example"}
		}, "serves `www.shop.example`, so requests for it get an error (404)"},
		{"wildcard host", "gateway", "", func(s *engine.Snapshot) { s.Routes[0].Spec.Hostnames = []string{"*.store.example"} }, ""},
		{"no host of its own", "gateway", "", func(s *engine.Snapshot) { s.Routes[0].Spec.Hostnames = nil }, ""},
		{"parent of a mesh", "gateway", "", func(s *engine.Snapshot) {
			s.Routes[0].Spec.ParentRefs = []gatewayapi.ParentRef{{Group: new(""), Kind: new("Service"), Name: "storefront"}}
		}, ""},
		{"accepted all the same", "gateway", "", func(s *engine.Snapshot) { // a controller may know more than these rules
			s.Gateways[0].Spec.Listeners[0].AllowedRoutes, s.Namespaces[1].Labels = nil, nil
		}, ""},
		{"deleted", "gateway", "", func(s *engine.Snapshot) {
			parent(s).Name, s.Routes[0].DeletionTimestamp = "gone", &metav1.Time{Time: s.Taken.Add(-time.Second)}
		}, ""},
	})
}

// TestRouteStatusCases: the reports of controllers on a route, and the absence of any.
func TestRouteStatusCases(t *testing.T) {
	t.Parallel()
	checks := []changeCase{
		{"no controller", "gateway", "", withoutStatus, "No controller has processed the route"},
		{"no controller at this gateway", "gateway", "", func(s *engine.Snapshot) { s.Routes[0].Status.Parents[0].ParentRef.Name = "other" }, "says nothing of this gateway"},
		{"not come to it", "gateway", "", func(s *engine.Snapshot) {
			s.Routes[0].Status.Parents[0].Conditions = []metav1.Condition{condition("Accepted", "Unknown", "Pending", "Waiting for controller")}
		}, "`Waiting for controller`"},
		{"status of an earlier generation", "gateway", "", func(s *engine.Snapshot) {
			refuseRoute(s, "Accepted", "NoMatchingParent", "")
			s.Routes[0].Generation = 2
		}, "That is about generation 1 of the object, and it is at 2 now"},
		{"a controller that does not serve the gateway refuses", "gateway", "", func(s *engine.Snapshot) { addRefusal(s) }, ""},
		{"another controller accepts", "gateway", "", func(s *engine.Snapshot) {
			addRefusal(s)
			parents := s.Routes[0].Status.Parents
			parents[0].ControllerName, parents[1].ControllerName = parents[1].ControllerName, parents[0].ControllerName
		}, "The controller `example.com/edge-controller` does not accept the route at gateway `public`: `UnsupportedValue`, that is, it has a value that the controller does not support. (Confidence: high.)"},
		{"controllers contradict each other, and the class is unread", "gateway", "", func(s *engine.Snapshot) {
			addRefusal(s)
			s.GatewayClasses, s.Unread["gatewayclasses"] = nil, true
		}, "it has a value that the controller does not support. (Confidence: medium.)"},
		{"rules left out by a controller that does not serve the gateway", "gateway", "", func(s *engine.Snapshot) {
			addRefusal(s)
			s.Routes[0].Status.Parents[0].Conditions = []metav1.Condition{condition("PartiallyInvalid", "True", "UnsupportedValue", "Dropped rule 0")}
		}, ""},
		{"some rules left out", "gateway", "", func(s *engine.Snapshot) {
			s.Routes[0].Status.Parents[0].Conditions = append(s.Routes[0].Status.Parents[0].Conditions, condition("PartiallyInvalid", "True", "UnsupportedValue", "Dropped rule 0"))
		}, "leaves out some rules of the route"},
		{"refused namespace, with what the controller says", "gateway", "", func(s *engine.Snapshot) {
			s.Gateways[0].Spec.Listeners = s.Gateways[0].Spec.Listeners[:1]
			s.Gateways[0].Spec.Listeners[0].AllowedRoutes = nil
			refuseRoute(s, "Accepted", "NotAllowedByListeners", "no listener allows it")
		}, "`no listener allows it`"},
	}
	for _, reason := range []string{"NotAllowedByListeners", "NoMatchingListenerHostname", "NoMatchingParent", "UnsupportedValue"} {
		checks = append(checks, changeCase{"accepted: " + reason, "gateway", "", func(s *engine.Snapshot) { refuseRoute(s, "Accepted", reason, "the controller's words") },
			"The controller `example.com/edge-controller` does not accept the route at gateway `public`: `" + reason + "`, that is,"})
	}
	for _, reason := range []string{"BackendNotFound", "RefNotPermitted", "InvalidKind", "UnsupportedProtocol"} {
		checks = append(checks, changeCase{"resolved: " + reason, "gateway", "", func(s *engine.Snapshot) { refuseRoute(s, "ResolvedRefs", reason, "the controller's words") },
			"cannot resolve what the route refers to: `" + reason + "`, that is,"})
	}
	checkCases(t, checks)
}

// TestRouteBackendCases: the backends of a route.
func TestRouteBackendCases(t *testing.T) {
	t.Parallel()
	backend := func(s *engine.Snapshot) *gatewayapi.BackendRef { return &s.Routes[0].Spec.Rules[0].BackendRefs[0] }
	bank := func(s *engine.Snapshot) { // the service of the route is in another namespace
		backend(s).Namespace = new("bank")
		s.Services = append(s.Services, *s.Services[0].DeepCopy())
		s.Services[1].Namespace, s.Services[1].Spec.Selector = "bank", nil
	}
	grant := func(s *engine.Snapshot, from, to string) {
		g := gatewayapi.ReferenceGrant{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "store"}}
		g.Spec.From = append(g.Spec.From, struct {
			Group     string `json:"group"`
			Kind      string `json:"kind"`
			Namespace string `json:"namespace"`
		}{gatewayapi.Group, "HTTPRoute", from})
		g.Spec.To = append(g.Spec.To, struct {
			Group string  `json:"group"`
			Kind  string  `json:"kind"`
			Name  *string `json:"name"`
		}{"", "Service", &to})
		s.ReferenceGrants = append(s.ReferenceGrants, g)
	}
	checkCases(t, []changeCase{
		{"service absent", "gateway", "", func(s *engine.Snapshot) { backend(s).Name = "checkout" }, "The service `checkout` that the route leads to does not exist in namespace `store`"},
		{"service misspelt", "gateway", "", func(s *engine.Snapshot) { backend(s).Name = "storefrnt" }, `[{"op":"replace","path":"/spec/rules/0/backendRefs/0/name","value":"storefront"}]`},
		{"service absent, as the controller says", "gateway", "", func(s *engine.Snapshot) {
			backend(s).Name = "checkout"
			refuseRoute(s, "ResolvedRefs", "BackendNotFound", "service store/checkout not found")
		}, "`service store/checkout not found`"},
		{"services unread", "gateway", "", func(s *engine.Snapshot) { backend(s).Name, s.Unread["services"] = "checkout", true }, ""},
		{"port absent", "gateway", "", func(s *engine.Snapshot) { backend(s).Port = new(int32(8080)) }, "leads to port `8080` of service `storefront`, and the service has only `80 (http)`"},
		{"port absent, with a fix", "gateway", "", func(s *engine.Snapshot) { backend(s).Port = new(int32(8080)) }, `[{"op":"replace","path":"/spec/rules/0/backendRefs/0/port","value":80}]`},
		{"no port named", "gateway", "", func(s *engine.Snapshot) { backend(s).Port = nil }, "names no port"},
		{"another namespace without a grant", "gateway", "", bank, "ReferenceGrant in that namespace with `spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: store}], to: [{group: \"\", kind: Service, name: storefront}]}`"},
		{"another namespace with a grant", "gateway", "", func(s *engine.Snapshot) { bank(s); grant(s, "store", "storefront") }, ""},
		{"grant for another namespace", "gateway", "", func(s *engine.Snapshot) { bank(s); grant(s, "shop", "storefront") }, "no ReferenceGrant there allows that"},
		{"grant for another service", "gateway", "", func(s *engine.Snapshot) { bank(s); grant(s, "store", "ledger") }, "no ReferenceGrant there allows that"},
		{"grants unread", "gateway", "", func(s *engine.Snapshot) { bank(s); s.Unread["referencegrants"] = true }, ""},
		{"weight 0 beside another", "gateway", "", func(s *engine.Snapshot) {
			refs := &s.Routes[0].Spec.Rules[0].BackendRefs
			*refs = append(*refs, gatewayapi.BackendRef{Reference: gatewayapi.Reference{Name: "storefront"}, Port: new(int32(80)), Weight: new(int32(0))})
		}, ""},
		{"all weights 0", "gateway", "", func(s *engine.Snapshot) { backend(s).Weight = new(int32(0)) }, "have the weight 0"},
		{"no backend", "gateway", "", func(s *engine.Snapshot) { s.Routes[0].Spec.Rules[0].BackendRefs = nil }, "Rule 1 of the route has no backend"},
		{"no backend but a redirect", "gateway", "", func(s *engine.Snapshot) {
			rule := &s.Routes[0].Spec.Rules[0]
			rule.BackendRefs = nil
			rule.Filters = append(rule.Filters, struct {
				Type string `json:"type"`
			}{"RequestRedirect"})
		}, ""},
		{"backend of another kind", "gateway", "", func(s *engine.Snapshot) {
			backend(s).Group, backend(s).Kind, backend(s).Name = new("example.com"), new("Bucket"), "assets"
		}, ""},
		{"backends not ready", "gateway", "", func(s *engine.Snapshot) {
			s.Pods[0].Status.Conditions[0].Status = corev1.ConditionFalse
			s.EndpointSlices[0].Endpoints = nil
		}, "A consequence: httproute `front`. It leads to the service `storefront`"},
	})
}

// TestGatewayCases: gateways, their classes and listeners.
func TestGatewayCases(t *testing.T) {
	t.Parallel()
	listener := func(s *engine.Snapshot) *gatewayapi.ListenerStatus { return &s.Gateways[0].Status.Listeners[0] }
	pending := condition("Accepted", "Unknown", "Pending", "Waiting for controller")
	checkCases(t, []changeCase{
		{"class absent", "gateway", "", func(s *engine.Snapshot) { s.Gateways[0].Spec.GatewayClassName = "edje"; refuseGateway(s, pending) }, `{"spec":{"gatewayClassName":"edge"}}`},
		{"no class at all", "gateway", "", func(s *engine.Snapshot) { s.GatewayClasses = nil; refuseGateway(s) }, "The gateway class `edge` does not exist, so no controller serves the gateway"},
		{"classes unread", "gateway", "", func(s *engine.Snapshot) { s.GatewayClasses, s.Unread["gatewayclasses"] = nil, true }, ""},
		{"class that no controller took", "gateway", "", func(s *engine.Snapshot) {
			s.GatewayClasses[0].Status.Conditions = []metav1.Condition{pending}
			refuseGateway(s, pending)
			withoutStatus(s)
		}, "`example.com/edge-controller` is not installed, does not run, or listens to another name"},
		{"class refused", "gateway", "", func(s *engine.Snapshot) {
			s.GatewayClasses[0].Status.Conditions = []metav1.Condition{condition("Accepted", "False", "InvalidParameters", "no such ConfigMap")}
		}, "does not accept the gateway class `edge`: `InvalidParameters`"},
		{"gateway that no controller took", "gateway", "", func(s *engine.Snapshot) { refuseGateway(s, pending); withoutStatus(s) }, "No controller has processed the gateway"},
		{"no address", "gateway", "", func(s *engine.Snapshot) {
			s.Gateways[0].Status.Addresses = nil
			refuseGateway(s, condition("Accepted", "True", "Accepted", ""), condition("Programmed", "False", "AddressNotAssigned", "waiting for a load balancer"))
		}, "`AddressNotAssigned`, that is, no address has been assigned to it"},
		{"no address and no word of it", "gateway", "", func(s *engine.Snapshot) {
			s.Gateways[0].Status.Addresses = nil
			refuseGateway(s, condition("Accepted", "True", "Accepted", ""))
		}, "The gateway has no address"},
		{"programmed without an address", "gateway", "", func(s *engine.Snapshot) { s.Gateways[0].Status.Addresses = nil }, ""},
		{"not accepted", "gateway", "", func(s *engine.Snapshot) {
			refuseGateway(s, condition("Accepted", "False", "InvalidParameters", "x"), condition("Programmed", "False", "Invalid", "x"))
		}, "`InvalidParameters`, that is, its parameters are not valid"},
		{"listener in conflict", "gateway", "", func(s *engine.Snapshot) {
			listener(s).Conditions = []metav1.Condition{condition("Conflicted", "True", "HostnameConflict", "same as other")}
			refuseGateway(s, condition("Accepted", "False", "ListenersNotValid", ""))
		}, "Listener `http` of the gateway does not work: `HostnameConflict`, that is, another listener has the same port and host"},
		{"listener not programmed", "gateway", "", func(s *engine.Snapshot) {
			listener(s).Conditions = []metav1.Condition{condition("Programmed", "False", "Invalid", "port is taken"), condition("Conflicted", "False", "NoConflicts", "")}
		}, "`port is taken`"},
		{"listener with unknown kinds", "gateway", "", func(s *engine.Snapshot) {
			listener(s).Conditions = []metav1.Condition{condition("ResolvedRefs", "False", "InvalidRouteKinds", "")}
		}, "it allows a kind of route that the controller does not know"},
		{"listener with unknown kinds beside known ones", "gateway", "", func(s *engine.Snapshot) {
			s.Gateways[0].Spec.Listeners[0].AllowedRoutes.Kinds = []gatewayapi.RouteKind{{Kind: "HTTPRoute"}, {Kind: "FTPRoute"}}
			listener(s).Conditions = []metav1.Condition{condition("ResolvedRefs", "False", "InvalidRouteKinds", ""), condition("Programmed", "True", "Programmed", "")}
			listener(s).SupportedKinds = []gatewayapi.RouteKind{{Kind: "HTTPRoute"}}
		}, "serves no routes of the kinds `FTPRoute`, which it allows, and works for others: `InvalidRouteKinds`, that is, it allows a kind of route that the controller does not know. (Confidence: medium.)"},
		{"no route attached", "gateway", "", func(s *engine.Snapshot) { s.Routes = nil; listener(s).AttachedRoutes = 0 }, ""},
		{"stuck after deletion", "gateway", "", func(s *engine.Snapshot) {
			s.Gateways[0].DeletionTimestamp, s.Gateways[0].Finalizers = &metav1.Time{Time: s.Taken.Add(-time.Hour)}, []string{"example.com/edge"}
		}, "stuck terminating"},
	})
}

// TestGatewayCertificateCases: the certificates that listeners name.
func TestGatewayCertificateCases(t *testing.T) {
	t.Parallel()
	ref := func(s *engine.Snapshot) *gatewayapi.Reference {
		return &s.Gateways[0].Spec.Listeners[1].TLS.CertificateRefs[0]
	}
	checkCases(t, []changeCase{
		{"absent", "gateway", "", func(s *engine.Snapshot) { s.Secrets = nil }, "The Secret `store-tls` with the certificate of listener `https` does not exist in namespace `infra`"},
		{"absent, as the controller says", "gateway", "", func(s *engine.Snapshot) {
			s.Secrets = nil
			s.Gateways[0].Status.Listeners[1].Conditions = []metav1.Condition{condition("ResolvedRefs", "False", "InvalidCertificateRef", "secret not found")}
		}, "`secret not found`"},
		{"Secrets unread", "gateway", "", func(s *engine.Snapshot) { s.Secrets, s.Unread["secrets"] = nil, true }, ""},
		{"Secrets of that namespace not read", "gateway", "", func(s *engine.Snapshot) { s.Secrets, s.Within = nil, "store" }, ""},
		{"another namespace without a grant", "gateway", "", func(s *engine.Snapshot) { ref(s).Namespace = new("bank") }, "to: [{group: \"\", kind: Secret, name: store-tls}]"},
		{"of the wrong type", "gateway", "", func(s *engine.Snapshot) { s.Secrets[0].Type = "Opaque" }, "has the type `Opaque` and not `kubernetes.io/tls`"},
		{"without a key", "gateway", "", func(s *engine.Snapshot) { s.Secrets[0].Keys = []string{"tls.crt"} }, "lacks these keys of a certificate: `tls.key`"},
		{"passed through", "gateway", "", func(s *engine.Snapshot) { s.Secrets, s.Gateways[0].Spec.Listeners[1].TLS.Mode = nil, "Passthrough" }, ""},
		{"expired", "gateway", "", func(s *engine.Snapshot) {
			c := soundCertificate("*.store.example")
			c.NotAfter = s.Taken.Add(-time.Hour)
			s.Secrets[0].Certificate = &c
		}, "A consequence: gateway `public`. Its certificate is that of the Secret `store-tls`"},
		{"for another host", "gateway", "", func(s *engine.Snapshot) {
			s.Secrets[0].Certificate = new(soundCertificate("*.shop.example"))
		}, "does not cover `*.store.example` of listener `https`, so clients refuse the connection. (Confidence: medium.)"},
		{"for another host than the one of the listener", "gateway", "", func(s *engine.Snapshot) {
			s.Gateways[0].Spec.Listeners[1].Hostname = "www.store.example"
			s.Secrets[0].Certificate = new(soundCertificate("shop.store.example"))
		}, "does not cover `www.store.example` of listener `https`, so clients refuse the connection. (Confidence: high.)"},
		{"for one host under the wildcard", "gateway", "", func(s *engine.Snapshot) {
			s.Secrets[0].Certificate = new(soundCertificate("www.store.example"))
		}, ""},
		{"expired, passed through", "gateway", "", func(s *engine.Snapshot) {
			c := soundCertificate("*.store.example")
			c.NotAfter, s.Gateways[0].Spec.Listeners[1].TLS.Mode = s.Taken.Add(-time.Hour), "Passthrough"
			s.Secrets[0].Certificate = &c
		}, ""},
		{"sound", "gateway", "", func(s *engine.Snapshot) {
			s.Secrets[0].Certificate = new(soundCertificate("*.store.example"))
		}, ""},
	})
}

// TestListenersApart: a fault of one listener's certificate hides no fault of another.
func TestListenersApart(t *testing.T) {
	t.Parallel()
	s := readSnapshot(t, "gateway")
	s.Secrets = nil
	bad := []metav1.Condition{condition("ResolvedRefs", "False", "InvalidCertificateRef", "no PEM data")}
	s.Gateways[0].Status.Listeners[0].Conditions, s.Gateways[0].Status.Listeners[1].Conditions = bad, bad
	found := playbook.Diagnose(s, "")
	answer := engine.Answer(s, found)
	for _, want := range []string{"The Secret `store-tls` with the certificate of listener `https` does not exist", "Listener `http` of the gateway does not work: `InvalidCertificateRef`"} {
		if !strings.Contains(answer, want) {
			t.Errorf("got %s\nwant %q", answer, want)
		}
	}
	if strings.Contains(answer, "Listener `https` of the gateway does not work") {
		t.Errorf("got %s\nwant listener https explained by its Secret alone", answer)
	}
}

// TestGatewayElsewhere: a question about a namespace covers gateways in others that its routes are attached to.
func TestGatewayElsewhere(t *testing.T) {
	t.Parallel()
	s := readSnapshot(t, "gateway")
	s.Within = "store"
	refuseGateway(s, condition("Accepted", "True", "Accepted", ""), condition("Programmed", "False", "NoResources", "no nodes"))
	for namespace, want := range map[string]int{"store": 1, "infra": 1, "bank": 0} {
		found := playbook.Diagnose(s, namespace)
		if len(found) != want || want == 1 && (found[0].Class != engine.GatewayListener || len(found[0].Consequences) > 0 != (namespace == "store")) {
			t.Errorf("namespace %s: %+v; want %d of class gateway, with the route as a consequence in store", namespace, found, want)
		}
	}
	if answer := engine.Answer(s, playbook.Diagnose(s, "store")); !strings.Contains(answer, "`NoResources`") {
		t.Errorf("the answer does not quote the reason NoResources:\n%s", answer)
	}
}
