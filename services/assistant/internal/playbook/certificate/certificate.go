package certificate

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/certmanager"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

const (
	// patience is how long an issuance may take before it is a problem: an ACME server takes minutes.
	patience = 5 * time.Minute
	// lateness is how late a renewal may begin.
	lateness = time.Hour
)

// checkCertificates explains CertificateNotIssued: certificates that are not ready, or not renewed.
func checkCertificates(x *Index) []engine.Finding {
	var found []engine.Finding
	for i := range x.Certificates {
		if f, bad := x.checkCertificate(&x.Certificates[i]); bad {
			found = append(found, f)
		}
	}
	return found
}

func (x *Index) checkCertificate(c *certmanager.Certificate) (f engine.Finding, bad bool) {
	what := x.trouble(c)
	if c.DeletionTimestamp != nil || what == "" {
		return f, false
	}
	why, told := x.explain(c)
	if !told {
		return f, false
	}
	f = engine.Finding{Class: engine.CertificateNotIssued, Object: engine.CertificateRef(c), Confidence: why.confidence, Text: why.help, Because: why.because, Touches: why.touches}
	f.Cause = fmt.Sprintf("%s: %s.", what, why.what)
	f.Evidence = append(f.Evidence, fmt.Sprintf("The %s is to issue it for %s into the Secret %s.", engine.RefTitle(issuerOf(c)), hostsText(c), engine.QuoteCode(c.Spec.SecretName)))
	for _, kind := range []string{"Ready", "Issuing"} {
		if condition := findCondition(c.Status.Conditions, kind); condition != nil && (kind == "Issuing" || !isTrue(condition)) {
			f.Evidence = append(f.Evidence, fmt.Sprintf("Its condition %s.", quoteCondition(condition)))
		}
	}
	f.Evidence = append(f.Evidence, why.evidence...)
	if c.Status.NotAfter != nil {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The certificate that was issued last is valid until %s.", formatTime(c.Status.NotAfter)))
	}
	return f, true
}

// trouble returns the beginning of the sentence about a certificate's problem; empty: there is none.
func (x *Index) trouble(c *certmanager.Certificate) string {
	ready, issuing := findCondition(c.Status.Conditions, "Ready"), findCondition(c.Status.Conditions, "Issuing")
	late := c.Status.RenewalTime != nil && x.Taken.Sub(c.Status.RenewalTime.Time) > lateness
	switch {
	case c.Status.NotAfter != nil && !x.Taken.Before(c.Status.NotAfter.Time):
		return fmt.Sprintf("The certificate expired on %s, and has not been renewed", formatTime(c.Status.NotAfter))
	case !isTrue(ready) && c.Status.NotAfter == nil:
		return "The certificate has not been issued"
	case late && c.Status.NotAfter != nil:
		return fmt.Sprintf("The certificate was to be renewed on %s, has not been, and expires on %s", formatTime(c.Status.RenewalTime), formatTime(c.Status.NotAfter))
	case isFalse(issuing) && issuing.Reason == "Failed":
		return "The renewal of the certificate failed"
	case !isTrue(ready):
		return "The certificate is not ready"
	}
	return ""
}

// hostsText names the hosts of a certificate.
func hostsText(c *certmanager.Certificate) string {
	switch {
	case len(c.Spec.DNSNames) > 0:
		return engine.QuoteCodes(c.Spec.DNSNames)
	case c.Spec.CommonName != "":
		return engine.QuoteCode(c.Spec.CommonName)
	}
	return "no host name"
}

func formatTime(t *metav1.Time) string { return t.UTC().Format(time.RFC3339) }

// reason is the reason why a certificate is not issued.
type reason struct {
	what, help string // a clause, and sentences
	evidence   []string
	confidence engine.Confidence
	because    []operation.Ref // objects whose own findings explain it
	touches    []operation.Ref // objects that show it
}

