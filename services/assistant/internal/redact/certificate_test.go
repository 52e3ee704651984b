package redact_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

var (
	validFrom  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	validUntil = time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
)

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// makeKey returns a private key with its PEM form.
func makeKey(t *testing.T, kind string) (crypto.Signer, []byte) {
	t.Helper()
	var key crypto.Signer
	var err error
	switch kind {
	case "rsa", "rsa in PKCS #1":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	switch kind {
	case "rsa in PKCS #1":
		return key, encodePEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key.(*rsa.PrivateKey)))
	case "ecdsa in SEC 1":
		der, err := x509.MarshalECPrivateKey(key.(*ecdsa.PrivateKey))
		if err != nil {
			t.Fatal(err)
		}
		return key, append(encodePEM("EC PARAMETERS", []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}), encodePEM("EC PRIVATE KEY", der)...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, encodePEM("PRIVATE KEY", der)
}

func makeCertificate(t *testing.T, key crypto.Signer, hosts ...string) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "common.example"}, NotBefore: validFrom, NotAfter: validUntil,
		DNSNames: hosts, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return encodePEM("CERTIFICATE", der)
}

// secretJSON returns a TLS Secret as the API does.
func secretJSON(t *testing.T, kind string, data map[string][]byte) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"kind": "SecretList", "items": []any{map[string]any{"metadata": map[string]any{"namespace": "shop", "name": "web-tls"}, "type": kind, "data": data}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// readCertificates sends a list of Secrets through the transport, and returns the reported certificates and the body.
func readCertificates(t *testing.T, body []byte) (map[string]redact.Certificate, string) {
	t.Helper()
	told := map[string]redact.Certificate{}
	ctx := redact.WithCertificates(t.Context(), func(namespace, name string, c redact.Certificate) { told[namespace+"/"+name] = c })
	r := httptest.NewRequest(http.MethodGet, "https://cluster.example"+secretsPath, nil).WithContext(ctx)
	resp, err := redact.Transport(answer{"application/json", body}, nil).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return told, string(out)
}

func TestCertificatesAreTold(t *testing.T) {
	t.Parallel()
	key, keyPEM := makeKey(t, "ecdsa")
	_, other := makeKey(t, "ecdsa")
	cert := makeCertificate(t, key, "Shop.example", "*.shop.example", "not a host; at all")
	chain := append(bytes.Clone(cert), makeCertificate(t, key, "authority.example")...)
	sound := redact.Certificate{Names: []string{"shop.example", "*.shop.example", "10.0.0.1"}, NotBefore: validFrom, NotAfter: validUntil}
	faulty := func(f redact.CertificateFault) redact.Certificate {
		c := sound
		c.Fault = f
		return c
	}
	const secretType, opaque = "kubernetes.io/tls", "Opaque"
	for _, tc := range []struct {
		name, kind string
		cert, key  []byte
		want       redact.Certificate
	}{
		{"sound", secretType, cert, keyPEM, sound},
		{"of another type, with both keys", opaque, cert, keyPEM, sound},
		{"chain", secretType, chain, keyPEM, sound},
		{"key of another", secretType, cert, other, faulty(redact.KeyOfAnother)},
		{"no key", secretType, cert, nil, faulty(redact.KeyEmpty)},
		{"certificate in place of the key", secretType, cert, cert, faulty(redact.KeyNotPEM)},
		{"damaged key", secretType, cert, encodePEM("PRIVATE KEY", []byte("torn")), faulty(redact.KeyUnreadable)},
		{"locked key", secretType, cert, encodePEM("ENCRYPTED PRIVATE KEY", []byte("locked")), faulty(redact.KeyUnreadable)},
		{"no certificate", secretType, nil, keyPEM, redact.Certificate{Fault: redact.CertificateEmpty}},
		{"swapped", secretType, keyPEM, cert, redact.Certificate{Fault: redact.CertificateIsKey}},
		{"text", secretType, []byte("see the vault"), keyPEM, redact.Certificate{Fault: redact.CertificateNotPEM}},
		{"torn PEM", secretType, cert[:len(cert)/2], keyPEM, redact.Certificate{Fault: redact.CertificateNotPEM}},
		{"damaged certificate", secretType, encodePEM("CERTIFICATE", []byte("torn")), keyPEM, redact.Certificate{Fault: redact.CertificateUnreadable}},
	} {
		told, _ := readCertificates(t, secretJSON(t, tc.kind, map[string][]byte{"tls.crt": tc.cert, "tls.key": tc.key}))
		if want := map[string]redact.Certificate{"shop/web-tls": tc.want}; !reflect.DeepEqual(told, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", tc.name, told, want)
		}
	}
	for name, data := range map[string]map[string][]byte{
		"no pair": {"password": []byte("hunter2")}, "authority alone": {"tls.crt": cert}, "key alone": {"tls.key": keyPEM},
	} {
		if told, _ := readCertificates(t, secretJSON(t, opaque, data)); len(told) != 0 {
			t.Errorf("%s: told %v; want nothing of a Secret that is no pair", name, told)
		}
	}
}

func TestKeysOfEachForm(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"rsa", "rsa in PKCS #1", "ecdsa", "ecdsa in SEC 1", "ed25519"} {
		key, keyPEM := makeKey(t, kind)
		told, _ := readCertificates(t, secretJSON(t, "kubernetes.io/tls", map[string][]byte{"tls.crt": makeCertificate(t, key, "shop.example"), "tls.key": keyPEM}))
		if got := told["shop/web-tls"]; got.Fault != redact.CertificateSound || len(got.Names) != 2 {
			t.Errorf("%s: got %+v, want a sound pair with two names", kind, got)
		}
	}
}

