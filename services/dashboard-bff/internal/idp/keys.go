package idp

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
)

// refetchAfter is how often an unknown key id may fetch the keys again. Without it anyone could make the dashboard
// call a provider as often as they send a token.
const refetchAfter = time.Minute

const (
	maxKeys    = 64
	minRSABits = 2048
)

// keySet verifies by a provider's keys; it is an oidc.KeySet.
type keySet struct {
	published  *cached[[]jose.JSONWebKey]
	algorithms []jose.SignatureAlgorithm
	now        func() time.Time

	flight    singleflight.Group
	mu        sync.Mutex // guards refetched
	refetched time.Time  // the last fetch for an unknown key id
}

// parseKeys parses a JSON Web Key Set. Keys of other kinds or uses are skipped: a provider may publish keys for other
// purposes.
func parseKeys(doc map[string]json.RawMessage) ([]jose.JSONWebKey, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(doc["keys"], &raw); err != nil {
		return nil, fmt.Errorf("%w: the key set has no list keys", ErrUnreachable)
	}
	if len(raw) > maxKeys {
		return nil, fmt.Errorf("%w: the key set has %d keys; %d are read", ErrUnreachable, len(raw), maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, r := range raw {
		var k jose.JSONWebKey
		if json.Unmarshal(r, &k) != nil || !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" {
			continue
		}
		if r, ok := k.Key.(*rsa.PublicKey); ok && r.N.BitLen() < minRSABits {
			continue
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// causeKey finds in a context where VerifySignature leaves its error.
type causeKey struct{}

// VerifySignature returns the payload of a JWT that one of the keys signed.
func (s *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := s.verify(ctx, token)
	if cause, ok := ctx.Value(causeKey{}).(*error); ok {
		*cause = err
	}
	return payload, err
}

func (s *keySet) verify(ctx context.Context, token string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(token, s.algorithms)
	if err != nil {
		return nil, err
	}
	header := jws.Signatures[0].Header
	keys, err := s.published.get(ctx)
	if err != nil {
		return nil, err
	}
	payload, err := verifyWith(keys, jws, header)
	if errors.Is(err, errUnknownKey) {
		if keys, err = s.refetch(ctx); err != nil {
			return nil, err
		}
		payload, err = verifyWith(keys, jws, header)
	}
	return payload, err
}

var errUnknownKey = errors.New("no key of the provider fits the token")

// refetch fetches the keys for an unknown key id, at most once a minute. Concurrent callers wait for the same fetch:
// after a rotation many tokens arrive at once.
func (s *keySet) refetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	done := s.flight.DoChan("", func() (any, error) {
		ctx := context.WithoutCancel(ctx)
		s.mu.Lock()
		now := s.now()
		soon := !s.refetched.IsZero() && now.Sub(s.refetched) < refetchAfter
		if !soon {
			s.refetched = now
		}
		s.mu.Unlock()
		if soon {
			return s.published.get(ctx)
		}
		return s.published.fetch(ctx)
	})
	select {
	case r := <-done:
		keys, _ := r.Val.([]jose.JSONWebKey)
		return keys, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// verifyWith tries the keys of the token's id, or all if it has none.
func verifyWith(keys []jose.JSONWebKey, jws *jose.JSONWebSignature, header jose.Header) ([]byte, error) {
	tried := false
	for _, k := range keys {
		if header.KeyID != "" && k.KeyID != header.KeyID || k.Algorithm != "" && k.Algorithm != header.Algorithm {
			continue
		}
		tried = true
		if payload, err := jws.Verify(k.Key); err == nil {
			return payload, nil
		}
	}
	if !tried || header.KeyID == "" {
		return nil, errUnknownKey
	}
	return nil, errors.New("the signature is not by the provider's key")
}
