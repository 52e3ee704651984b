// Package certmanager holds the kinds of cert-manager that are diagnosed, with the fields that a diagnosis reads. The project's own
// module is not used: it would bring its clients along for a few structs.
package certmanager

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group is the API group of certificates, their requests and issuers, and ACMEGroup that of orders and challenges.
const (
	Group     = "cert-manager.io"
	ACMEGroup = "acme.cert-manager.io"
)

// NameAnnotation names, on a request, the Certificate that it is for.
const NameAnnotation = "cert-manager.io/certificate-name"

// Certificate requests a certificate to be stored in a Secret, and renewed there.
type Certificate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              CertificateSpec   `json:"spec"`
	Status            CertificateStatus `json:"status"`
}

// CertificateSpec is the desired state of a Certificate.
type CertificateSpec struct {
	SecretName string    `json:"secretName"`
	CommonName string    `json:"commonName"`
	DNSNames   []string  `json:"dnsNames"`
	IssuerRef  IssuerRef `json:"issuerRef"`
}

// CertificateStatus is the state of a Certificate as the controller reports it. Unknown times are nil.
type CertificateStatus struct {
	Conditions      []metav1.Condition `json:"conditions"`
	NotAfter        *metav1.Time       `json:"notAfter"`
	RenewalTime     *metav1.Time       `json:"renewalTime"`
	LastFailureTime *metav1.Time       `json:"lastFailureTime"`
}

// IssuerRef names an issuer.
type IssuerRef struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`  // empty: Issuer
	Group string `json:"group"` // empty: cert-manager's own
}

// IssuerKind is the kind of the issuer.
func (r IssuerRef) IssuerKind() string { return cmp.Or(r.Kind, "Issuer") }

// IsForeign reports whether the issuer is of a third-party kind.
func (r IssuerRef) IsForeign() bool {
	return cmp.Or(r.Group, Group) != Group || r.IssuerKind() != "Issuer" && r.Kind != "ClusterIssuer"
}

// CertificateRequest is one attempt to get a certificate.
type CertificateRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Issuer is an Issuer or ClusterIssuer, as its kind says.
type Issuer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Order is a request for a certificate to an ACME server.
type Order struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            State `json:"status"`
}

// Challenge is the proof that an ACME server requires at one host before it signs. Its key and token are not read.
type Challenge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		DNSName string `json:"dnsName"`
		Type    string `json:"type"` // HTTP-01 or DNS-01
	} `json:"spec"`
	Status State `json:"status"`
}

// State is how far an order or challenge is: pending, ready, processing, valid, invalid, expired, errored; empty: not begun.
type State struct {
	State  string `json:"state"`
	Reason string `json:"reason"`
}

// HasFailed reports whether the ACME server, or the way to it, refused for good.
func (s State) HasFailed() bool {
	return s.State == "invalid" || s.State == "expired" || s.State == "errored"
}
