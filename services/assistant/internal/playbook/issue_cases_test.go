package playbook_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/certmanager"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// waitForCertificate makes the certificate of the fixture unissued, and its request, order and challenge pending.
func waitForCertificate(s *engine.Snapshot) {
	c := &s.Certificates[0]
	c.Status = certmanager.CertificateStatus{Conditions: []metav1.Condition{
		condition("Ready", "False", "DoesNotExist", "Issuing certificate as Secret does not exist"), condition("Issuing", "True", "DoesNotExist", "Issuing certificate as Secret does not exist"),
	}}
	s.CertificateRequests[0].Status.Conditions[1] = condition("Ready", "False", "Pending", "Waiting on certificate issuance from order infra/store-1-2002: \"pending\"")
	s.Orders[0].Status.State = "pending"
	s.Challenges[0].Status.State = "pending"
}

// failOrder makes the last attempt of the fixture fail.
func failOrder(s *engine.Snapshot, state, reason string) {
	waitForCertificate(s)
	s.Certificates[0].Status.Conditions[1] = condition("Issuing", "False", "Failed", "The certificate request has failed to complete and will be retried")
	s.CertificateRequests[0].Status.Conditions[1] = condition("Ready", "False", "Failed", "Failed to wait for order resource \"store-1-2002\" to become ready: order is in \""+state+"\" state: "+reason)
	s.Orders[0].Status = certmanager.State{State: state, Reason: reason}
	s.Challenges = nil
}

