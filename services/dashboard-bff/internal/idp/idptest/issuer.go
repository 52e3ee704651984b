// Package idptest is a small OpenID provider for tests, made to misbehave: each of its answers can be bent in the way
// that a check of ours exists for.
package idptest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
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
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// The registration of the dashboard.
const (
	ClientID     = "dashboard"
	ClientSecret = "secret of the test client"
	Audience     = "platform"
)

// Bends change the provider's answers; the zero value is a well-behaved provider. Set them through Issuer.Bend.
type Bends struct {
	Iss          *string        // of the authorization response; nil: the issuer's, "": left out
	NoIssPromise bool           // the discovery document does not promise iss
	Error        string         // of the authorization response, in place of a code
	Discovery    map[string]any // members of the discovery document to replace; nil removes one
	// Handle takes a request's place, if it returns true.
	Handle func(w http.ResponseWriter, r *http.Request) bool
	// Claims replaces claims of ID tokens; nil removes one.
	Claims map[string]any
	Header map[string]any // of the ID token
	// Sign makes the ID token; nil: the issuer's key does.
	Sign func(header, claims map[string]any) string
}

// Issuer is the provider. Its methods may be called at once from many goroutines.
type Issuer struct {
	URL string

	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex // guards those below
	bends    Bends
	person   map[string]any // claims of the next sign-in
	key      *ecdsa.PrivateKey
	kid      int
	codes    map[string]url.Values // by code: the authorization request
	requests []*http.Request
	opaque   map[string]map[string]any // by opaque token: the introspection's answer
}

// New starts a provider.
func New(t testing.TB) *Issuer {
	i := &Issuer{t: t, codes: map[string]url.Values{}, opaque: map[string]map[string]any{}, person: map[string]any{"sub": "1001"}}
	i.Rotate()
	i.server = httptest.NewServer(http.HandlerFunc(i.serve))
	i.URL = i.server.URL
	t.Cleanup(i.server.Close)
	return i
}

// Trust returns the provider's entry in a trust file, with further lines.
func (i *Issuer) Trust(name, more string) string {
	return fmt.Sprintf("- name: %s\n  issuer: %s\n  audience: %s\n  algorithms: [ES256]\n  clients: {dashboard: {client_id: %s, client_secret_ref: \"env:SECRET\"}}\n%s",
		name, i.URL, Audience, ClientID, more)
}

// Environment returns the secret that Trust refers to.
func Environment(name string) (string, bool) { return ClientSecret, name == "SECRET" }

// Bend sets how the provider misbehaves.
func (i *Issuer) Bend(b Bends) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.bends = b
}

// SignsIn sets the claims of the next sign-in.
func (i *Issuer) SignsIn(claims map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.person = maps.Clone(claims)
}

// Rotate replaces the provider's key.
func (i *Issuer) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key = key
	i.kid++
}

// Requests counts the requests for a path so far.
func (i *Issuer) Requests(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := 0
	for _, r := range i.requests {
		if r.URL.Path == path {
			n++
		}
	}
	return n
}

// LastAuthRequest returns the parameters of the latest authorization request.
func (i *Issuer) LastAuthRequest() url.Values {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := len(i.requests) - 1; n >= 0; n-- {
		if r := i.requests[n]; r.URL.Path == "/authorize" {
			return r.URL.Query()
		}
	}
	return nil
}

// KeyID returns the id of the current key.
func (i *Issuer) KeyID() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return fmt.Sprint("k", i.kid)
}

// Sign signs a JWT with the current key. A nil claim or header is left out.
func (i *Issuer) Sign(header, claims map[string]any) string {
	i.mu.Lock()
	key, kid := i.key, fmt.Sprint("k", i.kid)
	i.mu.Unlock()
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims(withoutNil(claims)))
	token.Header["kid"] = kid
	maps.Copy(token.Header, header)
	token.Header = withoutNil(token.Header)
	signed, err := token.SignedString(key)
	if err != nil {
		panic(err)
	}
	return signed
}

// Key returns the current public key.
func (i *Issuer) Key() crypto.PublicKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.key.Public()
}

