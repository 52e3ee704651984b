package network

import (
	"fmt"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// checkCertificates explains TLSSecret: certificates that an Ingress or pods use, and that clients reject.
func checkCertificates(x *Index) []engine.Finding { return x.findCertificates(true) }

// IdleCertificates returns unusable TLS Secrets that nothing appears to use. They are reported only to a user who asks
// about them.
func (x *Index) IdleCertificates() []engine.Finding { return x.findCertificates(false) }

func (x *Index) findCertificates(used bool) []engine.Finding {
	if x.Unread["secrets"] {
		return nil
	}
	served := x.ingressesByCertificate()
	shown := x.gatewaysByCertificate()
	pods := x.podsBySecret()
	var found []engine.Finding
	for i := range x.Secrets {
		s := &x.Secrets[i]
		name := engine.Name{Namespace: s.Namespace, Name: s.Name}
		if s.Certificate == nil || used != (len(served[name])+len(shown[name])+len(pods[name]) > 0) {
			continue
		}
		if f, bad := x.judgeCertificate(s); bad {
			addUsers(&f, served[name], shown[name], pods[name])
			x.FollowCertificate(&f, s.Namespace, s.Name)
			found = append(found, f)
			for _, g := range shown[name] {
				found = append(found, engine.Finding{
					Class: engine.TLSSecret, Object: engine.GatewayRef(g), Confidence: engine.High, Follower: true, Because: []operation.Ref{f.Object},
					Cause: fmt.Sprintf("Its certificate is that of the Secret %s.", engine.QuoteCode(s.Name)),
				})
			}
			for _, in := range served[name] {
				found = append(found, engine.Finding{
					Class: engine.TLSSecret, Object: ingressRef(in), Confidence: engine.High, Follower: true, Because: []operation.Ref{f.Object},
					Cause: fmt.Sprintf("Its certificate is that of the Secret %s.", engine.QuoteCode(s.Name)),
				})
			}
		}
		for _, in := range served[name] {
			if f, bad := x.judgeNames(in, s); bad {
				found = append(found, f)
			}
		}
		for _, g := range shown[name] {
			found = append(found, judgeListeners(g, s)...)
		}
	}
	return found
}

func secretRef(namespace, name string) operation.Ref {
	return operation.Ref{Version: "v1", Kind: "Secret", Namespace: namespace, Name: name}
}

// ingressesByCertificate returns the ingresses that use each Secret, by name.
func (x *Index) ingressesByCertificate() map[engine.Name][]*networkingv1.Ingress {
	served := map[engine.Name][]*networkingv1.Ingress{}
	for i := range x.Ingresses {
		in := &x.Ingresses[i]
		for _, tls := range in.Spec.TLS {
			of := engine.Name{Namespace: in.Namespace, Name: tls.SecretName}
			if tls.SecretName != "" && in.DeletionTimestamp == nil && !slices.Contains(served[of], in) {
				served[of] = append(served[of], in)
			}
		}
	}
	for _, list := range served {
		slices.SortFunc(list, func(a, b *networkingv1.Ingress) int { return strings.Compare(a.Name, b.Name) })
	}
	return served
}

// podsBySecret returns the living pods that mount each TLS Secret, by name.
func (x *Index) podsBySecret() map[engine.Name][]string {
	mounts := map[engine.Name][]string{}
	for _, pod := range x.LivingPods {
		for _, secret := range engine.MountedSecrets(&pod.Spec) {
			of := engine.Name{Namespace: pod.Namespace, Name: secret}
			mounts[of] = append(mounts[of], pod.Name)
		}
	}
	return mounts
}

// certificateFaults describes what a Secret holds in place of a certificate with its key.
var certificateFaults = map[redact.CertificateFault]string{
	redact.CertificateEmpty:      "Its `tls.crt` is empty, so it has no certificate.",
	redact.CertificateNotPEM:     "Its `tls.crt` is no certificate: it holds no PEM block `CERTIFICATE`.",
	redact.CertificateIsKey:      "Its `tls.crt` holds a private key in place of the certificate. Certificate and key may be swapped.",
	redact.CertificateUnreadable: "Its `tls.crt` holds a PEM block `CERTIFICATE` that cannot be read as a certificate.",
	redact.KeyEmpty:              "Its `tls.key` is empty, so the certificate has no private key.",
	redact.KeyNotPEM:             "Its `tls.key` is no private key: it holds no PEM block `PRIVATE KEY`.",
	redact.KeyUnreadable:         "Its `tls.key` holds a private key that cannot be read. It may be damaged, or locked with a passphrase.",
	redact.KeyOfAnother:          "Its `tls.key` does not belong to its `tls.crt`: the private key is that of another certificate.",
}

// judgeCertificate explains why the certificate of a Secret cannot serve at the time of the snapshot.
func (x *Index) judgeCertificate(s *engine.SecretKeys) (f engine.Finding, bad bool) {
	c := s.Certificate
	f = engine.Finding{Class: engine.TLSSecret, Object: secretRef(s.Namespace, s.Name), Confidence: engine.High}
	if !c.NotAfter.IsZero() {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The certificate is valid from %s until %s, for %s.", formatTime(c.NotBefore), formatTime(c.NotAfter), namesText(c)))
	}
	f.Text = "Put a certificate and the key that belongs to it into the Secret yourself: no secret value passes through here."
	switch {
	case c.Fault != redact.CertificateSound:
		f.Cause = certificateFaults[c.Fault] + " A server cannot use such a pair."
		if c.Fault == redact.CertificateUnreadable || c.Fault == redact.KeyUnreadable {
			f.Confidence = engine.Medium // other programs may support formats that are unknown here
		}
	case !x.Taken.Before(c.NotAfter):
		f.Cause = fmt.Sprintf("Its certificate expired on %s (%s ago), so clients that check it refuse the connection.", formatTime(c.NotAfter), x.Since(metav1.NewTime(c.NotAfter)))
		f.Text = "Put a renewed certificate with its key into the Secret yourself: no secret value passes through here."
	case x.Taken.Before(c.NotBefore):
		f.Cause = fmt.Sprintf("Its certificate is not valid before %s, and it is %s now: until then clients that check it refuse the connection.", formatTime(c.NotBefore), formatTime(x.Taken))
		f.Text = "Wait until then, or put a certificate that is valid now into the Secret yourself. If that time has passed, the clock of the issuer or of the cluster is wrong."
	default:
		return f, false
	}
	return f, true
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func namesText(c *redact.Certificate) string {
	if len(c.Names) == 0 {
		return "no host name (clients do not look at its common name)"
	}
	return engine.QuoteCodes(c.Names)
}

// addUsers names the users of a Secret, and the issuer that renews it.
func addUsers(f *engine.Finding, served []*networkingv1.Ingress, shown []*gatewayapi.Gateway, pods []string) {
	for _, in := range served {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The ingress %s serves it.", engine.QuoteCode(in.Name)))
		if issuer := issuerOf(in); issuer != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("The issuer %s is to keep it valid.", engine.QuoteCode(issuer)))
			f.Text = "Look what the Certificate and its requests in the namespace say: their issuer has not renewed the Secret."
		}
	}
	for _, g := range shown {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The gateway %s in namespace %s serves it.", engine.QuoteCode(g.Name), engine.QuoteCode(g.Namespace)))
	}
	if len(pods) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("It is mounted by %s.", engine.QuoteCodes(pods)))
	}
	if len(served)+len(shown) == 0 {
		f.Confidence = engine.Medium // whether a program serves with it is unknown
	}
}