// TestIssueCases: why cert-manager does not issue a certificate. The deepest failing object names the cause.
func TestIssueCases(t *testing.T) {
	t.Parallel()
	at := func(s *engine.Snapshot, ago time.Duration) *metav1.Time { return &metav1.Time{Time: s.Taken.Add(-ago)} }
	challenge := func(kind, reason, say string) changeCase {
		return changeCase{kind + ": " + reason, "certificate", "", func(s *engine.Snapshot) {
			waitForCertificate(s)
			s.Challenges[0].Spec.Type, s.Challenges[0].Status.Reason = kind, reason
		}, say}
	}
	checkCases(t, []changeCase{
		{"issued", "certificate", "", nil, ""},
		{"issuer absent", "certificate", "", func(s *engine.Snapshot) { waitForCertificate(s); s.Issuers = nil }, "The certificate has not been issued: the clusterissuer `letsencrypt` that it names does not exist."},
		{"issuer misspelt", "certificate", "", func(s *engine.Snapshot) {
			waitForCertificate(s)
			s.Certificates[0].Spec.IssuerRef.Name = "letsencrpt"
		}, "Let `spec.issuerRef.name` be `letsencrypt`"},
		{"issuer of the other kind", "certificate", "", func(s *engine.Snapshot) {
			waitForCertificate(s)
			s.Certificates[0].Spec.IssuerRef.Kind = ""
			s.Certificates[0].OwnerReferences = []metav1.OwnerReference{{Kind: "Ingress", Name: "front", Controller: new(true)}}
		}, "let `spec.issuerRef.kind` be `ClusterIssuer`, if it is the one that is meant. The certificate is made from the ingress `front`"},
		{"issuers unread", "certificate", "", func(s *engine.Snapshot) {
			waitForCertificate(s)
			s.Issuers, s.Unread["clusterissuers"] = nil, true
		}, "its request `store-1` has been waiting for 2 hours. (Confidence: medium.)"},
		{"issuers not served", "certificate", "", func(s *engine.Snapshot) {
			s.Issuers, s.CertificateKinds = nil, map[string]bool{"certificates": true}
			s.Certificates[0].Status.Conditions[0].Status = metav1.ConditionFalse
		}, "the Secret `store-tls` does not hold the wanted certificate"},
		{"issuer of somebody else", "certificate", "", func(s *engine.Snapshot) {
			waitForCertificate(s)
			s.Certificates[0].Spec.IssuerRef.Group = "awspca.cert-manager.io"
		}, "has been waiting"},
		{"issuer not ready", "certificate", "", func(s *engine.Snapshot) {
			waitForCertificate(s)
			s.Issuers[0].Status.Conditions[0] = condition("Ready", "False", "ErrRegisterACMEAccount", "Failed to register ACME account: 400 urn:ietf:params:acme:error:invalidEmail")
		}, "A consequence: certificate `store`. The certificate has not been issued: its clusterissuer `letsencrypt` is not ready."},
		{"issuer not ready, nothing issued", "certificate", "", func(s *engine.Snapshot) {
			s.Issuers[0].Status.Conditions[0] = condition("Ready", "False", "ErrGetKeyPair", "secret \"ca\" not found")
		}, "`ErrGetKeyPair`, that is, it cannot read its CA's key pair"},
		{"issuer nobody looked at", "certificate", "", func(s *engine.Snapshot) { s.Issuers[0].Status.Conditions = nil }, "No controller has processed the clusterissuer `letsencrypt`"},
		{"no request", "certificate", "", func(s *engine.Snapshot) { waitForCertificate(s); s.CertificateRequests = nil }, "cert-manager has not requested one, so its controller may not be running"},
		{"requests unread", "certificate", "", func(s *engine.Snapshot) {
			waitForCertificate(s)
			s.CertificateRequests, s.Unread["certificaterequests"] = nil, true
		}, "its requests could not be read"},
		{"created a moment ago", "certificate", "", func(s *engine.Snapshot) {
			waitForCertificate(s)
			s.CertificateRequests, s.Certificates[0].CreationTimestamp = nil, *at(s, time.Minute)
		}, ""},
		{"asked for a moment ago", "certificate", "", func(s *engine.Snapshot) {
			waitForCertificate(s)
			s.CertificateRequests[0].CreationTimestamp, s.Challenges[0].CreationTimestamp = *at(s, time.Minute), *at(s, time.Minute)
			s.Challenges[0].Status.Reason = "Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200'"
		}, ""},
		{"request denied", "certificate", "", func(s *engine.Snapshot) {
			waitForCertificate(s)
			s.CertificateRequests[0].Status.Conditions[0] = condition("Denied", "True", "policy.cert-manager.io", "No policy approved this request")
		}, "its request `store-1` was denied"},
		{"request not valid", "certificate", "", func(s *engine.Snapshot) {
			waitForCertificate(s)
			s.CertificateRequests[0].Status.Conditions[0] = condition("InvalidRequest", "True", "InvalidRequest", "bad usages")
		}, "its request `store-1` is not valid"},
		{"request not approved", "certificate", "", func(s *engine.Snapshot) { waitForCertificate(s); s.CertificateRequests[0].Status.Conditions = nil }, "its request `store-1` has not been approved"},
		{"request refused", "certificate", "", func(s *engine.Snapshot) {
			failOrder(s, "errored", "")
			s.Orders = nil
		}, "the clusterissuer `letsencrypt` refused its request `store-1`"},
		{"newest request counts", "certificate", "", func(s *engine.Snapshot) {
			failOrder(s, "errored", "x")
			again := s.CertificateRequests[0]
			again.Name, again.CreationTimestamp = "store-2", *at(s, 10*time.Minute)
			again.Status.Conditions = []metav1.Condition{condition("Denied", "True", "policy", "no")}
			s.CertificateRequests = append(s.CertificateRequests, again)
		}, "its request `store-2` was denied"},
		{"rate limit", "certificate", "", func(s *engine.Snapshot) {
			failOrder(s, "errored", "Failed to create Order: 429 urn:ietf:params:acme:error:rateLimited: too many certificates (5) already issued for this exact set of identifiers, retry after 2026-01-03")
		}, "a rate limit is used up"},
		{"order failed", "certificate", "", func(s *engine.Snapshot) {
			failOrder(s, "invalid", "Failed to finalize Order: 403 urn:ietf:params:acme:error:badCSR")
		}, "its order at the ACME server is `invalid`"},
		challenge("HTTP-01", "Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200'", "the `HTTP-01` challenge for `www.store.example` waits, since another server answers at port 80 of `www.store.example`"),
		challenge("HTTP-01", "Waiting for HTTP-01 challenge propagation: failed to perform self check GET request 'http://www.store.example/.well-known/acme-challenge/t': dial tcp: lookup www.store.example: no such host", "since the name `www.store.example` has no address"),
		challenge("HTTP-01", "Waiting for HTTP-01 challenge propagation: failed to perform self check GET request 'http://www.store.example/.well-known/acme-challenge/t': dial tcp 203.0.113.9:80: connect: connection refused", "nothing answers at port 80 of `www.store.example`"),
		challenge("DNS-01", "Waiting for DNS-01 challenge propagation: DNS record for \"www.store.example\" not yet propagated", "its TXT record is not seen for `www.store.example`"),
		challenge("DNS-01", "AccessDenied: User is not authorized to perform: route53:ChangeResourceRecordSets", "the DNS provider does not let the solver write the record of `www.store.example`"),
		challenge("DNS-01", "something else", "the `DNS-01` challenge for `www.store.example` waits. (Confidence: high.)"),
		{"challenge failed", "certificate", "", func(s *engine.Snapshot) {
			waitForCertificate(s)
			s.Challenges[0].Status = certmanager.State{State: "invalid", Reason: "CAA record for www.store.example prevents issuance"}
		}, "the `HTTP-01` challenge for `www.store.example` failed, since the CAA records of the domain do not let this authority issue"},
		{"renewal failed", "certificate", "", func(s *engine.Snapshot) {
			valid := s.Certificates[0].Status
			failOrder(s, "invalid", "x")
			valid.Conditions = append(valid.Conditions, s.Certificates[0].Status.Conditions[1])
			s.Certificates[0].Status = valid
		}, "The renewal of the certificate failed: its order at the ACME server is `invalid`."},
		{"renewal is late", "certificate", "", func(s *engine.Snapshot) { s.Certificates[0].Status.RenewalTime = at(s, 2*time.Hour) },
			"The certificate was to be renewed on 2026-01-02T10:00:00Z, has not been, and expires on 2026-04-02T09:02:00Z: its last request was granted, and cert-manager has not started another one"},
		{"renewal is due", "certificate", "", func(s *engine.Snapshot) { s.Certificates[0].Status.RenewalTime = at(s, time.Minute) }, ""},
		{"expired", "certificate", "", func(s *engine.Snapshot) {
			s.Certificates[0].Status.NotAfter, s.Certificates[0].Status.Conditions[0] = at(s, time.Hour), condition("Ready", "False", "Expired", "Certificate has expired")
		}, "The certificate expired on 2026-01-02T11:00:00Z, and has not been renewed"},
		{"being deleted", "certificate", "", func(s *engine.Snapshot) { waitForCertificate(s); s.Certificates[0].DeletionTimestamp = at(s, 0) }, ""},
	})
}

