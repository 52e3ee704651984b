package sso

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

const (
	// attemptFor is how long a person may take to sign in.
	attemptFor = 10 * time.Minute
	// keepFor is how long the attempt is kept: longer than it is valid, to distinguish a late answer from a forged
	// one.
	keepFor = 2 * attemptFor
)

// attempt is a sign-in under way. It lies sealed in the session store, where only this browser's key finds and opens
// it: state alone, which is in addresses and logs, does not suffice.
type attempt struct {
	Provider  string    `json:"provider"`
	Issuer    string    `json:"issuer"`
	Nonce     string    `json:"nonce"`
	Verifier  string    `json:"verifier"`
	ReturnTo  string    `json:"return_to"`
	StartedAt time.Time `json:"started_at"`
	StepUp    bool      `json:"step_up,omitempty"`
	// Principal is the person whose session requested a step-up; empty: none.
	Principal string `json:"principal,omitempty"`
	// SessionID is the session that the new one takes the place of. The answer of the provider comes from another
	// site, so its request has no session cookie.
	SessionID string `json:"session_id,omitempty"`
}

// newRandom returns 256 random bits in base64url.
func newRandom() (string, error) {
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

// isRandom reports whether a string has the form that newRandom generates.
func isRandom(s string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(raw) == 32 && len(s) == 43
}

// browserKey returns the key of this browser, or empty. It outlives one sign-in, so that those in other tabs still
// end.
func (h *Handlers) browserKey(r *http.Request) string {
	found := r.CookiesNamed(h.cfg.Cookies.Name(session.BrowserCookie))
	if len(found) != 1 || !isRandom(found[0].Value) { // of two, another site may have planted one
		return ""
	}
	return found[0].Value
}

func (h *Handlers) setBrowserKey(c echo.Context, key string) {
	c.SetCookie(h.cfg.Cookies.New(session.BrowserCookie, key, http.SameSiteLaxMode, attemptFor))
}

// attemptKey returns the key of the attempt. Both parts are needed to find it, so an answer shown by another browser
// finds nothing, and takes nothing from this one.
func attemptKey(state, browserKey string) string {
	return session.Key("sign-in\x00" + state + "\x00" + browserKey)
}

func storeAway(err error) error {
	return fault.SessionStoreUnavailable.New("The session store does not answer, so no one can sign in at the moment; try again shortly.").WithCause(err)
}

// put stores the attempt under a new state.
func (h *Handlers) put(ctx context.Context, a attempt, browserKey string) (state string, err error) {
	if state, err = newRandom(); err != nil {
		return "", err
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	keys, err := h.cfg.Keys.Derive("platform sign-in", []byte(browserKey))
	if err != nil {
		return "", err
	}
	key := attemptKey(state, browserKey)
	sealed, err := keys.Seal(key, string(raw))
	if err != nil {
		return "", err
	}
	if err := h.cfg.Records.Put(ctx, key, []byte(sealed), keepFor); err != nil {
		return "", storeAway(err)
	}
	return state, nil
}

// claim takes the attempt, once: session.ErrNotFound if there is none that this browser can open.
func (h *Handlers) claim(ctx context.Context, state, browserKey string) (attempt, error) {
	var a attempt
	if !isRandom(state) {
		return a, session.ErrNotFound
	}
	key := attemptKey(state, browserKey)
	sealed, err := h.cfg.Records.Take(ctx, key)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return a, err
	case err != nil:
		return a, storeAway(err)
	}
	keys, err := h.cfg.Keys.Derive("platform sign-in", []byte(browserKey))
	if err != nil {
		return a, err
	}
	raw, err := keys.Open(key, string(sealed))
	if err != nil {
		return a, errors.Join(session.ErrNotFound, err)
	}
	return a, json.Unmarshal([]byte(raw), &a)
}