// TestCertificatesLeaveValuesRedacted: neither the body nor the reported certificates contain any of the values.
func TestCertificatesLeaveValuesRedacted(t *testing.T) {
	t.Parallel()
	key, keyPEM := makeKey(t, "ecdsa")
	for name, data := range map[string]map[string][]byte{
		"sound":   {"tls.crt": makeCertificate(t, key, "shop.example"), "tls.key": keyPEM},
		"swapped": {"tls.crt": keyPEM, "tls.key": keyPEM},
		"torn":    {"tls.crt": encodePEM("SECRET-LABEL hunter2", []byte("hunter2")), "tls.key": encodePEM("CERTIFICATE", []byte("hunter2"))},
		"text":    {"tls.crt": []byte("hunter2"), "tls.key": []byte("hunter2")},
	} {
		told, body := readCertificates(t, secretJSON(t, "kubernetes.io/tls", data))
		if len(told) != 1 {
			t.Errorf("%s: told %d certificates, want 1", name, len(told))
		}
		facts, err := json.Marshal(told)
		if err != nil {
			t.Fatal(err)
		}
		values, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		var encoded map[string]string
		if err := json.Unmarshal(values, &encoded); err != nil {
			t.Fatal(err)
		}
		for key, value := range encoded {
			for _, text := range []string{value, value[:8], "hunter2", "BEGIN"} {
				if strings.Contains(body, text) || strings.Contains(string(facts), text) {
					t.Errorf("%s: %q of %s is left in %s or %s", name, text, key, body, facts)
				}
			}
			if want := "[redacted "; !strings.Contains(body, `"`+key+`":"`+want) {
				t.Errorf("%s: %s; want %s redacted", name, body, key)
			}
		}
	}
}

func TestCertificateCovers(t *testing.T) {
	t.Parallel()
	c := redact.Certificate{Names: []string{"shop.example", "*.shop.example", "10.0.0.1"}}
	for host, want := range map[string]bool{
		"shop.example": true, "SHOP.example": true, "shop.example.": true, "www.shop.example": true, "*.shop.example": true, "10.0.0.1": true,
		"a.b.shop.example": false, "example": false, "evilshop.example": false, "*.www.shop.example": false, "shop.example.org": false, "10.0.0.2": false, "": false,
	} {
		if got := c.Covers(host); got != want {
			t.Errorf("covers %q: got %v, want %v", host, got, want)
		}
	}
	if single := (redact.Certificate{Names: []string{"shop.example"}}); single.Covers("www.shop.example") || single.Covers("*.shop.example") {
		t.Error("a name without a wildcard covers a host below it")
	}
}
