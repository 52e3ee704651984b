package gateway

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// checkClasses explains GatewayListener: classes that no controller has accepted.
func checkClasses(x *Index) []engine.Finding {
	var found []engine.Finding
	for i := range x.GatewayClasses {
		class := &x.GatewayClasses[i]
		accepted := gatewayapi.FindCondition(class.Status.Conditions, "Accepted")
		if accepted != nil && accepted.Status == metav1.ConditionTrue {
			continue
		}
		f := engine.Finding{Class: engine.GatewayListener, Object: classRef(class.Name), Confidence: engine.High}
		f.Evidence = []string{fmt.Sprintf("Its `spec.controllerName` is %s.", engine.QuoteCode(class.Spec.ControllerName))}
		if accepted == nil {
			f.Evidence = append(f.Evidence, "Its status has no condition `Accepted`.")
		} else {
			f.Evidence = append(f.Evidence, fmt.Sprintf("Its condition %s.", quoteCondition(accepted)))
		}
		f.Cause = fmt.Sprintf("No controller has accepted the gateway class %s, so nothing serves its gateways: %s is not installed, does not run, or listens to another name.", engine.QuoteCode(class.Name), engine.QuoteCode(class.Spec.ControllerName))
		f.Text = "Install or start that controller, or let the gateways name the class of a controller that runs."
		if isBad(accepted) {
			f.Cause = fmt.Sprintf("Its controller %s does not accept the gateway class %s: %s.", engine.QuoteCode(class.Spec.ControllerName), engine.QuoteCode(class.Name), engine.QuoteCode(accepted.Reason))
			f.Text = "Correct what the condition names, most often `spec.parametersRef`."
		}
		for j := range x.Gateways {
			if g := &x.Gateways[j]; g.Spec.GatewayClassName == class.Name {
				f.Namespaces = append(f.Namespaces, g.Namespace)
				f.Namespaces = append(f.Namespaces, x.routeNamespaces()[g]...)
			}
		}
		found = append(found, f)
	}
	return found
}

// checkGateways explains GatewayListener and, for certificates, TLSSecret: gateways that do not serve, or not all of
// their listeners.
func checkGateways(x *Index) []engine.Finding {
	var found []engine.Finding
	for i := range x.Gateways {
		g := &x.Gateways[i]
		if g.DeletionTimestamp != nil {
			continue
		}
		at := len(found)
		found = append(found, x.checkGateway(g)...)
		users := x.routeNamespaces()[g]
		for j := range found[at:] {
			found[at+j].Namespaces = users
		}
	}
	return found
}

func newGatewayFinding(g *gatewayapi.Gateway) engine.Finding {
	return engine.Finding{Class: engine.GatewayListener, Object: engine.GatewayRef(g), Confidence: engine.High}
}

// isServed reports whether a controller has looked at a gateway.
func (x *Index) isServed(g *gatewayapi.Gateway) bool {
	return slices.ContainsFunc(g.Status.Conditions, func(c metav1.Condition) bool { return c.Status != metav1.ConditionUnknown })
}

func (x *Index) checkGateway(g *gatewayapi.Gateway) []engine.Finding {
	found, explained := x.checkCertificates(g)
	f := newGatewayFinding(g)
	f.Evidence = []string{fmt.Sprintf("Its `spec.gatewayClassName` is %s.", engine.QuoteCode(g.Spec.GatewayClassName))}
	programmed := gatewayapi.FindCondition(g.Status.Conditions, "Programmed")
	class := x.classes[g.Spec.GatewayClassName]
	switch {
	case programmed != nil && programmed.Status == metav1.ConditionTrue && isCurrent(programmed, g.Generation):
		// Its controller serves it, whatever else is reported.
	case class == nil && x.knows("gatewayclasses"):
		x.explainNoClass(&f, g)
		return append(found, f)
	case !x.isServed(g):
		f.Evidence = append(f.Evidence, unservedText(g))
		f.Because = []operation.Ref{classRef(g.Spec.GatewayClassName)}
		f.Cause = fmt.Sprintf("No controller has processed the gateway: none has written its status. The controller %s may not be running, or has not reached it yet.", x.controllerOf(g))
		f.Text = "Look whether that controller runs, and what its log says of the gateway."
		return append(found, f)
	}
	faults := x.gatewayFaults(g, explained)
	return slices.Concat(found, faults)
}

