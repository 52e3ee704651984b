package idp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// How long the provider's word on an opaque token is kept: revocation must show soon, and a forged token must not
// become a call each time.
const (
	goodFor   = 30 * time.Second
	badFor    = 5 * time.Second
	maxLooked = 10_000 // entries; one has some kilobytes at most
)

// introspector asks a provider about opaque tokens (RFC 7662).
type introspector struct {
	p      *Provider
	flight singleflight.Group

	mu    sync.Mutex // guards known
	known map[[sha256.Size]byte]lookedUp
}

type lookedUp struct {
	claims claimSet
	err    error
	until  time.Time
}

// look returns the provider's introspection of the token, requested at most once per interval and only if mayAsk
// agrees; a nil mayAsk always does.
func (i *introspector) look(ctx context.Context, raw string, mayAsk func() error) (claimSet, error) {
	if len(raw) > maxToken {
		return nil, tokenError("it has more than %d KiB", maxToken>>10)
	}
	hash := sha256.Sum256([]byte(raw))
	now := i.p.now()
	i.mu.Lock()
	known, ok := i.known[hash]
	i.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.claims, known.err
	}
	done := i.flight.DoChan(string(hash[:]), func() (any, error) {
		if mayAsk != nil {
			if err := mayAsk(); err != nil {
				return nil, err // says nothing of the token, so it is not kept
			}
		}
		claims, err := i.ask(context.WithoutCancel(ctx), raw)
		i.keep(hash, claims, err)
		return claims, err
	})
	select {
	case r := <-done:
		claims, _ := r.Val.(claimSet)
		return claims, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (i *introspector) keep(hash [sha256.Size]byte, claims claimSet, err error) {
	now := i.p.now()
	until := now.Add(goodFor)
	if err != nil {
		until = now.Add(badFor)
	} else if exp, ok := claims.time("exp"); ok && exp.Before(until) {
		until = exp
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.known) >= maxLooked {
		for h, k := range i.known {
			if !now.Before(k.until) {
				delete(i.known, h)
			}
		}
	}
	for h := range i.known { // all of them live: any one makes room
		if len(i.known) < maxLooked {
			break
		}
		delete(i.known, h)
	}
	i.known[hash] = lookedUp{claims, err, until}
}

func (i *introspector) endpoint(ctx context.Context) (string, error) {
	if e := i.p.trust.Introspection.Endpoint; e != "" {
		return e, nil
	}
	m, err := i.p.metadata.get(ctx)
	if err == nil && m.IntrospectionEndpoint == "" {
		err = fmt.Errorf("%w: its discovery document names no introspection_endpoint; give introspection.endpoint in the trust file", ErrUnreachable)
	}
	return m.IntrospectionEndpoint, err
}

func (i *introspector) ask(ctx context.Context, raw string) (claimSet, error) {
	endpoint, err := i.endpoint(ctx)
	if err != nil {
		return nil, err
	}
	form := url.Values{"token": {raw}, "token_type_hint": {"access_token"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.Join(ErrUnreachable, err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	t := i.p.trust
	// RFC 6749 section 2.3.1 wants both form-encoded.
	req.SetBasicAuth(url.QueryEscape(t.Introspection.ClientID), url.QueryEscape(t.Introspection.ClientSecret.Reveal()))
	doc, err := fetchJSON(i.p.client, req)
	if err != nil {
		return nil, err
	}
	var claims claimSet
	whole, err := json.Marshal(doc)
	if err == nil {
		err = json.Unmarshal(whole, &claims)
	}
	if active, _ := claims["active"].(bool); err != nil || !active {
		return nil, tokenError("the provider reports it as inactive")
	}
	if iss := claims.text("iss"); claims.has("iss") && iss != t.Issuer {
		return nil, tokenError("its issuer is %.200q", iss)
	}
	if err := claims.checkTimes(i.p.now(), t.Leeway, false); err != nil {
		return nil, err
	}
	return claims, i.p.checkBearerClaims(claims)
}