// explain finds out why a certificate is not issued; told is false while the issuance may still be in progress.
func (x *Index) explain(c *certmanager.Certificate) (why reason, told bool) {
	if why, bad := x.judgeIssuer(c); bad {
		return why, true
	}
	request := newest(x.requests[engine.NameOf(c)])
	if request == nil {
		return x.explainNoRequest(c)
	}
	begun := request.CreationTimestamp
	why = reason{confidence: engine.High, touches: []operation.Ref{requestRef(request)}}
	order := newest(x.orders[engine.NameOf(request)])
	if order != nil && !isTrue(findCondition(request.Status.Conditions, "Ready")) {
		if x.explainOrder(&why, order) {
			return why, true
		}
	}
	if explainRequest(&why, c, request) {
		return why, true
	}
	if ready := findCondition(request.Status.Conditions, "Ready"); isTrue(ready) {
		return x.explainIssued(c, request)
	}
	if x.Taken.Sub(begun.Time) <= patience {
		return why, false
	}
	why.confidence = engine.Medium
	why.what = fmt.Sprintf("its request %s has been waiting for %s", engine.QuoteCode(request.Name), x.Since(begun))
	why.help = "Look what the request and the log of cert-manager's controller say."
	if ready := findCondition(request.Status.Conditions, "Ready"); ready == nil && findCondition(request.Status.Conditions, "Approved") == nil {
		why.confidence = engine.High
		why.what = fmt.Sprintf("its request %s has not been approved", engine.QuoteCode(request.Name))
		why.help = "Look whether what approves requests here runs: cert-manager itself, or a policy in its place."
	} else if ready != nil {
		why.evidence = append(why.evidence, fmt.Sprintf("The condition of its request %s: %s.", engine.QuoteCode(request.Name), quoteCondition(ready)))
	}
	return why, true
}

// judgeIssuer checks whether the issuer exists and is ready.
func (x *Index) judgeIssuer(c *certmanager.Certificate) (why reason, bad bool) {
	of := issuerOf(c)
	plural := map[string]string{"Issuer": "issuers", "ClusterIssuer": "clusterissuers"}[of.Kind]
	if c.Spec.IssuerRef.IsForeign() || !x.knows(plural) {
		return why, false
	}
	why.confidence = engine.High
	if issuer := x.issuers[of]; issuer != nil {
		ready := findCondition(issuer.Status.Conditions, "Ready")
		if isTrue(ready) {
			return why, false
		}
		why.what = fmt.Sprintf("its %s is not ready", engine.RefTitle(of))
		why.help = "Fix the issuer; its certificates follow automatically."
		why.because = []operation.Ref{of}
		return why, true
	}
	where := ""
	if of.Namespace != "" {
		where = " in namespace " + engine.QuoteCode(of.Namespace)
	}
	why.what = fmt.Sprintf("the %s that it names does not exist%s", engine.RefTitle(of), where)
	why.help = "Create that issuer, or let `spec.issuerRef` name one that exists."
	var same []string
	for i := range x.Issuers {
		o := issuerRef(&x.Issuers[i])
		switch {
		case o.Kind == of.Kind && o.Namespace == of.Namespace:
			same = append(same, o.Name)
		case o.Kind == "ClusterIssuer" && o.Name == of.Name:
			why.help = fmt.Sprintf("There is a ClusterIssuer of that name: let `spec.issuerRef.kind` be `ClusterIssuer`, if it is the one that is meant.%s", madeFromText(c))
			return why, true
		case o.Name == of.Name && o.Namespace == c.Namespace:
			why.help = fmt.Sprintf("There is an Issuer of that name in the namespace: let `spec.issuerRef.kind` be `Issuer`, if it is the one that is meant.%s", madeFromText(c))
			return why, true
		}
	}
	if near, ok := engine.NearestName(of.Name, same); ok {
		why.help = fmt.Sprintf("Let `spec.issuerRef.name` be %s, if it is the one that is meant.", engine.QuoteCode(near))
	}
	why.help += madeFromText(c)
	return why, true
}