func unservedText(g *gatewayapi.Gateway) string {
	if c := gatewayapi.FindCondition(g.Status.Conditions, "Accepted"); c != nil {
		return fmt.Sprintf("Its condition %s.", quoteCondition(c))
	}
	return "Its `status.conditions` is empty."
}

func (x *Index) explainNoClass(f *engine.Finding, g *gatewayapi.Gateway) {
	var have []string
	for i := range x.GatewayClasses {
		have = append(have, x.GatewayClasses[i].Name)
	}
	slices.Sort(have)
	f.Cause = fmt.Sprintf("The gateway class %s does not exist, so no controller serves the gateway.", engine.QuoteCode(g.Spec.GatewayClassName))
	f.Text = "Choose a class for the gateway; if there is none, install a controller of the Gateway API."
	if len(have) == 0 {
		f.Evidence = append(f.Evidence, "The cluster has no gateway class.")
		return
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("The gateway classes that exist are %s.", engine.QuoteCodes(have)))
	to, ok := engine.NearestName(g.Spec.GatewayClassName, have)
	if len(have) == 1 {
		to, ok = have[0], true
	}
	if !ok {
		return
	}
	if f.Fix = engine.NewPatch(f.Object, engine.Members{"spec": engine.Members{"gatewayClassName": to}}); f.Fix != nil {
		f.Text = fmt.Sprintf("Give the gateway the class %s, if it is the one that is meant.", engine.QuoteCode(to))
	}
}

// gatewayFaults returns the faults that the controller reports for a gateway and its listeners. explained are the
// listeners with a finding about their certificates.
func (x *Index) gatewayFaults(g *gatewayapi.Gateway, explained map[string]bool) []engine.Finding {
	var found []engine.Finding
	listeners := listenerFaults(g)
	for _, kind := range []string{"Accepted", "Programmed"} {
		c := gatewayapi.FindCondition(g.Status.Conditions, kind)
		if !isBad(c) || len(listeners) > 0 && (c.Reason == "ListenersNotValid" || c.Reason == "Invalid") {
			continue // its listeners are more specific
		}
		f := newGatewayFinding(g)
		f.Evidence = []string{fmt.Sprintf("Its condition %s.", quoteCondition(c))}
		f.Cause = fmt.Sprintf("The controller %s does not serve the gateway: %s.", x.controllerOf(g), gatewayReason(c.Reason))
		f.Text = "Correct what the condition names; the log of the controller may tell more."
		if c.Reason == "AddressNotAssigned" || c.Reason == "AddressNotUsable" {
			f.Text = "Look for the Service of type LoadBalancer that the controller makes for the gateway: without a load balancer in the cluster it gets no address."
		}
		addStale(&f, c, g.Generation)
		found = append(found, f)
		break // a gateway that is not accepted is not programmed either
	}
	if programmed := gatewayapi.FindCondition(g.Status.Conditions, "Programmed"); len(found) == 0 && len(listeners) == 0 && len(g.Status.Addresses) == 0 && (programmed == nil || programmed.Status == metav1.ConditionUnknown) {
		f := newGatewayFinding(g)
		f.Confidence = engine.Medium
		f.Cause = "The gateway has no address, so clients cannot reach it."
		f.Evidence = []string{"Its `status.addresses` is empty, and it has no condition `Programmed` that is true."}
		f.Text = "Look what the log of its controller says, and at the Service that it makes for the gateway."
		found = append(found, f)
	}
	for _, f := range listeners {
		if explained[f.listener] && (f.reason == "InvalidCertificateRef" || f.reason == "RefNotPermitted") {
			continue
		}
		found = append(found, f.Finding)
	}
	return found
}

func gatewayReason(reason string) string {
	text := map[string]string{
		"AddressNotAssigned": "no address has been assigned to it", "AddressNotUsable": "the address that it requests cannot be used", "UnsupportedAddress": "it requests an address of a type that the controller does not support",
		"NoResources": "what serves it cannot be made", "Pending": "the controller has not finished", "InvalidParameters": "its parameters are not valid",
		"Invalid": "it is not valid", "ListenersNotValid": "listeners of it are not valid",
	}[reason]
	if text == "" {
		return engine.QuoteCode(reason)
	}
	return engine.QuoteCode(reason) + ", that is, " + text
}