// TestCertificateConsequences: a Secret that is absent or broken because no certificate is issued has no separate
// finding.
func TestCertificateConsequences(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*engine.Snapshot){
		"absent": func(s *engine.Snapshot) { s.Secrets = nil },
		"expired": func(s *engine.Snapshot) {
			c := soundCertificate("*.store.example")
			c.NotAfter = s.Taken.Add(-time.Hour)
			s.Secrets[0].Certificate = &c
		},
	} {
		s := joinSnapshots(readSnapshot(t, "gateway"), readSnapshot(t, "certificate"))
		waitForCertificate(s)
		s.Challenges[0].Status.Reason = "wrong status code '404', expected '200'"
		change(s)
		found := playbook.Diagnose(s, "")
		if len(found) != 1 || found[0].Class != engine.CertificateNotIssued || !slices.ContainsFunc(found[0].Consequences, func(f engine.Finding) bool { return f.Class == engine.TLSSecret }) {
			t.Errorf("%s: found %+v; want the certificate, with the Secret as a consequence", name, found)
		}
		// Where the certificate is as specified, the Secret has a separate finding.
		s = joinSnapshots(readSnapshot(t, "gateway"), readSnapshot(t, "certificate"))
		change(s)
		if found = playbook.Diagnose(s, ""); len(found) != 1 || found[0].Class != engine.TLSSecret || !strings.Contains(found[0].Text, "cert-manager writes the Secret") {
			t.Errorf("%s beside a certificate that is ready: found %+v; want the Secret, and who writes it", name, found)
		}
	}
}

// TestIssuerConcernsNamespaces: a question about a namespace covers the cluster issuer that its certificates wait for.
func TestIssuerConcernsNamespaces(t *testing.T) {
	t.Parallel()
	s := readSnapshot(t, "certificate")
	s.Issuers[0].Status.Conditions[0].Status = metav1.ConditionFalse
	for namespace, want := range map[string]int{"infra": 1, "bank": 0} {
		if found := playbook.Diagnose(s, namespace); len(found) != want {
			t.Errorf("namespace %s: found %+v; want %d", namespace, found, want)
		}
	}
}
