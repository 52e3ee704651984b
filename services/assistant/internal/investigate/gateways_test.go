package investigate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// TestGatewayQuestions asks about routes and gateways as people do: by kind, by name, by host, by place.
func TestGatewayQuestions(t *testing.T) {
	t.Parallel()
	const allClear, detached = "Nothing was found wrong", "The route is not attached"
	const noHost = "No ingress, route or gateway is for the host "
	sound := func(*engine.Snapshot) {}
	narrow := func(s *engine.Snapshot) { s.Gateways[0].Spec.Listeners[1].Hostname = "www.store.example" }
	refused := func(s *engine.Snapshot) {
		s.Gateways[0].Spec.Listeners[0].AllowedRoutes = nil
		s.Namespaces[1].Labels = nil
		s.Routes[0].Status.Parents = nil
		s.Gateways[0].Status.Listeners[0].AttachedRoutes = 0
	}
	absent := func(s *engine.Snapshot) { s.Routes[0].Spec.Rules[0].BackendRefs[0].Name = "checkout" }
	unready := func(s *engine.Snapshot) {
		s.Pods[0].Status.Conditions[0].Status = corev1.ConditionFalse
		s.EndpointSlices[0].Endpoints = nil
	}
	silent := func(s *engine.Snapshot) {
		pending := []metav1.Condition{{Type: "Accepted", Status: "Unknown", Reason: "Pending", Message: "Waiting for controller"}}
		s.GatewayClasses[0].Status.Conditions, s.Gateways[0].Status.Conditions, s.Routes[0].Status.Parents = pending, pending, nil
		s.Gateways[0].Status.Addresses, s.Gateways[0].Status.Listeners = nil, nil
	}
	for _, row := range []struct {
		name, query string
		change      func(*engine.Snapshot)
		must, not   []string
	}{
		{"by the kind", "why is my route not attached?", refused, []string{detached, "`edge=yes`"}, []string{allClear}},
		{"by the kind as kubectl has it", "why does httproute front not work?", refused, []string{detached}, []string{allClear, "There is no"}},
		{"by kind and name", "what is wrong with the route front in store?", refused, []string{detached}, []string{allClear, "There is no"}},
		{"by the plural", "are my routes ok?", refused, []string{detached}, []string{allClear}},
		{"by the host", "why does www.store.example give 404?", refused, []string{detached}, []string{allClear, "There is no"}},
		{"by a host under a wildcard", "www.store.example does not work", func(s *engine.Snapshot) { refused(s); s.Routes[0].Spec.Hostnames = []string{"*.store.example"} }, []string{detached}, []string{"There is no"}},
		{"by the URL", "https://www.store.example/cart is down", refused, []string{detached, "Httproute `front` in namespace `store` is for `www.store.example`"}, []string{"There is no"}},
		{"by the namespace", "what is wrong in store?", refused, []string{detached}, nil},
		{"by everything", "what is wrong?", refused, []string{detached}, nil},
		{"by a service behind it", "why does nobody reach storefront in store?", refused, []string{detached}, []string{allClear}},
		{"by the gateway", "is the gateway ok?", refused, []string{"gateway `public`", "has the class `edge`, the address `203.0.113.9`", "0 attached routes", detached}, []string{allClear}},
		{"by the gateway's name", "what is wrong with gateway public?", refused, []string{detached}, []string{"There is no"}},
		{"service absent", "why 503 on www.store.example?", absent, []string{"The service `checkout` that the route leads to does not exist"}, []string{allClear}},
		{"to the pods behind the service", "why 503 on www.store.example?", unready, []string{"none of its pods is ready"}, []string{allClear}},
		{"no controller", "why is my route not attached?", silent, []string{"No controller has accepted the gateway class `edge`", "`example.com/edge-controller`"}, []string{allClear}},
		{"no controller, at the gateway", "is the gateway ok?", silent, []string{"No controller has accepted the gateway class `edge`"}, []string{allClear}},
		{"no controller, at the class", "what is wrong with gatewayclass edge?", silent, []string{"No controller has accepted the gateway class `edge`"}, []string{allClear, "There is no"}},
		{"sound, by the kind", "is my route attached?", sound, []string{"`www.store.example`, at gateway `public` in namespace `infra` (accepted)"}, []string{detached}},
		{"not come to it", "is my route attached?", func(s *engine.Snapshot) { s.Routes[0].Status.Parents[0].Conditions[0].Status = "Unknown" }, []string{"at gateway `public` in namespace `infra` (not accepted yet)"}, []string{"()"}},
		{"refused by somebody else", "is my route attached?", func(s *engine.Snapshot) {
			said := s.Routes[0].Status.Parents[0]
			said.ControllerName, said.Conditions = "example.com/other", []metav1.Condition{{Type: "Accepted", Status: "False", Reason: "X"}}
			s.Routes[0].Status.Parents = append(s.Routes[0].Status.Parents, said)
		}, []string{"`infra` (accepted)"}, []string{detached}},
		{"sound, by the gateway", "is the gateway ok?", sound, []string{"1 attached route"}, []string{detached, "does not work"}},
		{"sound, by the host", "is www.store.example ok?", sound, nil, []string{detached, "does not exist"}},
		{"host that nothing serves", "why does wwww.store.example not work?", narrow, []string{noHost + "`wwww.store.example`. The hosts that are served are `www.store.example`."}, []string{allClear, "404"}},
		{"URL of somebody else", "https://api.pay.example/cart times out", sound, nil, []string{noHost}},
		{"host of somebody else", "can storefront reach s3.amazonaws.com?", sound, nil, []string{noHost}},
		{"host of a pod", "why does postgres-0.postgres.store.svc.cluster.local not work?", sound, nil, []string{noHost}},
		{"URL of a service that is absent", "http://cart.store.svc:80 times out", sound, nil, []string{noHost}},
		{"host outside that looks like that of a service", "http://storefront.store.svc.example.com times out", sound, nil, []string{"Service `storefront` in namespace `store` has"}},
		{"two labels under the wildcard of an ingress", "why does a.b.shop.example not work?", func(s *engine.Snapshot) {
			s.Ingresses = []netv1.Ingress{{ObjectMeta: metav1.ObjectMeta{Namespace: "store", Name: "all"}, Spec: netv1.IngressSpec{Rules: []netv1.IngressRule{{Host: "*.shop.example"}}}}}
		}, []string{noHost + "`a.b.shop.example`"}, nil},
		{"the longest wildcard", "why does a.shop.store.example not work?", func(s *engine.Snapshot) {
			refused(s)
			s.Routes[0].Spec.Hostnames = []string{"*.shop.store.example"}
			wide := s.Routes[0]
			wide.Name, wide.Spec.Hostnames = "wide", []string{"*.store.example"}
			s.Routes = append(s.Routes, wide)
		}, []string{detached, "`front` in namespace `store` is for"}, []string{"`wide` in namespace `store` is for", "Not understood"}},
		{"file", "what is wrong with values.yaml?", sound, nil, []string{noHost}},
		{"route for every host", "why does wwww.store.example not work?", func(s *engine.Snapshot) { narrow(s); s.Routes[0].Spec.Hostnames = nil }, nil, []string{noHost}},
		{"ingress for every host", "why does wwww.store.example not work?", func(s *engine.Snapshot) {
			narrow(s)
			s.Ingresses = []netv1.Ingress{{ObjectMeta: metav1.ObjectMeta{Namespace: "store", Name: "all"}, Spec: netv1.IngressSpec{Rules: []netv1.IngressRule{{}}}}}
		}, nil, []string{noHost}},
		{"ingress with a default backend", "why does wwww.store.example not work?", func(s *engine.Snapshot) {
			narrow(s)
			s.Ingresses = []netv1.Ingress{{ObjectMeta: metav1.ObjectMeta{Namespace: "store", Name: "all"}, Spec: netv1.IngressSpec{DefaultBackend: &netv1.IngressBackend{}}}}
		}, nil, []string{noHost}},
		{"host in a namespace", "why does wwww.store.example not work in bank?", narrow, nil, []string{noHost}},
		{"host with routes unread", "why does wwww.store.example not work?", func(s *engine.Snapshot) { narrow(s); s.Unread["httproutes"] = true }, nil, []string{noHost}},
		{"service by its host", "http://storefront.store:80 times out", unready, []string{"Service `storefront`", "none of its pods is ready"}, []string{allClear, "There is no"}},
		{"sound, by everything", "what is wrong?", sound, []string{"No object shows a fault", "Not looked at:"}, []string{allClear}},
		{"counted", "how many routes are there?", sound, []string{"1"}, []string{"not something"}},
		{"from outside", "what is exposed to the internet?", sound, []string{"gateway `public`", "203.0.113.9"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := readFixture(t, "", "gateway")
			row.change(s)
			checkAnswer(t, row.query, askOnce(t, toolsOn(s), "", row.query), row.must, row.not)
		})
	}
}