type listenerFault struct {
	engine.Finding
	listener, reason string
}

// listenerReasons explains the reasons in the conditions of listeners.
var listenerReasons = map[string]string{
	"InvalidCertificateRef": "a certificate that it names does not exist or is none", "RefNotPermitted": "it names a Secret of another namespace, and no ReferenceGrant there allows that",
	"InvalidRouteKinds": "it allows a kind of route that the controller does not know", "HostnameConflict": "another listener has the same port and host",
	"ProtocolConflict": "another listener has the same port with another protocol", "PortUnavailable": "its port cannot be used", "UnsupportedProtocol": "the controller does not support its protocol",
	"Invalid": "it is not valid", "Pending": "the controller has not finished",
}

// listenerFaults returns the faults that the controller reports for listeners, one for each.
func listenerFaults(g *gatewayapi.Gateway) []listenerFault {
	var found []listenerFault
	for _, l := range g.Status.Listeners {
		var faults []*metav1.Condition
		for _, kind := range []string{"Conflicted", "ResolvedRefs", "Accepted", "Programmed"} {
			c := gatewayapi.FindCondition(l.Conditions, kind)
			if c != nil && (kind == "Conflicted") == (c.Status == metav1.ConditionTrue) && c.Status != metav1.ConditionUnknown {
				faults = append(faults, c)
			}
		}
		if len(faults) == 0 {
			continue
		}
		f := newGatewayFinding(g)
		first := faults[0]
		reason := engine.QuoteCode(first.Reason)
		if text := listenerReasons[first.Reason]; text != "" {
			reason += ", that is, " + text
		}
		f.Cause = fmt.Sprintf("Listener %s of the gateway does not work: %s.", engine.QuoteCode(l.Name), reason)
		for _, c := range faults {
			f.Evidence = append(f.Evidence, fmt.Sprintf("The condition %s.", quoteCondition(c)))
		}
		f.Text = "Correct what the condition names."
		if first.Reason == "InvalidRouteKinds" && isTrue(gatewayapi.FindCondition(l.Conditions, "Programmed")) {
			refused := refusedKinds(g, l)
			f.Confidence = engine.Medium // the intended routes may be of the other kinds
			f.Cause = fmt.Sprintf("Listener %s of the gateway serves only some of the kinds of route that it allows: %s.", engine.QuoteCode(l.Name), reason)
			if len(refused) > 0 {
				f.Cause = fmt.Sprintf("Listener %s of the gateway serves no routes of the kinds %s, which it allows, and works for others: %s.", engine.QuoteCode(l.Name), engine.QuoteCodes(refused), reason)
			}
		}
		if i := slices.IndexFunc(g.Spec.Listeners, func(s gatewayapi.Listener) bool { return s.Name == l.Name }); i >= 0 {
			s := g.Spec.Listeners[i]
			f.Evidence = append(f.Evidence, fmt.Sprintf("Listener %s has port %d, protocol %s and host %s.", engine.QuoteCode(s.Name), s.Port, engine.QuoteCode(s.Protocol), engine.QuoteCode(cmp.Or(s.Hostname, "*"))))
		}
		addStale(&f, first, g.Generation)
		found = append(found, listenerFault{f, l.Name, first.Reason})
	}
	return found
}

// refusedKinds returns the kinds of route that a listener allows and its controller does not support.
func refusedKinds(g *gatewayapi.Gateway, status gatewayapi.ListenerStatus) []string {
	var refused []string
	for _, l := range g.Spec.Listeners {
		if l.Name != status.Name || l.AllowedRoutes == nil {
			continue
		}
		for _, k := range l.AllowedRoutes.Kinds {
			if !slices.ContainsFunc(status.SupportedKinds, func(s gatewayapi.RouteKind) bool { return s.Kind == k.Kind }) {
				refused = append(refused, k.Kind)
			}
		}
	}
	return refused
}

