// Package snapshot freezes a view behind a token that expires. A person who has the token and signs in to the same
// tenant can read it; nothing can be written through it.
package snapshot

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/announce"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// Limits of the interface.
const (
	maxView    = 64 << 10 // bytes
	maxLevels  = 16       // objects and lists in each other
	standard   = 168      // hours
	maxTTL     = 720      // hours
	maxLive    = 500      // of one tenant
	tokenBytes = 32
)

// Snapshots serves the routes under /api/v1/collab/snapshot.
type Snapshots struct{ pool *pgxpool.Pool }

// Config of New.
type Config struct{ Pool *pgxpool.Pool }

// New refuses a missing pool.
func New(cfg Config) (*Snapshots, error) {
	if err := service.RequireParts("snapshot", cfg); err != nil {
		return nil, err
	}
	return &Snapshots{cfg.Pool}, nil
}

// request is the body of Create; the view stays as it was written.
type request struct {
	View     json.RawMessage `json:"view"`
	TTLHours *int            `json:"ttl_hours"`
}

// check returns the lifetime in hours; the error names every fault.
func (r request) check() (int, error) {
	var faults []problem.Field
	refuse := func(name, msg string) {
		faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg})
	}
	switch {
	case len(r.View) == 0 || r.View[0] != '{':
		refuse("view", "must be an object")
	case len(r.View) > maxView:
		refuse("view", "must be at most 64 KiB")
	case levels(r.View) > maxLevels:
		refuse("view", "must have at most 16 objects and lists in each other")
	}
	hours := standard
	if r.TTLHours != nil {
		if hours = *r.TTLHours; hours < 1 || hours > maxTTL {
			refuse("ttl_hours", "must be a whole number from 1 to 720")
		}
	}
	return hours, input.InvalidFields(faults...)
}

// levels returns how deeply objects and lists of a valid JSON value are nested.
func levels(raw []byte) int {
	depth, deepest := 0, 0
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		t, err := d.Token()
		if err != nil {
			return deepest
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

// masked are the paths that a token follows: of the API and of the page that shows it.
var masked = []string{"/api/v1/collab/snapshot/", "/snapshot/"}

// MaskToken puts the beginning of the digest in the place of a token in the request's URL, so that neither access
// log nor error holds what opens a snapshot. It is for all routes, as early as possible: the router has taken the
// parameters by then.
func MaskToken(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		u := c.Request().URL
		for _, prefix := range masked {
			if token, ok := strings.CutPrefix(u.Path, prefix); ok && token != "" {
				digest := sha256.Sum256([]byte(token))
				u.Path, u.RawPath = prefix+shortDigest(digest), ""
			}
		}
		return next(c)
	}
}

// shortDigest returns the name of a snapshot in logs, audit and events.
func shortDigest(digest [sha256.Size]byte) string { return hex.EncodeToString(digest[:4]) }

// Create serves POST /api/v1/collab/snapshot.
func (s *Snapshots) Create(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	var body request
	if err := service.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	hours, err := body.check()
	if err != nil {
		return err
	}
	raw := make([]byte, tokenBytes)
	if _, err := rand.Read(raw); err != nil {
		return err
	}
	token := base64.RawURLEncoding.EncodeToString(raw)
	at, err := s.keep(c.Request().Context(), caller.From(c), token, string(body.View), hours)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, api.SnapshotToken{Token: token, ExpiresAt: at.UTC()})
}

// keep stores the view under the token's digest: an attacker who reads the table can open nothing.
func (s *Snapshots) keep(ctx context.Context, who caller.Caller, token, view string, hours int) (at time.Time, err error) {
	digest := sha256.Sum256([]byte(token))
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		if err := q.LockSnapshots(ctx, who.Tenant); err != nil {
			return err
		}
		if err := q.ForgetSnapshots(ctx); err != nil {
			return err
		}
		n, err := q.CountSnapshots(ctx, who.Tenant)
		if err != nil {
			return err
		}
		if n >= maxLive {
			return fault.SnapshotLimit.Errorf("This tenant has %d live snapshots, which is the limit; wait until one expires, and choose shorter lives.", n)
		}
		at, err = q.InsertSnapshot(ctx, store.InsertSnapshotParams{
			TokenDigest: digest[:], Tenant: who.Tenant, View: view, CreatedBy: who.Subject, TtlHours: int32(hours),
		})
		if err != nil {
			return err
		}
		return announce.Insert(ctx, tx, announce.Audit(ctx, who, "snapshot.create", "snapshot:"+shortDigest(digest), announce.OK,
			map[string]any{"expires_at": at.UTC().Format(time.RFC3339), "bytes": len(view)}))
	})
	return at, err
}

// Get serves GET /api/v1/collab/snapshot/:token. A token that is unknown, expired or of another tenant looks the same.
func (s *Snapshots) Get(c echo.Context) error {
	if err := input.CheckQuery(c); err != nil {
		return err
	}
	token, err := input.PathParam(c, "token")
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(token))
	row, err := store.New(s.pool).GetSnapshot(c.Request().Context(), store.GetSnapshotParams{TokenDigest: digest[:], Tenant: caller.From(c).Tenant})
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	if errors.Is(err, pgx.ErrNoRows) {
		return c.JSON(http.StatusOK, api.Snapshot{Found: false})
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct { // api.Snapshot with the view as it was written
		Found     bool            `json:"found"`
		View      json.RawMessage `json:"view"`
		ReadOnly  bool            `json:"read_only"`
		ExpiresAt time.Time       `json:"expires_at"`
		CreatedBy string          `json:"created_by"`
	}{true, json.RawMessage(row.View), true, row.ExpiresAt.UTC(), row.CreatedBy})
}