// TestGatewayNames: the name of a workload that is called like a kind of the Gateway API means the workload.
func TestGatewayNames(t *testing.T) {
	t.Parallel()
	for query, name := range map[string]string{"why does gateway in shop crash?": "gateway", "what is wrong with gateway?": "gateway", "what is wrong with route?": "route", "502 bad gateway from storefront in store": "storefront"} {
		s := readFixture(t, "", "gateway")
		for i := range s.Deployments {
			s.Deployments[i].Name = name
			if name != "storefront" {
				s.Deployments[i].Namespace = "shop"
			}
		}
		s.Namespaces = append(s.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		s.Gateways[0].Spec.Listeners = append(s.Gateways[0].Spec.Listeners, gatewayapi.Listener{Name: "third"})
		checkAnswer(t, query, askOnce(t, toolsOn(s), "", query), []string{"Deployment `" + name + "`"}, []string{"Gateway `public` has"})
	}
}

// TestGatewayLists: the kinds are listed as the server prints them.
func TestGatewayLists(t *testing.T) {
	t.Parallel()
	for query, line := range map[string]string{
		"list the routes": "kubectl get httproute -A", "show all gateways": "kubectl get gateway -A", "get httproutes in store": "kubectl get httproute -n store", "list gatewayclasses": "kubectl get gatewayclass",
		"kubectl get httproutes -n store": "kubectl get httproutes -n store", "kubectl describe gateway public -n infra": "kubectl describe gateway/public -n infra",
	} {
		b := toolsOn(readFixture(t, "", "gateway"))
		askOnce(t, b, "", query)
		if last := b.lines[len(b.lines)-1]; last != line {
			t.Errorf("%q runs %q; want %q", query, last, line)
		}
	}
}