// checkCertificates explains certificates of listeners that do not exist, may not be referred to, or are invalid. bad
// are the names of such listeners.
func (x *Index) checkCertificates(g *gatewayapi.Gateway) (found []engine.Finding, bad map[string]bool) {
	bad = map[string]bool{}
	for i, l := range g.Spec.Listeners {
		if l.TLS == nil || l.TLS.Mode == "Passthrough" {
			continue
		}
		for j, ref := range l.TLS.CertificateRefs {
			if !ref.IsKind("Secret", "Secret") {
				continue
			}
			f := newGatewayFinding(g)
			f.Class = engine.TLSSecret
			namespace := ref.NamespaceFrom(g.Namespace)
			f.Evidence = []string{fmt.Sprintf("`spec.listeners[%d].tls.certificateRefs[%d]` of listener %s is the Secret %s in namespace %s.", i, j, engine.QuoteCode(l.Name), engine.QuoteCode(ref.Name), engine.QuoteCode(namespace))}
			if x.judgeCertificate(&f, l.Name, namespace, ref.Name) {
				x.FollowCertificate(&f, namespace, ref.Name)
				if s := statusOf(g, l.Name); s != nil && isBad(gatewayapi.FindCondition(s.Conditions, "ResolvedRefs")) {
					f.Evidence = append(f.Evidence, fmt.Sprintf("Its controller says so, too: %s.", quoteCondition(gatewayapi.FindCondition(s.Conditions, "ResolvedRefs"))))
				}
				found, bad[l.Name] = append(found, f), true
			}
		}
	}
	return found, bad
}

func statusOf(g *gatewayapi.Gateway, listener string) *gatewayapi.ListenerStatus {
	for i := range g.Status.Listeners {
		if g.Status.Listeners[i].Name == listener {
			return &g.Status.Listeners[i]
		}
	}
	return nil
}

// judgeCertificate explains a Secret that cannot serve a listener. An invalid certificate is reported on the Secret.
func (x *Index) judgeCertificate(f *engine.Finding, listener, namespace, name string) (bad bool) {
	if !x.permits(f.Object, "Secret", namespace, name) {
		explainRefusal(f, "Secret", namespace, name, fmt.Sprintf("listener %s has no certificate", engine.QuoteCode(listener)))
		return true
	}
	if x.Unread["secrets"] || x.Within != "" && x.Within != namespace {
		return false
	}
	i := slices.IndexFunc(x.Secrets, func(s engine.SecretKeys) bool { return s.Namespace == namespace && s.Name == name })
	if i < 0 {
		f.Cause = fmt.Sprintf("The Secret %s with the certificate of listener %s does not exist in namespace %s, so clients get no connection.", engine.QuoteCode(name), engine.QuoteCode(listener), engine.QuoteCode(namespace))
		f.Text = "Create the Secret yourself with certificate and key: no secret value passes through here."
		return true
	}
	s := &x.Secrets[i]
	var lacks []string
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if !slices.Contains(s.Keys, key) {
			lacks = append(lacks, key)
		}
	}
	f.Text = fmt.Sprintf("Create the Secret anew, of type %s.", engine.QuoteCode(string(corev1.SecretTypeTLS)))
	switch {
	case s.Type != "" && s.Type != string(corev1.SecretTypeTLS):
		f.Cause = fmt.Sprintf("The Secret %s of listener %s has the type %s and not %s, so it is not taken as a certificate.", engine.QuoteCode(name), engine.QuoteCode(listener), engine.QuoteCode(s.Type), engine.QuoteCode(string(corev1.SecretTypeTLS)))
		f.Confidence = engine.Medium // some controllers accept any type that has the keys
		if len(lacks) > 0 {
			f.Confidence = engine.High
			f.Evidence = append(f.Evidence, fmt.Sprintf("It also lacks these keys of a certificate: %s.", engine.QuoteCodes(lacks)))
		}
	case len(lacks) > 0:
		f.Cause = fmt.Sprintf("The Secret %s of listener %s lacks these keys of a certificate: %s.", engine.QuoteCode(name), engine.QuoteCode(listener), engine.QuoteCodes(lacks))
	default:
		return false
	}
	return true
}