// judgeNames explains a certificate that does not cover the hosts of an ingress that uses it.
func (x *Index) judgeNames(in *networkingv1.Ingress, s *engine.SecretKeys) (f engine.Finding, bad bool) {
	if s.Certificate.NotAfter.IsZero() {
		return f, false // no certificate could be parsed
	}
	var lacks []string
	at := -1
	for i, tls := range in.Spec.TLS {
		if tls.SecretName != s.Name {
			continue
		}
		for _, host := range hostsOf(in, tls) {
			if !s.Certificate.Covers(host) && !slices.Contains(lacks, host) {
				lacks, at = append(lacks, host), i
			}
		}
	}
	if len(lacks) == 0 {
		return f, false
	}
	f = engine.Finding{Class: engine.TLSSecret, Object: ingressRef(in), Confidence: engine.High}
	f.Evidence = []string{fmt.Sprintf("The certificate in the Secret %s is for %s.", engine.QuoteCode(s.Name), namesText(s.Certificate))}
	f.Cause = fmt.Sprintf("The certificate in the Secret %s does not cover %s of the ingress, so clients refuse the connection.", engine.QuoteCode(s.Name), engine.QuoteCodes(lacks))
	for _, host := range lacks {
		if wildcard := shallowWildcard(s.Certificate, host); wildcard != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("The wildcard %s matches exactly one label, so it does not cover %s.", engine.QuoteCode(wildcard), engine.QuoteCode(host)))
		}
	}
	f.Text = "Put a certificate for these hosts into the Secret yourself, or name another Secret that has one."
	if keepers := x.CertificatesFor(s.Namespace, s.Name); len(keepers) > 0 {
		f.Text = fmt.Sprintf("Add them to the `spec.dnsNames` of the %s: cert-manager writes the Secret, and overwrites what anybody else puts there.", engine.RefTitle(keepers[0]))
		return f, true
	}
	x.offerCertificate(&f, in, at, lacks)
	return f, true
}

