package engine

import (
	"cmp"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/certmanager"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// CertificateRef returns the reference to a cert-manager certificate.
func CertificateRef(c *certmanager.Certificate) operation.Ref {
	return operation.Ref{Group: certmanager.Group, Version: "v1", Kind: "Certificate", Namespace: c.Namespace, Name: c.Name}
}

// CertificatesFor returns the certificates that cert-manager is to store in a Secret, by name.
func (x *Index) CertificatesFor(namespace, secret string) []operation.Ref {
	return x.kept()[Name{Namespace: namespace, Name: secret}]
}

func (x *Index) keptTable() map[Name][]operation.Ref {
	all := map[Name][]operation.Ref{}
	for i := range x.Certificates {
		c := &x.Certificates[i]
		of := Name{Namespace: c.Namespace, Name: c.Spec.SecretName}
		all[of] = append(all[of], CertificateRef(c))
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b operation.Ref) int { return cmp.Compare(a.Name, b.Name) })
	}
	return all
}

// FollowCertificate makes a finding about a Secret follow from that of the certificate which cert-manager stores there,
// and drops its fix, since cert-manager overwrites manual changes of the Secret.
func (x *Index) FollowCertificate(f *Finding, namespace, secret string) {
	keepers := x.CertificatesFor(namespace, secret)
	if len(keepers) == 0 {
		return
	}
	f.Because = append(f.Because, keepers...)
	f.Evidence = append(f.Evidence, "The Secret "+QuoteCode(secret)+" is kept by the "+RefTitle(keepers[0])+" of cert-manager.")
	f.Text = "Look what the " + RefTitle(keepers[0]) + " and its requests say: cert-manager writes the Secret, and overwrites what anybody else puts there."
	f.Fix = nil
}
