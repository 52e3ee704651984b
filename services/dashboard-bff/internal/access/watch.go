package access

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// Reasons for which Watch ends a stream.
const (
	TokenExpired = "token_expired"
	LoggedOut    = "logged_out" // also when the provider is no longer trusted, or the person denied
	// BusUnavailable ends streams whose credential could not be checked for long. Of the reasons that clients know, it
	// is the one that makes them poll; until then their requests get 503 session_store_unavailable.
	BusUnavailable = "bus_unavailable"
)

const (
	// watchEvery is how often a stream's session is looked up; with the age of a verdict a logout shows within 2 s.
	watchEvery = 800 * time.Millisecond
	// watchGrace is how long streams outlive the session store. No session can be ended meanwhile, and a restart of
	// the store must not make every page reconnect.
	watchGrace = 30 * time.Second
)

// Watch returns a context for a stream of who, derived from ctx, which must be the request's. It also ends when the
// credential expires, and within 2 s of the session's end on any replica. reason returns why it ended: empty while the
// stream may continue, and when ctx ended.
func (g *Guard) Watch(ctx context.Context, who caller.Caller) (stream context.Context, reason func() string) {
	stream, end := context.WithCancel(ctx)
	var why atomic.Pointer[string]
	go func() { // ends with ctx, which ends with the request
		defer end()
		if text := g.awaitEnd(stream, who); text != "" {
			why.Store(&text)
		}
	}()
	return stream, func() string {
		if text := why.Load(); text != nil {
			return *text
		}
		return ""
	}
}

// awaitEnd returns the reason, or nothing when ctx ended.
func (g *Guard) awaitEnd(ctx context.Context, who caller.Caller) string {
	// Streams that began together shall not ask together.
	next := time.NewTimer(rand.N(watchEvery))
	defer next.Stop()
	lastKnown := g.cfg.Now()
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-next.C:
		}
		now := g.cfg.Now()
		if !now.Before(who.ExpiresAt) {
			return TokenExpired
		}
		err := g.stillHolds(ctx, who)
		switch {
		case err == nil:
			lastKnown = now
		case ctx.Err() != nil:
			return ""
		case endsSession(err):
			return LoggedOut
		case now.Sub(lastKnown) > watchGrace:
			return BusUnavailable
		}
		next.Reset(min(watchEvery, max(who.ExpiresAt.Sub(now), time.Millisecond)))
	}
}

// endsSession distinguishes a refusal from a failed check.
func endsSession(err error) bool {
	status := problem.From(err).Status()
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// stillHolds repeats the checks of identify, except those whose result cannot change.
func (g *Guard) stillHolds(ctx context.Context, who caller.Caller) error {
	was, have := credentialOf(ctx)
	if who.Method == caller.SSO {
		if err := g.cfg.Sessions.Alive(ctx, who.SessionID); err != nil || !have || g.cfg.Federation == nil {
			return err
		}
		return g.cfg.Federation.Admit(ctx, was.data)
	}
	if err := g.cfg.Tokens.CheckRevoked(ctx, who); err != nil || who.Method != caller.IDPBearer || !have || g.cfg.Federation == nil {
		return err
	}
	_, err := g.cfg.Federation.Bearer(ctx, was.bearer, was.hint, nil)
	return err
}

// Alive reports whether the session of who still stands: nil, or the problem to answer with. It is for what
// outlives the request that proved the session, such as a WebSocket of the tools origin.
func (g *Guard) Alive(ctx context.Context, who caller.Caller) error {
	if err := g.admitsLater(ctx, who); err != nil {
		return err
	}
	return g.stillHolds(ctx, who)
}

// Touch is Alive for a request made with something that outlives the proof of the session, such as a cookie of the
// tools origin: it keeps the session from ending by idleness.
func (g *Guard) Touch(ctx context.Context, who caller.Caller) error {
	if err := g.Alive(ctx, who); err != nil || who.Method != caller.SSO {
		return err
	}
	return g.cfg.Sessions.Touch(ctx, who.SessionID)
}

func (g *Guard) admitsLater(ctx context.Context, who caller.Caller) error {
	if !g.cfg.Now().Before(who.ExpiresAt) {
		return fault.InvalidToken.New("The session has expired; sign in again.")
	}
	if _, have := credentialOf(ctx); !have && !g.basisHolds(who) {
		return fault.InvalidToken.New("A password or the trust file has changed since; go back to the dashboard and begin there again.")
	}
	return nil
}

// basisHolds reports whether the basis on which the caller was admitted is still the current one. The credential
// itself is not available here, so the caller cannot be judged again; they can begin again at the dashboard, which has
// it.
func (g *Guard) basisHolds(who caller.Caller) bool {
	now := ""
	switch {
	case who.Method == caller.Password:
		now = g.cfg.Tokens.Basis(who)
	case g.cfg.Federation != nil:
		now = g.cfg.Federation.Basis()
	}
	return now != "" && who.Basis == now
}
