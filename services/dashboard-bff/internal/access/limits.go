package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mlp-platform/platform/libs/coord"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/session"
)

// Bucket names a limit.
type Bucket string

// Buckets of addresses: routes that need no credential, and calls to other services before a credential is known.
const (
	Login Bucket = "login"
	SSO   Bucket = "sso"
	// Providers is for reading which providers there are: a login page must show them while others behind the same address
	// use up the sign-on limit.
	Providers Bucket = "sso_providers"
	// Introspection limits the introspection requests for opaque tokens: a client that sends invented tokens must not
	// cause a request to the identity provider for each. Answers are cached, so a person's own token is introspected
	// about twice a minute.
	Introspection Bucket = "introspection"
)

// Buckets of principals.
const (
	Search      Bucket = "search"
	Comments    Bucket = "comments"
	Snapshots   Bucket = "snapshots"
	CollabReads Bucket = "collab_reads" // of comments, activity and snapshots
	Copilot     Bucket = "copilot"
	Writes      Bucket = "writes" // all other requests that may change something
)

// Rate is how many requests may come within a time.
type Rate struct {
	Count  int
	Window time.Duration
}

// Rates are the limits.
type Rates struct {
	Buckets map[Bucket]Rate
	// AllLogins is for all addresses together. BadLogins lock their address for LoginLock.
	AllLogins, BadLogins Rate
	LoginLock            time.Duration
}

// DefaultRates returns the limits of the dashboard.
func DefaultRates() Rates {
	return Rates{
		Buckets: map[Bucket]Rate{
			Login: {10, time.Minute}, SSO: {30, time.Minute}, Providers: {120, time.Minute}, Introspection: {120, time.Minute},
			Search: {30, 10 * time.Second}, Comments: {30, time.Minute}, Snapshots: {30, time.Minute},
			CollabReads: {60, time.Minute}, Copilot: {10, time.Minute}, Writes: {120, time.Minute},
		},
		AllLogins: Rate{20, time.Second}, BadLogins: Rate{20, 15 * time.Minute}, LoginLock: 15 * time.Minute,
	}
}

func (b Bucket) perAddress() bool {
	return b == Login || b == SSO || b == Providers || b == Introspection
}

// LimitsConfig of NewLimits.
type LimitsConfig struct {
	Coordinator coord.Coordinator
	Store       session.Store // holds the locks
	Rates       Rates
	Log         *slog.Logger
	Now         func() time.Time
}

// Limits counts requests for all replicas, in the coordinator. Each process also counts its own: that holds while the
// coordinator is down, and keeps a flood from reaching it.
type Limits struct {
	cfg   LimitsConfig
	local *localLimits
	locks *localLocks
	// retryAt is when to try the coordinator again after a failure, in Unix nanoseconds: requests must not all wait
	// for one that is down.
	retryAt atomic.Int64
}

// NewLimits refuses a missing part.
func NewLimits(cfg LimitsConfig) (*Limits, error) {
	if cfg.Coordinator == nil || cfg.Store == nil || cfg.Log == nil || cfg.Now == nil || len(cfg.Rates.Buckets) == 0 {
		return nil, errors.New("access.Limits: Coordinator, Store, Rates, Log and Now must be given")
	}
	return &Limits{cfg: cfg, local: newLocalLimits(cfg.Now), locks: newLocalLocks(cfg.Now)}, nil
}

const (
	// coordinatorTimeout limits one question to the coordinator.
	coordinatorTimeout = time.Second
	// coordinatorPause is how long a coordinator that failed is left alone.
	coordinatorPause = 2 * time.Second
)

// decision is whether an act is allowed now, and otherwise when.
type decision struct {
	ok        bool
	remaining int
	after     time.Duration
}