// AccessToken returns a valid access token with further claims; nil removes one.
func (i *Issuer) AccessToken(more map[string]any) string {
	now := time.Now()
	claims := map[string]any{"iss": i.URL, "sub": "1001", "aud": Audience, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(claims, more)
	return i.Sign(map[string]any{"typ": "at+jwt"}, claims)
}

// Opaque registers an opaque token with the provider.
func (i *Issuer) Opaque(token string, answer map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.opaque[token] = answer
}

func withoutNil(m map[string]any) map[string]any {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == nil })
	return out
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	bends, person := i.bends, maps.Clone(i.person)
	i.requests = append(i.requests, r.Clone(r.Context()))
	i.mu.Unlock()
	if bends.Handle != nil && bends.Handle(w, r) {
		return
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		i.discovery(w, bends)
	case "/keys":
		i.keys(w)
	case "/authorize":
		i.authorize(w, r, bends)
	case "/token":
		i.token(w, r, bends, person)
	case "/introspect":
		i.introspect(w, r)
	default:
		http.NotFound(w, r)
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (i *Issuer) discovery(w http.ResponseWriter, b Bends) {
	doc := map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
		"end_session_endpoint": i.URL + "/logout", "introspection_endpoint": i.URL + "/introspect",
		"authorization_response_iss_parameter_supported": !b.NoIssPromise,
	}
	maps.Copy(doc, b.Discovery)
	writeJSON(w, http.StatusOK, withoutNil(doc))
}

func (i *Issuer) keys(w http.ResponseWriter) {
	i.mu.Lock()
	raw, err := i.key.PublicKey.Bytes()
	kid := fmt.Sprint("k", i.kid)
	i.mu.Unlock()
	if err != nil {
		i.t.Error(err)
	}
	encode := base64.RawURLEncoding.EncodeToString // of the uncompressed point: 4, x, y
	writeJSON(w, http.StatusOK, map[string]any{"keys": []any{
		map[string]any{"kty": "oct", "k": "AAAA", "kid": "shared"}, // not for us, and to be left out
		map[string]any{"kty": "EC", "crv": "P-256", "use": "sig", "kid": kid, "x": encode(raw[1:33]), "y": encode(raw[33:])},
	}})
}

// authorize signs in the person set by SignsIn, without a prompt.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request, b Bends) {
	q := r.URL.Query()
	answer := url.Values{"state": {q.Get("state")}}
	if b.Iss == nil {
		answer.Set("iss", i.URL)
	} else if *b.Iss != "" {
		answer.Set("iss", *b.Iss)
	}
	if b.Error != "" {
		answer.Set("error", b.Error)
	} else {
		code := rand.Text()
		i.mu.Lock()
		i.codes[code] = q
		i.mu.Unlock()
		answer.Set("code", code)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
}

// token redeems a code as a strict provider does: client, redirect URI and PKCE must fit.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request, b Bends, person map[string]any) {
	refuse := func(code string) { writeJSON(w, http.StatusBadRequest, map[string]any{"error": code}) }
	if !i.isClient(r) {
		refuse("invalid_client")
		return
	}
	i.mu.Lock()
	asked, ok := i.codes[r.FormValue("code")]
	delete(i.codes, r.FormValue("code"))
	i.mu.Unlock()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || asked.Get("code_challenge_method") != "S256" || asked.Get("redirect_uri") != r.FormValue("redirect_uri") ||
		asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
		refuse("invalid_grant")
		return
	}
	now := time.Now()
	access := rand.Text()
	hash := sha256.Sum256([]byte(access))
	claims := map[string]any{
		"iss": i.URL, "aud": ClientID, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "auth_time": now.Unix(),
		"nonce": asked.Get("nonce"), "at_hash": base64.RawURLEncoding.EncodeToString(hash[:16]),
	}
	maps.Copy(claims, person)
	maps.Copy(claims, b.Claims)
	claims = withoutNil(claims)
	sign := b.Sign
	if sign == nil {
		sign = i.Sign
	}
	writeJSON(w, http.StatusOK, map[string]any{"access_token": access, "token_type": "Bearer", "id_token": sign(b.Header, claims)})
}

func (i *Issuer) isClient(r *http.Request) bool {
	id, secret, ok := r.BasicAuth()
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	return ok && id == ClientID && secret == ClientSecret
}

func (i *Issuer) introspect(w http.ResponseWriter, r *http.Request) {
	if !i.isClient(r) {
		writeJSON(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	i.mu.Lock()
	answer, ok := i.opaque[r.FormValue("token")]
	i.mu.Unlock()
	if !ok {
		answer = map[string]any{"active": false}
	}
	writeJSON(w, http.StatusOK, answer)
}

// Unsigned returns a JWT of alg none.
func Unsigned(header, claims map[string]any) string {
	encode := func(v any) string {
		raw, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	h := map[string]any{"alg": "none"}
	maps.Copy(h, header)
	return strings.Join([]string{encode(h), encode(claims), ""}, ".")
}
