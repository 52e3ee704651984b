package snapshot_test

import (
	"slices"
	"strings"
	"testing"
)

const (
	certificatePath = "/apis/cert-manager.io/v1/"
	acmePath        = "/apis/acme.cert-manager.io/v1/"
)

// certificateAnswers are the responses of a cluster with cert-manager; listing requests is refused.
func certificateAnswers() map[string]string {
	resource := func(name, kind, namespaced string) string {
		return `{"name":"` + name + `","kind":"` + kind + `","namespaced":` + namespaced + `,"verbs":["get","list"]}`
	}
	group := func(name string) string {
		return `{"name":"` + name + `","versions":[{"groupVersion":"` + name + `/v1","version":"v1"}],"preferredVersion":{"groupVersion":"` + name + `/v1","version":"v1"}}`
	}
	return map[string]string{
		"/api":         discovery["/api"],
		"/api/v1":      discovery["/api/v1"],
		"/api/v1/pods": `{"kind":"PodList","apiVersion":"v1","items":[]}`,
		"/apis":        `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + group("cert-manager.io") + "," + group("acme.cert-manager.io") + `]}`,
		"/apis/cert-manager.io/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"cert-manager.io/v1","resources":[` +
			resource("certificates", "Certificate", "true") + "," + resource("certificaterequests", "CertificateRequest", "true") + "," +
			resource("issuers", "Issuer", "true") + "," + resource("clusterissuers", "ClusterIssuer", "false") + `]}`,
		"/apis/acme.cert-manager.io/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"acme.cert-manager.io/v1","resources":[` +
			resource("orders", "Order", "true") + "," + resource("challenges", "Challenge", "true") + `]}`,
		certificatePath + "certificates": `{"kind":"CertificateList","apiVersion":"cert-manager.io/v1","items":[
			{"metadata":{"namespace":"shop","name":"web"},"spec":{"secretName":"web-tls","dnsNames":["a.example"],"issuerRef":{"name":"ca","kind":"ClusterIssuer"}},"status":{"notAfter":"2026-02-01T00:00:00Z","conditions":[{"type":"Ready","status":"False","reason":"X","message":"password=hunter2-value","lastTransitionTime":"2026-01-01T00:00:00Z"}]}},
			{"metadata":{"namespace":"dark","name":"hidden"},"spec":{}}]}`,
		certificatePath + "certificaterequests": "",
		certificatePath + "issuers":             `{"kind":"IssuerList","apiVersion":"cert-manager.io/v1","items":[{"metadata":{"namespace":"shop","name":"own"},"spec":{}}]}`,
		certificatePath + "clusterissuers":      `{"kind":"ClusterIssuerList","apiVersion":"cert-manager.io/v1","items":[{"metadata":{"name":"ca"},"spec":{}}]}`,
		acmePath + "orders":                     `{"kind":"OrderList","apiVersion":"acme.cert-manager.io/v1","items":[{"metadata":{"namespace":"shop","name":"web-1"},"status":{"state":"errored","reason":"password=hunter2-value"}}]}`,
		acmePath + "challenges":                 `{"kind":"ChallengeList","apiVersion":"acme.cert-manager.io/v1","items":[{"metadata":{"namespace":"shop","name":"web-1-1"},"spec":{"dnsName":"a.example","type":"DNS-01","key":"k","token":"t"},"status":{"state":"pending","reason":"password=hunter2-value"}}]}`,
	}
}

// TestCertificates: the cert-manager kinds that the cluster serves are read, without hidden or secret data.
func TestCertificates(t *testing.T) {
	t.Parallel()
	s, _, calls := readFrom(t, certificateAnswers())
	if len(s.Certificates) != 1 || s.Certificates[0].Spec.IssuerRef.Name != "ca" || s.Certificates[0].Status.NotAfter == nil {
		t.Errorf("certificates %+v; want the one that is visible, with its issuer and its end", s.Certificates)
	}
	if len(s.Issuers) != 2 || s.Issuers[0].Kind != "Issuer" || s.Issuers[1].Kind != "ClusterIssuer" {
		t.Errorf("issuers %+v; want an Issuer and a ClusterIssuer", s.Issuers)
	}
	if len(s.Orders) != 1 || len(s.Challenges) != 1 || s.Challenges[0].Spec.Type != "DNS-01" {
		t.Fatalf("orders %+v, challenges %+v; want one of each", s.Orders, s.Challenges)
	}
	for _, message := range []string{s.Certificates[0].Status.Conditions[0].Message, s.Orders[0].Status.Reason, s.Challenges[0].Status.Reason} {
		if strings.Contains(message, "hunter2") {
			t.Errorf("a status says %q; want the password redacted", message)
		}
	}
	if !s.Unread["certificaterequests"] || s.Unread["certificates"] || s.Unread["gateways"] {
		t.Errorf("not read: %v; want the requests, which are forbidden", s.Unread)
	}
	if line := calls.lines[len(calls.lines)-1]; !strings.Contains(line, "certificates,issuers,clusterissuers,certificaterequests,orders,challenges") {
		t.Errorf("the last call is %s; want the kinds of cert-manager in one line", line)
	}
}

// TestNoCertificates: a cluster without cert-manager gets no request for it, and no answer mentions it.
func TestNoCertificates(t *testing.T) {
	t.Parallel()
	answers := certificateAnswers()
	answers["/apis"] = discovery["/apis"]
	s, _, calls := readFrom(t, answers)
	if s.Unread["certificates"] || slices.ContainsFunc(calls.lines, func(l string) bool { return strings.Contains(l, "certificates") }) {
		t.Errorf("not read %v, calls\n%s; want nothing of cert-manager", s.Unread, strings.Join(calls.lines, "\n"))
	}
}
