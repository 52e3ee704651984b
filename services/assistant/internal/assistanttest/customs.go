package assistanttest

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
	"github.com/mlp-platform/platform/services/assistant/internal/certmanager"
	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// AddCustomObject adds a manifest of a custom resource, unknown to client-go's scheme, to a snapshot. It reports
// whether the manifest is one.
func AddCustomObject(t testing.TB, s *engine.Snapshot, manifest string) bool {
	t.Helper()
	var head metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(manifest), &head); err != nil {
		t.Fatalf("%v in %s", err, manifest)
	}
	switch head.GroupVersionKind().Group {
	case gatewayapi.Group, certmanager.Group, certmanager.ACMEGroup, argocd.Group:
	default:
		return false
	}
	var err error
	switch head.Kind {
	case "Application":
		s.Applications, err = appendObject(s.Applications, manifest)
	case "Certificate":
		s.Certificates, err = appendObject(s.Certificates, manifest)
	case "CertificateRequest":
		s.CertificateRequests, err = appendObject(s.CertificateRequests, manifest)
	case "Issuer", "ClusterIssuer":
		s.Issuers, err = appendObject(s.Issuers, manifest)
	case "Order":
		s.Orders, err = appendObject(s.Orders, manifest)
	case "Challenge":
		s.Challenges, err = appendObject(s.Challenges, manifest)
	case "GatewayClass":
		s.GatewayClasses, err = appendObject(s.GatewayClasses, manifest)
	case "Gateway":
		s.Gateways, err = appendObject(s.Gateways, manifest)
	case "HTTPRoute", "GRPCRoute", "TLSRoute":
		s.Routes, err = appendObject(s.Routes, manifest)
	case "ReferenceGrant":
		s.ReferenceGrants, err = appendObject(s.ReferenceGrants, manifest)
	default:
		err = fmt.Errorf("no list of kind %s", head.Kind)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, manifest)
	}
	return true
}

func appendObject[T any](list []T, manifest string) ([]T, error) {
	var o T
	err := yaml.Unmarshal([]byte(manifest), &o)
	return append(slices.Clip(list), o), err
}
