package proxy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

const (
	// ticketLife is how long a ticket waits for its one use.
	ticketLife = 30 * time.Second
	// ticketRoot is where the tools origin takes tickets.
	ticketRoot = "/api/proxy-ticket/"
	// ticketBytes is the length of a ticket before base64.
	ticketBytes = 32
	// grantLife bounds the cookie of a session that does not say when it ends.
	grantLife = 12 * time.Hour
)

// Purposes of sealed values: a value sealed for one use cannot be used for another.
const (
	purposeTicket = "ticket"
	purposeCookie = "cookie "
)

// grant is the content of a ticket, and then of a cookie of the tools origin: access for the session that requested it
// to one service.
type grant struct {
	Service upstream.Service `json:"service"`
	Who     caller.Caller    `json:"who"`
	Until   time.Time        `json:"until"`
}

// issueTicket creates a ticket for a service and returns the address that redeems it.
func (p *Proxy) issueTicket(ctx context.Context, s upstream.Service, who caller.Caller) (string, error) {
	until := who.ExpiresAt
	if until.IsZero() {
		until = time.Now().Add(grantLife)
	}
	plain, err := json.Marshal(grant{Service: s, Who: who, Until: until})
	if err != nil {
		return "", err
	}
	sealed, err := p.keys.Seal(purposeTicket, string(plain))
	if err != nil {
		return "", err
	}
	raw := make([]byte, ticketBytes)
	_, _ = rand.Read(raw) // never fails, see crypto/rand
	ticket := base64.RawURLEncoding.EncodeToString(raw)
	err = store.New(p.cfg.Pool).InsertProxyTicket(ctx, store.InsertProxyTicketParams{
		TicketDigest: digestTicket(ticket), GrantSealed: []byte(sealed), ExpiresAt: time.Now().Add(ticketLife),
	})
	if err != nil {
		return "", fault.StoreUnavailable.New("The database that keeps tickets is away; try again.").After(time.Second).WithCause(err)
	}
	return p.tools.text + ticketRoot + ticket, nil
}

func digestTicket(ticket string) []byte {
	sum := sha256.Sum256([]byte(ticket))
	return sum[:]
}

// claimTicket spends a ticket.
func (p *Proxy) claimTicket(ctx context.Context, ticket string) (grant, error) {
	spent := fault.InvalidToken.New("This address was used already, or is older than 30 s; open the tool from the dashboard again.")
	sealed, err := store.New(p.cfg.Pool).ClaimProxyTicket(ctx, digestTicket(ticket))
	if errors.Is(err, pgx.ErrNoRows) {
		return grant{}, spent
	}
	if err != nil {
		return grant{}, fault.StoreUnavailable.New("The database that keeps tickets is away; try again.").After(time.Second).WithCause(err)
	}
	g, err := p.openGrant(string(sealed), purposeTicket)
	if err != nil {
		return grant{}, spent.WithCause(err)
	}
	return g, nil
}

// openGrant decrypts a grant that still holds.
func (p *Proxy) openGrant(sealed, purpose string) (grant, error) {
	plain, err := p.keys.Open(purpose, sealed)
	if err != nil {
		return grant{}, err
	}
	var g grant
	if err := json.Unmarshal([]byte(plain), &g); err != nil {
		return grant{}, err
	}
	if !time.Now().Before(g.Until) {
		return grant{}, errors.New("the session has expired")
	}
	return g, nil
}

// SweepTickets removes unused tickets. Run it as a worker; it ends with ctx.
func (p *Proxy) SweepTickets(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := store.New(p.cfg.Pool).DeleteExpiredProxyTickets(ctx); err != nil && ctx.Err() == nil {
			p.cfg.Log.WarnContext(ctx, "expired proxy tickets not removed", "err", err)
		}
	}
}

const sweepEvery = time.Minute

// cookieName returns the name of a service's cookie on the tools origin.
func (p *Proxy) cookieName(s upstream.Service) string {
	name := "platform_tools_" + string(s)
	if p.tools.url.Scheme == "https" {
		name = "__Secure-" + name
	}
	return name
}

// cookie holds the grant itself, sealed: every replica can read it, and none has to store it. It goes to its service's
// paths alone. Lax, since the tools origin may be another site than the dashboard: a strict one would not be sent after the
// redirect from the ticket. Writes are proven to come from this origin besides.
func (p *Proxy) cookie(g grant) (*http.Cookie, error) {
	plain, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	sealed, err := p.keys.Seal(purposeCookie+string(g.Service), string(plain))
	if err != nil {
		return nil, err
	}
	return &http.Cookie{
		Name: p.cookieName(g.Service), Path: prefix(g.Service) + "/", HttpOnly: true, Secure: p.tools.url.Scheme == "https", SameSite: http.SameSiteLaxMode,
		Value: sealed, MaxAge: max(1, int(time.Until(g.Until).Seconds())),
	}, nil
}

// readCookie finds the grant of a request for a service.
func (p *Proxy) readCookie(r *http.Request, s upstream.Service) (grant, error) {
	again := fault.Unauthenticated.New("Open the tool from the dashboard: this origin admits only requests that come from there, for as long as the session lasts.")
	for _, c := range r.CookiesNamed(p.cookieName(s)) {
		if g, err := p.openGrant(c.Value, purposeCookie+string(s)); err == nil && g.Service == s {
			return g, nil
		}
	}
	return grant{}, again
}
