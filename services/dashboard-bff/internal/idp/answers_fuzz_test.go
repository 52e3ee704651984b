package idp

import (
	"bytes"
	"crypto/rsa"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
	"github.com/mlp-platform/platform/libs/trust"
)

// publishing is a provider that answers with fixed bytes.
type publishing struct{ discovery, keys, introspection []byte }

func (p publishing) RoundTrip(r *http.Request) (*http.Response, error) {
	body := p.keys
	switch {
	case strings.HasSuffix(r.URL.Path, discoveryPath):
		body = p.discovery
	case r.Method == http.MethodPost:
		body = p.introspection
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

// FuzzProviderAnswers: whatever a provider publishes, it is only accepted for its own issuer, at addresses that the
// trust file allows, with public keys of sizes that can be verified with; its introspection of an opaque token yields
// a person of this audience or a refusal. Each error is short and names whose fault it is.
func FuzzProviderAnswers(f *testing.F) {
	const issuer = "https://x.example"
	const sound = `{"issuer": "https://x.example", "jwks_uri": "https://x.example/k", "introspection_endpoint": "https://x.example/i"}`
	f.Add([]byte(`{"issuer": "https://x.example", "authorization_endpoint": "https://x.example/a", "token_endpoint": "https://x.example/t", "jwks_uri": "https://x.example/k", "introspection_endpoint": "https://x.example/i"}`),
		[]byte(`{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}, {"kty": "RSA", "e": "AQAB", "n": "AQAB"}]}`),
		[]byte(`{"active": true, "iss": "https://x.example", "aud": "p", "exp": 9999999999, "sub": "a"}`))
	f.Add([]byte(`{"issuer": "https://x.example", "jwks_uri": "http://169.254.169.254/"}`), []byte(`{"keys": {}}`), []byte(`{"active": "true"}`))
	f.Add([]byte(`{"issuer": "https://x.example", "jwks_uri": "https://x.example/k"}`), []byte(`{"keys": [`+strings.Repeat(`{"kty":"RSA"},`, 70)+`1]}`), []byte(`{"active": true, "exp": 1e300}`))
	f.Add([]byte(sound), []byte(`{"keys": [{"kty": "RSA", "e": "AQAB", "n": "`+strings.Repeat("_", 40_000)+`"}]}`), []byte(`{"active": true, "aud": ["p"], "nbf": "`+strings.Repeat("9", 20_000)+`"}`))
	f.Add([]byte(`{"issuer": "`+strings.Repeat("x", 20_000)+`"}`), []byte(`{"keys": []}`), []byte(`null`))
	f.Add([]byte(sound), []byte(`{"keys": []}`), []byte(`{"active": true, "iss": "`+strings.Repeat("y", 20_000)+`"}`))
	f.Add([]byte(sound), []byte(`{"keys": [{"kty": "oct", "k": "AAAA"}, {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, discovery, keys, introspection []byte) {
		entry := &trust.Provider{
			Name: "a", Issuer: issuer, Discovery: true, Audience: []string{"p"}, Algorithms: []string{"EdDSA", "RS256", "ES256"},
			Introspection: &trust.Introspection{ClientID: "c"},
		}
		client := &http.Client{Transport: publishing{discovery, keys, introspection}}
		p := newProvider(entry, client, time.Now)
		hostiletest.CheckAllocation(t, uint64(16<<20+256*(len(discovery)+len(keys)+len(introspection))), func() {
			m, err := p.metadata.get(t.Context())
			checkFault(t, err)
			if err == nil && (m.Issuer != issuer || checkEndpoint(entry, m.JWKSURI) != "" || m.TokenEndpoint != "" && checkEndpoint(entry, m.TokenEndpoint) != "") {
				t.Errorf("took %+v; want the issuer %s and addresses that are allowed", m, issuer)
			}
			list, err := p.loadKeys(t.Context())
			checkFault(t, err)
			for _, k := range list {
				if r, ok := k.Key.(*rsa.PublicKey); !k.IsPublic() || ok && (r.N.BitLen() < minRSABits || r.N.BitLen() > jose.MaxRSAModulusBits) {
					t.Errorf("took a key of type %T; want public ones of %d to %d bits", k.Key, minRSABits, jose.MaxRSAModulusBits)
				}
			}
			claims, err := p.opaque.look(t.Context(), "opaque", nil)
			checkFault(t, err)
			if active, _ := claims["active"].(bool); err == nil && !active {
				t.Errorf("took %v; want only what is active", claims)
			}
		})
	})
}

func checkFault(t *testing.T, err error) {
	t.Helper()
	if err != nil && (!errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrToken) || len(err.Error()) > 8<<10) {
		t.Errorf("the error has %d bytes: %.300v; want at most 8 KiB that wrap ErrUnreachable or ErrToken", len(err.Error()), err)
	}
}