// allow counts one act.
func (l *Limits) allow(ctx context.Context, key string, rate Rate) decision {
	own := l.local.allow(key, rate.Count, rate.Window)
	if !own.ok || l.cfg.Now().UnixNano() < l.retryAt.Load() {
		return own
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), coordinatorTimeout) // a client that hangs up counts too
	defer cancel()
	shared, err := l.cfg.Coordinator.Allow(ctx, "dashboard:"+key, rate.Count, rate.Window)
	if err != nil {
		l.retryAt.Store(l.cfg.Now().Add(coordinatorPause).UnixNano())
		l.cfg.Log.WarnContext(ctx, "the coordinator does not answer; limits hold per process", slog.Any("err", err))
		return own
	}
	return decision{shared.OK, min(own.remaining, shared.Remaining), time.Duration(shared.ResetSeconds) * time.Second}
}

// checkAddress counts a request of an address.
func (l *Limits) checkAddress(ctx context.Context, b Bucket, address netip.Addr) error {
	subscriber := subscriberOf(address)
	if b == Login {
		if left := l.locks.get(subscriber).Sub(l.cfg.Now()); left > 0 {
			return locked(left)
		}
	}
	if d := l.allow(ctx, string(b)+":"+subscriber, l.cfg.Rates.Buckets[b]); !d.ok {
		return tooMany("from your address", l.cfg.Rates.Buckets[b], d)
	}
	if b != Login {
		return nil
	}
	if d := l.allow(ctx, "logins", l.cfg.Rates.AllLogins); !d.ok {
		return tooMany("for password login by all addresses together", l.cfg.Rates.AllLogins, d)
	}
	// The store is asked last, of the few requests that are left: a flood must not reach it.
	if left := l.lockedFor(ctx, subscriber); left > 0 {
		return locked(left)
	}
	return nil
}

func locked(left time.Duration) error {
	return fault.LoginLocked.Errorf("Too many wrong passwords from your address; password login from it is locked for another %d minutes.", int(left/time.Minute)+1).
		After(left)
}

// checkPrincipal counts a request of a signed-in person.
func (l *Limits) checkPrincipal(ctx context.Context, b Bucket, who caller.Caller) error {
	rate, known := l.cfg.Rates.Buckets[b]
	if !known {
		return fmt.Errorf("access: no limit is named %q", b)
	}
	if d := l.allow(ctx, string(b)+":"+session.Key(who.Tenant+"\x00"+who.Subject), rate); !d.ok {
		return tooMany("of this kind by "+who.Subject, rate, d)
	}
	return nil
}

func tooMany(what string, rate Rate, d decision) error {
	return problem.RateLimited.Errorf("More than %d requests %s within %s; wait as long as Retry-After says.", rate.Count, what, rate.Window).
		After(max(d.after, time.Second))
}

func lockKey(subscriber string) string { return session.Key("login-lock:" + subscriber) }

// NoteBadLogin counts a wrong password and locks the address after too many.
func (l *Limits) NoteBadLogin(ctx context.Context, address netip.Addr) {
	subscriber := subscriberOf(address)
	d := l.allow(ctx, "bad-logins:"+subscriber, l.cfg.Rates.BadLogins)
	if d.ok && d.remaining > 0 {
		return
	}
	until := l.cfg.Now().Add(l.cfg.Rates.LoginLock)
	l.locks.set(subscriber, until)
	value := strconv.AppendInt(nil, until.Unix(), 10)
	if err := l.cfg.Store.Put(context.WithoutCancel(ctx), lockKey(subscriber), value, l.cfg.Rates.LoginLock); err != nil {
		l.cfg.Log.WarnContext(ctx, "the lock of an address is known to this process only", slog.Any("err", err))
	}
}

// lockedFor returns how long another replica has locked the address for, 0 if none has.
func (l *Limits) lockedFor(ctx context.Context, subscriber string) time.Duration {
	raw, err := l.cfg.Store.Get(ctx, lockKey(subscriber))
	if err != nil { // no lock, or the store is unavailable: local state was checked first
		return 0
	}
	seconds, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return 0
	}
	until := time.Unix(seconds, 0)
	l.locks.set(subscriber, until)
	return max(0, until.Sub(l.cfg.Now()))
}
