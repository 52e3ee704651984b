package session

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

// Names of the cookies, before the prefix that binds them to this host.
const (
	SessionCookie = "platform_session"
	BrowserCookie = "platform_sso" // the browser key of a sign-in under way
)

// Cookies makes the dashboard's cookies. Insecure drops Secure and the prefix __Host-, which needs it: for http on
// loopback only.
type Cookies struct{ Insecure bool }

// Name returns the cookie's name on the wire.
func (k Cookies) Name(base string) string {
	if k.Insecure {
		return base
	}
	return "__Host-" + base
}

// New returns a cookie that scripts cannot read, for this host and all paths. maxAge 0 means until the browser closes.
func (k Cookies) New(base, value string, sameSite http.SameSite, maxAge time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: k.Name(base), Value: value, Path: "/", HttpOnly: true, Secure: !k.Insecure, SameSite: sameSite,
		MaxAge: int(maxAge / time.Second),
	}
}

// Expired returns the cookie that removes another.
func (k Cookies) Expired(base string, sameSite http.SameSite) *http.Cookie {
	gone := k.New(base, "", sameSite, 0)
	gone.MaxAge = -1
	return gone
}

const (
	idSize     = 16 // 128 random bits
	secretSize = 32 // 256 random bits
)

// ticket is the content of the session cookie. The id finds the state, the secret opens it; the store knows neither.
type ticket struct {
	id     string
	secret []byte
}

func newTicket() (ticket, error) {
	raw := make([]byte, idSize+secretSize)
	if _, err := rand.Read(raw); err != nil {
		return ticket{}, err
	}
	return ticket{base64.RawURLEncoding.EncodeToString(raw[:idSize]), raw[idSize:]}, nil
}

func (t ticket) String() string { return t.id + "." + base64.RawURLEncoding.EncodeToString(t.secret) }

// parseTicket accepts exactly what String makes.
func parseTicket(text string) (ticket, bool) {
	id, secret, found := strings.Cut(text, ".")
	if !found || len(id) != base64.RawURLEncoding.EncodedLen(idSize) || len(secret) != base64.RawURLEncoding.EncodedLen(secretSize) {
		return ticket{}, false
	}
	strict := base64.RawURLEncoding.Strict()
	if _, err := strict.DecodeString(id); err != nil || strings.ContainsAny(id+secret, "\r\n") { // the decoder skips line feeds
		return ticket{}, false
	}
	raw, err := strict.DecodeString(secret)
	if err != nil {
		return ticket{}, false
	}
	return ticket{id, raw}, true
}
