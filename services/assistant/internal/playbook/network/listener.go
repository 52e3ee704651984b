package network

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// gatewaysByCertificate returns the gateways whose listeners use the certificate of each Secret, by name.
func (x *Index) gatewaysByCertificate() map[engine.Name][]*gatewayapi.Gateway {
	shown := map[engine.Name][]*gatewayapi.Gateway{}
	for i := range x.Gateways {
		g := &x.Gateways[i]
		for _, l := range g.Spec.Listeners {
			for _, of := range certificatesOf(g, l) {
				if !slices.Contains(shown[of], g) {
					shown[of] = append(shown[of], g)
				}
			}
		}
	}
	for _, list := range shown {
		slices.SortFunc(list, func(a, b *gatewayapi.Gateway) int {
			return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
		})
	}
	return shown
}

// certificatesOf returns the Secrets that a listener uses; a deleted gateway uses none, nor does a listener with TLS
// passthrough.
func certificatesOf(g *gatewayapi.Gateway, l gatewayapi.Listener) []engine.Name {
	if l.TLS == nil || l.TLS.Mode == "Passthrough" || g.DeletionTimestamp != nil {
		return nil
	}
	var all []engine.Name
	for _, ref := range l.TLS.CertificateRefs {
		if ref.IsKind("Secret", "Secret") {
			all = append(all, engine.Name{Namespace: ref.NamespaceFrom(g.Namespace), Name: ref.Name})
		}
	}
	return all
}

// judgeListeners explains a certificate that does not cover the hosts of the listeners that use it. With several
// certificates, the controller picks the one that fits, so only a single one is judged.
func judgeListeners(g *gatewayapi.Gateway, s *engine.SecretKeys) []engine.Finding {
	if s.Certificate.NotAfter.IsZero() {
		return nil // no certificate could be parsed
	}
	var found []engine.Finding
	for i, l := range g.Spec.Listeners {
		of := certificatesOf(g, l)
		if len(of) != 1 || of[0] != (engine.Name{Namespace: s.Namespace, Name: s.Name}) || l.Hostname == "" || coversSome(s.Certificate, l.Hostname) {
			continue
		}
		f := engine.Finding{Class: engine.TLSSecret, Object: engine.GatewayRef(g), Confidence: engine.High}
		if strings.HasPrefix(l.Hostname, "*.") {
			f.Confidence = engine.Medium // its routes may be for other hosts than these
		}
		f.Evidence = []string{
			fmt.Sprintf("`spec.listeners[%d].hostname` of listener %s is %s.", i, engine.QuoteCode(l.Name), engine.QuoteCode(l.Hostname)),
			fmt.Sprintf("The certificate in the Secret %s is for %s.", engine.QuoteCode(s.Name), namesText(s.Certificate)),
		}
		f.Cause = fmt.Sprintf("The certificate in the Secret %s does not cover %s of listener %s, so clients refuse the connection.", engine.QuoteCode(s.Name), engine.QuoteCode(l.Hostname), engine.QuoteCode(l.Name))
		if wildcard := shallowWildcard(s.Certificate, l.Hostname); wildcard != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("The wildcard %s matches exactly one label, so it does not cover %s.", engine.QuoteCode(wildcard), engine.QuoteCode(l.Hostname)))
		}
		f.Text = "Put a certificate for that host into the Secret yourself, or name another Secret that has one."
		found = append(found, f)
	}
	return found
}

// coversSome reports whether a certificate covers a host of a listener. A wildcard listener serves the hosts of its
// routes, of which the certificate may name a few.
func coversSome(c *redact.Certificate, hostname string) bool {
	if c.Covers(hostname) {
		return true
	}
	suffix, wild := strings.CutPrefix(strings.ToLower(hostname), "*")
	return wild && slices.ContainsFunc(c.Names, func(name string) bool { return strings.HasSuffix(strings.ToLower(name), suffix) })
}
