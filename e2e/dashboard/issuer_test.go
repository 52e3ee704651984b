//go:build e2e

package dashboard_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	issuerClient   = "dashboard"
	issuerSecret   = "secret-of-the-dashboard-at-the-issuer"
	issuerAudience = "platform"
	issuerCLI      = "mlp" // a public client
)

// issuer is an identity provider of several realms, each an issuer below its path. The query of the authorization
// request sets the person and level: `as`, `level` and `groups`.
type issuer struct {
	server *httptest.Server
	key    ed25519.PrivateKey
	mu     sync.Mutex // guards codes
	codes  map[string]url.Values
	cli    publicClient
}

func newIssuer() *issuer {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	i := &issuer{key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{realm}/.well-known/openid-configuration", i.describe)
	mux.HandleFunc("GET /{realm}/keys", i.serveKeys)
	mux.HandleFunc("GET /{realm}/authorize", i.authorize)
	mux.HandleFunc("POST /{realm}/token", i.exchange)
	mux.HandleFunc("POST /{realm}/device", i.cli.startDevice)
	mux.HandleFunc("POST /{realm}/revoke", i.cli.revoke)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {}) // in place of the bus bridge, which is not run
	i.server = httptest.NewServer(mux)
	return i
}

func (i *issuer) url(realm string) string { return i.server.URL + "/" + realm }

// trust returns a realm's entry in a trust file; its people belong to the tenant.
func (i *issuer) trust(realm, tenant, more string) string {
	return fmt.Sprintf("- name: %s\n  issuer: %s\n  audience: %s\n  algorithms: [EdDSA]\n  tenant: %s\n  clients: {dashboard: {client_id: %s, client_secret_ref: \"env:E2E_ISSUER_SECRET\"}, cli: {client_id: %s}}\n%s",
		realm, i.url(realm), issuerAudience, tenant, issuerClient, issuerCLI, more)
}

func (i *issuer) describe(w http.ResponseWriter, r *http.Request) {
	base := i.url(r.PathValue("realm"))
	answerJSON(w, map[string]any{
		"issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token", "device_authorization_endpoint": base + "/device", "revocation_endpoint": base + "/revoke", "jwks_uri": base + "/keys",
		"authorization_response_iss_parameter_supported": true, "response_types_supported": []string{"code"},
		"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"EdDSA"},
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
	})
}

func (i *issuer) serveKeys(w http.ResponseWriter, _ *http.Request) {
	public := i.key.Public().(ed25519.PublicKey)
	answerJSON(w, map[string]any{"keys": []any{map[string]any{
		"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": "k1", "x": base64.RawURLEncoding.EncodeToString(public),
	}}})
}

// authorize signs in the user that the query names, without asking anything.
func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	code := rand.Text()
	i.mu.Lock()
	i.codes[code] = q
	i.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.url(r.PathValue("realm"))}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (i *issuer) exchange(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("client_id") == issuerCLI {
		i.exchangePublic(w, r)
		return
	}
	client, secret, _ := r.BasicAuth()
	i.mu.Lock()
	asked, known := i.codes[r.PostFormValue("code")]
	delete(i.codes, r.PostFormValue("code"))
	i.mu.Unlock()
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !known || client != issuerClient || secret != issuerSecret || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(challenge[:]) {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	now := time.Now().Unix()
	claims := map[string]any{
		"iss": i.url(r.PathValue("realm")), "sub": asked.Get("as"), "aud": issuerClient, "iat": now, "exp": now + 300, "nonce": asked.Get("nonce"),
		"auth_time": now, "name": asked.Get("as"), "groups": strings.Fields(asked.Get("groups")),
	}
	if level := asked.Get("level"); level != "" {
		claims["acr"] = level
	}
	token := i.sign(map[string]any{"typ": "JWT"}, claims)
	answerJSON(w, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 300, "id_token": token})
}

// accessToken returns a bearer token of a member of a group.
func (i *issuer) accessToken(realm, subject, group string, more map[string]any) string {
	now := time.Now().Unix()
	claims := map[string]any{
		"iss": i.url(realm), "sub": subject, "aud": issuerAudience, "iat": now, "exp": now + 3600, "auth_time": now, "acr": "gold", "groups": []string{group},
	}
	maps.Copy(claims, more)
	return i.sign(map[string]any{"typ": "at+jwt"}, claims)
}

func (i *issuer) sign(header, claims map[string]any) string {
	header = maps.Clone(header)
	header["alg"], header["kid"] = "EdDSA", "k1"
	signed := encodeSegment(header) + "." + encodeSegment(claims)
	return signed + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(i.key, []byte(signed)))
}

// encodeSegment encodes a part of a JWT.
func encodeSegment(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
