package certificate

import (
	"fmt"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/certmanager"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// issuerReasons maps the reasons of an issuer's condition to an explanation and a remedy.
var issuerReasons = map[string]struct{ what, help string }{
	"ErrRegisterACMEAccount": {"it cannot register its account with the ACME server", "Check its `spec.acme.server` and `spec.acme.email`, and whether cert-manager reaches that server."},
	"ErrUpdateACMEAccount":   {"it cannot update its account with the ACME server", "Check its `spec.acme.email`."},
	"ErrVerifyACMEAccount":   {"the ACME server does not know its account", "Check the Secret of its `spec.acme.privateKeySecretRef`, and whether it belongs to that server."},
	"ErrGetKeyPair":          {"it cannot read its CA's key pair", "Check the Secret of its `spec.ca.secretName`: it is to hold `tls.crt` and `tls.key`. A ClusterIssuer reads it from cert-manager's own namespace."},
	"ErrInvalidKeyPair":      {"its CA's key pair is not valid", "Check the Secret of its `spec.ca.secretName`: certificate and key are to belong together, and the certificate is to be one of a CA."},
	"VaultError":             {"it cannot use Vault", "Check its `spec.vault`: server, path and credentials."},
	"InvalidConfig":          {"its configuration is not valid", "Correct its `spec`."},
}

// checkIssuers explains CertificateIssuer: issuers that are not ready.
func checkIssuers(x *Index) []engine.Finding {
	users := map[string][]string{} // namespaces of the certificates of each issuer
	for i := range x.Certificates {
		c := &x.Certificates[i]
		if of := issuerOf(c).String(); !c.Spec.IssuerRef.IsForeign() && !slices.Contains(users[of], c.Namespace) {
			users[of] = append(users[of], c.Namespace)
		}
	}
	var found []engine.Finding
	for i := range x.Issuers {
		issuer := &x.Issuers[i]
		ready := findCondition(issuer.Status.Conditions, "Ready")
		if issuer.DeletionTimestamp != nil || isTrue(ready) {
			continue
		}
		f := x.explainIssuer(issuer)
		f.Namespaces = users[f.Object.String()]
		found = append(found, f)
	}
	return found
}

func (x *Index) explainIssuer(issuer *certmanager.Issuer) engine.Finding {
	f := engine.Finding{Class: engine.CertificateIssuer, Object: issuerRef(issuer), Confidence: engine.High}
	ready := findCondition(issuer.Status.Conditions, "Ready")
	if ready == nil {
		f.Confidence = engine.Medium
		f.Evidence = []string{"Its status has no condition `Ready`."}
		f.Cause = fmt.Sprintf("No controller has processed the %s, so it issues no certificates: cert-manager may not be running, or has not reached it yet.", engine.RefTitle(f.Object))
		f.Text = "Look whether cert-manager's controller runs, and what its log says."
		return f
	}
	f.Evidence = []string{fmt.Sprintf("Its condition %s.", quoteCondition(ready))}
	reason := engine.QuoteCode(ready.Reason)
	f.Text = "Correct what the condition names; the log of cert-manager's controller may tell more."
	if known, ok := issuerReasons[ready.Reason]; ok {
		reason, f.Text = reason+", that is, "+known.what, known.help
	}
	f.Cause = fmt.Sprintf("The %s is not ready, so it issues no certificates: %s.", engine.RefTitle(f.Object), reason)
	return f
}
