package investigate_test

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// TestCertificateQuestions asks about a TLS Secret, by its name and through what it serves.
func TestCertificateQuestions(t *testing.T) {
	t.Parallel()
	const expired = "Its certificate expired on 2025-12-31T12:00:00Z"
	certificate := func(until time.Duration, names ...string) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			c := &redact.Certificate{Names: names, NotBefore: s.Taken.AddDate(0, -2, 0), NotAfter: s.Taken.Add(until)}
			s.Secrets = append(s.Secrets, engine.SecretKeys{Namespace: "store", Name: "store-tls", Keys: []string{"tls.crt", "tls.key"}, Certificate: c})
			s.Ingresses[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number = 80
			s.Ingresses[0].Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"store.example"}, SecretName: "store-tls"}}
		}
	}
	unused := func(s *engine.Snapshot) {
		certificate(-48*time.Hour, "store.example")(s)
		s.Ingresses[0].Spec.TLS = nil
	}
	for _, row := range []struct {
		name, query string
		change      func(*engine.Snapshot)
		must, not   []string
	}{
		{"at the Ingress", "why does ingress front not work?", certificate(-48*time.Hour, "store.example"), []string{expired, "Secret `store-tls`"}, []string{allClear}},
		{"at the host", "why do browsers refuse store.example?", certificate(-48*time.Hour, "store.example"), []string{expired}, []string{allClear}},
		{"at the Secret", "what is wrong with secret store-tls?", certificate(-48*time.Hour, "store.example"), []string{expired, "The ingress `front` serves it."}, []string{allClear, "not judged"}},
		{"as a symptom", "why do we get certificate errors in store?", certificate(-48*time.Hour, "store.example"), []string{expired}, []string{allClear}},
		{"without a place", "are any certificates expired?", certificate(-48*time.Hour, "store.example"), []string{expired}, []string{allClear}},
		{"names, at the Secret", "what is wrong with secret store-tls?", certificate(48*time.Hour, "shop.example"), []string{"does not cover `store.example`"}, []string{allClear, "expired"}},
		{"sound, at the Secret", "is secret store-tls valid?", certificate(48*time.Hour, "store.example"), []string{"has a certificate for `store.example`, valid from 2025-11-02T12:00:00Z until 2026-01-04T12:00:00Z"}, []string{"expired", "not judged", "does not cover"}},
		{"sound, at the Ingress", "what is wrong with ingress front?", certificate(48*time.Hour, "store.example"), nil, []string{"expired", "certificate"}},
		{"unused, at the Secret", "what is wrong with secret store-tls?", unused, []string{expired}, []string{allClear}},
		{"unused, of everything", "what is wrong?", unused, nil, []string{"expired"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := readFixture(t, "", "a16_ingress_port")
			row.change(s)
			checkAnswer(t, row.query, askOnce(t, toolsOn(s), "", row.query), row.must, row.not)
		})
	}
}
