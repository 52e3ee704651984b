package investigate

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/certmanager"
	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
)

// attempts joins challenges, orders and requests that were asked about with the objects they belong to: they fail, but
// the finding is about a certificate.
func (r *relations) attempts(asked []operation.Ref) {
	climb := func(kind string, o metav1.Object) {
		if !r.has(kind, o.GetNamespace(), o.GetName()) {
			return
		}
		for _, owner := range o.GetOwnerReferences() {
			r.put(owner.Kind, o.GetNamespace(), owner.Name)
		}
		if name := o.GetAnnotations()[certmanager.NameAnnotation]; name != "" {
			r.put("Certificate", o.GetNamespace(), name)
		}
	}
	if !slices.ContainsFunc(asked, func(o operation.Ref) bool { return o.Group == certmanager.Group || o.Group == certmanager.ACMEGroup }) {
		return
	}
	for i := range r.Challenges {
		climb("Challenge", &r.Challenges[i])
	}
	for i := range r.Orders {
		climb("Order", &r.Orders[i])
	}
	for i := range r.CertificateRequests {
		climb("CertificateRequest", &r.CertificateRequests[i])
	}
}

// issued joins Secrets with the cert-manager certificates stored in them, these with their issuers, and an issuer that
// was asked about with its certificates.
func (r *relations) issued(asked []operation.Ref) {
	for i := range r.Certificates {
		c := &r.Certificates[i]
		issuer := operation.Ref{Kind: c.Spec.IssuerRef.IssuerKind(), Namespace: c.Namespace, Name: c.Spec.IssuerRef.Name}
		if issuer.Kind == "ClusterIssuer" {
			issuer.Namespace = ""
		}
		near := r.has("Certificate", c.Namespace, c.Name)
		if !near && !r.has("Secret", c.Namespace, c.Spec.SecretName) && !slices.ContainsFunc(asked, func(o operation.Ref) bool { return plainRef(o) == issuer }) {
			continue
		}
		r.put("Certificate", c.Namespace, c.Name)
		r.near[issuer] = true
		if near {
			r.put("Secret", c.Namespace, c.Spec.SecretName)
		}
	}
}

// describeIssued describes the hosts and the validity of a cert-manager certificate.
func describeIssued(s *engine.Snapshot, r operation.Ref, head string) string {
	for i := range s.Certificates {
		c := &s.Certificates[i]
		if c.Name != r.Name || c.Namespace != r.Namespace {
			continue
		}
		text := fmt.Sprintf("%s is for %s, from the %s %s into the Secret %s, and is %s", head, hostsOfCertificate(c),
			engine.LowerFirst(c.Spec.IssuerRef.IssuerKind()), report.Code(c.Spec.IssuerRef.Name), report.Code(c.Spec.SecretName), readiness(c.Status.Conditions))
		if c.Status.NotAfter != nil {
			text += ", valid until " + c.Status.NotAfter.UTC().Format(time.RFC3339)
		}
		if c.Status.RenewalTime != nil {
			text += ", to be renewed on " + c.Status.RenewalTime.UTC().Format(time.RFC3339)
		}
		return text + "."
	}
	return ""
}

// describeIssuer describes whether an issuer, or a request, is ready, and the progress of an order or challenge.
func describeIssuer(s *engine.Snapshot, r operation.Ref, head string) string {
	is := func(kind string, o metav1.Object) bool {
		return kind == r.Kind && o.GetName() == r.Name && o.GetNamespace() == r.Namespace
	}
	for i := range s.Issuers {
		if issuer := &s.Issuers[i]; is(issuer.Kind, issuer) {
			return fmt.Sprintf("%s is %s.", head, readiness(issuer.Status.Conditions))
		}
	}
	for i := range s.CertificateRequests {
		if request := &s.CertificateRequests[i]; is("CertificateRequest", request) {
			return fmt.Sprintf("%s is %s.", head, readiness(request.Status.Conditions))
		}
	}
	for i := range s.Orders {
		if o := &s.Orders[i]; is("Order", o) {
			return describeState(head, o.Status)
		}
	}
	for i := range s.Challenges {
		if c := &s.Challenges[i]; is("Challenge", c) {
			return describeState(head+" ("+report.Code(c.Spec.Type)+" for "+report.Code(c.Spec.DNSName)+")", c.Status)
		}
	}
	return ""
}

func describeState(head string, s certmanager.State) string {
	text := head + " has not begun."
	if s.State != "" {
		text = head + " is " + report.Code(s.State) + "."
	}
	if s.Reason != "" {
		text += " It says " + engine.QuoteLine(s.Reason) + "."
	}
	return text
}

func readiness(all []metav1.Condition) string {
	if c := gatewayapi.FindCondition(all, "Ready"); c != nil && c.Status == metav1.ConditionTrue {
		return "ready"
	}
	return "not ready"
}

// hostsOfCertificate returns the hosts of a certificate.
func hostsOfCertificate(c *certmanager.Certificate) string {
	switch {
	case len(c.Spec.DNSNames) > 0:
		return engine.QuoteCodes(c.Spec.DNSNames)
	case c.Spec.CommonName != "":
		return report.Code(c.Spec.CommonName)
	}
	return "no host name"
}
