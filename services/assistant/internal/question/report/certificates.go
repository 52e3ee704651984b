package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// certified lists the TLS Secrets in the view, earliest expiry first.
func (v View) certified() []engine.SecretKeys {
	all := slices.DeleteFunc(slices.Clone(v.Snapshot.Secrets), func(s engine.SecretKeys) bool {
		return s.Certificate == nil || !v.has(s.Namespace)
	})
	slices.SortFunc(all, func(a, b engine.SecretKeys) int {
		return cmp.Or(a.Certificate.NotAfter.Compare(b.Certificate.NotAfter), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// CertificateStatus is the public part of the certificate in a TLS Secret.
type CertificateStatus struct {
	Namespace, Secret   string
	Hosts               []string
	NotBefore, NotAfter time.Time // zero if the certificate cannot be read
	State               string    // a phrase
	ServedBy            []string  // ingresses and gateways
}

// CertificateStatuses lists the certificates in TLS Secrets.
func (v View) CertificateStatuses() []CertificateStatus {
	var all []CertificateStatus
	for _, s := range v.certified() {
		c := s.Certificate
		all = append(all, CertificateStatus{s.Namespace, s.Name, c.Names, c.NotBefore, c.NotAfter, v.certificateState(c), v.serversOf(s)})
	}
	return all
}

// Certificates lists TLS Secrets with the public part of their certificates, earliest expiry first.
func Certificates(v View) Answer {
	t := newTable("Namespace", "Secret", "Hosts", "Valid until", "State", "Served by")
	for _, s := range v.certified() {
		until := "unknown"
		if !s.Certificate.NotAfter.IsZero() {
			until = s.Certificate.NotAfter.UTC().Format(time.RFC3339)
		}
		t.add(tableCell(s.Namespace), tableCell(s.Name), tableCells(s.Certificate.Names), until, v.certificateState(s.Certificate), joinList(v.serversOf(s)))
	}
	none := "There are no TLS Secrets " + v.where() + ", so there is no certificate to judge. Certificates that programs hold in files or elsewhere are not seen from here."
	if v.Unread["secrets"] {
		none = "The Secrets could not be read, so no certificate was."
	}
	return t.under("Certificates in TLS Secrets "+v.where()+":", none)
}

func (v View) certificateState(c *redact.Certificate) string {
	switch left := c.NotAfter.Sub(v.Taken); {
	case c.Fault == redact.KeyOfAnother:
		return "key of another certificate"
	case c.Fault != redact.CertificateSound:
		return "cannot be used"
	case left <= 0:
		return "expired"
	case v.Taken.Before(c.NotBefore):
		return "not valid yet"
	default:
		return fmt.Sprintf("valid, %s left", countNoun(int(left/(24*time.Hour)), "day", "days"))
	}
}

// serversOf returns the ingresses and gateways that serve the certificate of a Secret.
func (v View) serversOf(s engine.SecretKeys) []string {
	var all []string
	for i := range v.Ingresses {
		for _, tls := range v.Ingresses[i].Spec.TLS {
			if v.Ingresses[i].Namespace == s.Namespace && tls.SecretName == s.Name {
				all = append(all, "ingress "+tableCell(v.Ingresses[i].Name))
			}
		}
	}
	for i := range v.Gateways {
		g := &v.Gateways[i]
		for _, l := range g.Spec.Listeners {
			if l.TLS == nil {
				continue
			}
			for _, ref := range l.TLS.CertificateRefs {
				if ref.Name == s.Name && ref.NamespaceFrom(g.Namespace) == s.Namespace {
					all = append(all, "gateway "+tableCell(g.Name))
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