// hostsOf returns the hosts of an entry of an ingress's TLS section; without any, those of the rules.
func hostsOf(in *networkingv1.Ingress, tls networkingv1.IngressTLS) []string {
	if len(tls.Hosts) > 0 {
		return tls.Hosts
	}
	var hosts []string
	for _, rule := range in.Spec.Rules {
		if rule.Host != "" {
			hosts = append(hosts, rule.Host)
		}
	}
	return hosts
}

// shallowWildcard returns a wildcard of a certificate that looks as if it covers a host but does not: one of a more
// distant parent domain, or of the host itself.
func shallowWildcard(c *redact.Certificate, host string) string {
	for _, name := range c.Names {
		if parent, ok := strings.CutPrefix(name, "*."); ok && (host == parent || strings.HasSuffix(host, "."+parent)) {
			return name
		}
	}
	return ""
}

// offerCertificate finds the only other Secret of the namespace whose certificate covers all hosts of an entry and is
// valid.
func (x *Index) offerCertificate(f *engine.Finding, in *networkingv1.Ingress, entry int, lacks []string) {
	var fit []string
	for i := range x.Secrets {
		s := &x.Secrets[i]
		if s.Namespace != in.Namespace || s.Certificate == nil || slices.ContainsFunc(hostsOf(in, in.Spec.TLS[entry]), func(h string) bool { return !s.Certificate.Covers(h) }) {
			continue
		}
		if _, bad := x.judgeCertificate(s); !bad {
			fit = append(fit, s.Name)
		}
	}
	if len(fit) != 1 || slices.ContainsFunc(lacks, func(h string) bool { return !slices.Contains(hostsOf(in, in.Spec.TLS[entry]), h) }) {
		return
	}
	tls := slices.Clone(in.Spec.TLS) // it has no merge key, so the patch repeats all of it
	tls[entry].SecretName = fit[0]
	if f.Fix = engine.NewPatch(f.Object, engine.Members{"spec": engine.Members{"tls": tls}}); f.Fix != nil {
		f.Text = fmt.Sprintf("Let the ingress name the Secret %s, whose certificate covers them, if it is the one that is meant.", engine.QuoteCode(fit[0]))
	}
}
