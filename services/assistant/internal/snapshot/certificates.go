package snapshot

import (
	"context"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/certmanager"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
)

// certificates reads the kinds of cert-manager: the certificates first, and then the progress of their issuance.
func (r *reading) certificates(ctx context.Context, show Show, served []cluster.Resource) (err error) {
	s := r.into
	var ofNamespace, ofCluster []certmanager.Issuer
	s.CertificateKinds, err = r.customs(ctx, show, served,
		newCustom(certmanager.Group, "certificates", &s.Certificates),
		newCustom(certmanager.Group, "issuers", &ofNamespace),
		newCustom(certmanager.Group, "clusterissuers", &ofCluster),
		newCustom(certmanager.Group, "certificaterequests", &s.CertificateRequests),
		newCustom(certmanager.ACMEGroup, "orders", &s.Orders),
		newCustom(certmanager.ACMEGroup, "challenges", &s.Challenges),
	)
	s.Issuers = slices.Concat(ofNamespace, ofCluster)
	return err
}