// madeFromText names the object that a certificate is generated from and where to change it.
func madeFromText(c *certmanager.Certificate) string {
	if owner := metav1.GetControllerOf(c); owner != nil {
		return fmt.Sprintf(" The certificate is made from the %s %s: change the annotation there.", engine.LowerFirst(owner.Kind), engine.QuoteCode(owner.Name))
	}
	return ""
}

// explainNoRequest explains a certificate that has no request yet.
func (x *Index) explainNoRequest(c *certmanager.Certificate) (why reason, told bool) {
	issuing := findCondition(c.Status.Conditions, "Issuing")
	why = reason{confidence: engine.Medium, help: "Look whether cert-manager's controller runs, and what its log says of the certificate."}
	switch {
	case x.Unread["certificaterequests"]:
		why.what = "its requests could not be read"
		why.help = "Let the account read certificaterequests, orders and challenges, or look at them yourself."
	case x.Taken.Sub(c.CreationTimestamp.Time) <= patience:
		return why, false
	case isFalse(issuing) && issuing.Reason == "Failed":
		why.what = "the last attempt failed, and the next one has not begun"
		why.help = "Correct what the condition names. cert-manager retries automatically, first after an hour and then at growing intervals."
	default:
		why.what = "cert-manager has not requested one, so its controller may not be running, or has not reached it yet"
	}
	return why, true
}

// explainIssued explains a certificate that differs from its spec although its last request was granted.
func (x *Index) explainIssued(c *certmanager.Certificate, request *certmanager.CertificateRequest) (why reason, told bool) {
	ready := findCondition(c.Status.Conditions, "Ready")
	why = reason{confidence: engine.Medium, touches: []operation.Ref{requestRef(request)}, help: "Look whether cert-manager's controller runs, and what its log says of the certificate."}
	why.what = "its last request was granted, and cert-manager has not started another one, so its controller may not be running"
	if ready != nil && !isTrue(ready) {
		if x.Taken.Sub(ready.LastTransitionTime.Time) <= patience {
			return why, false
		}
		why.what = fmt.Sprintf("the Secret %s does not hold the wanted certificate (%s)", engine.QuoteCode(c.Spec.SecretName), engine.QuoteCode(ready.Reason))
	}
	return why, true
}

func requestRef(r *certmanager.CertificateRequest) operation.Ref {
	return operation.Ref{Group: certmanager.Group, Version: "v1", Kind: "CertificateRequest", Namespace: r.Namespace, Name: r.Name}
}

// explainRequest explains a request that was denied or failed.
func explainRequest(why *reason, c *certmanager.Certificate, r *certmanager.CertificateRequest) (told bool) {
	ready, denied, invalid := findCondition(r.Status.Conditions, "Ready"), findCondition(r.Status.Conditions, "Denied"), findCondition(r.Status.Conditions, "InvalidRequest")
	name := engine.QuoteCode(r.Name)
	tell := func(condition *metav1.Condition) {
		why.evidence = append(why.evidence, fmt.Sprintf("The condition of its request %s: %s.", name, quoteCondition(condition)))
	}
	switch {
	case isTrue(denied):
		why.what = fmt.Sprintf("its request %s was denied", name)
		why.help = "The approver of requests here, such as a policy, does not allow it: compare the request with that policy."
		tell(denied)
	case isTrue(invalid):
		why.what = fmt.Sprintf("its request %s is not valid", name)
		why.help = "Correct the certificate's `spec`."
		tell(invalid)
	case isFalse(ready) && ready.Reason == "Failed":
		why.what = fmt.Sprintf("the %s refused its request %s", engine.RefTitle(issuerOf(c)), name)
		why.help = "Correct what the condition names. cert-manager retries automatically, first after an hour and then at growing intervals."
		if isRateLimit(ready.Message) {
			explainRateLimit(why)
		}
		tell(ready)
	default:
		return false
	}
	return true
}
