// Package settings holds the configuration that people change while the dashboard runs: addresses of the services
// behind it, plain values and secrets.
//
// The value of a key is the stored one, else that of the environment, else the default. Calls to other services read
// values constantly, so they are served from memory; a change on any replica is live on all within a second. Secrets
// are sealed in the table and leave this package only as credentials of such calls.
package settings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/outbound"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/refresh"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/store"
)

// masked replaces a secret that is set, also in answers to admins.
const masked = "***"

// Config of New.
type Config struct {
	Pool *pgxpool.Pool
	Keys *sealing.Keys
	Log  *slog.Logger
	// Environment holds the values given to the process, by key. An empty one means that the service does not exist
	// here; a key that is not there has its default.
	Environment map[string]service.Secret
	// AllowedHosts are the hosts that a stored address may name: host:port, or a host for the default ports of http and
	// https. By default hosts and ports are those of the environment and of the defaults.
	AllowedHosts []string
	// OperatorTenants may write: the configuration is that of all tenants.
	OperatorTenants []string
	// StepUp refuses a request whose caller must first sign in more strongly to write a secret.
	StepUp func(echo.Context) error
}

// Settings are the configuration. Its methods may be called at once from many goroutines.
type Settings struct {
	cfg   Config
	hosts outbound.Hosts
	// current is the content of the table when it was last read.
	current atomic.Pointer[stored]
}

// stored is a replica's copy of the table, secrets opened.
type stored struct {
	values map[string]string
	// unreadable are secrets that no configured key opens, with the reason.
	unreadable map[string]error
}

// New returns settings that hold the environment's values until Load.
func New(cfg Config) (*Settings, error) {
	if err := service.RequireParts("settings", cfg); err != nil {
		return nil, err
	}
	for key, value := range cfg.Environment {
		d, ok := definitionByKey[key]
		if !ok {
			return nil, fmt.Errorf("settings: the environment gives the unknown key %q", key)
		}
		if d.kind == api.Url && value != "" {
			if msg := checkURL(value.Reveal(), false, nil); msg != "" {
				return nil, fmt.Errorf("settings: the value of the environment for %s %s", key, msg)
			}
		}
	}
	s := &Settings{cfg: cfg, hosts: hostsOf(cfg)}
	s.current.Store(&stored{})
	return s, nil
}

// hostsOf returns the hosts that stored addresses may name.
func hostsOf(cfg Config) outbound.Hosts {
	hosts := outbound.Hosts{}
	for _, h := range cfg.AllowedHosts {
		hosts.Add(h)
	}
	if len(hosts) > 0 {
		return hosts
	}
	for _, d := range definitions {
		address := cfg.Environment[d.key].Reveal()
		if address == "" {
			address = d.standard
		}
		if u, err := url.Parse(address); d.called && err == nil && u.Hostname() != "" {
			hosts[outbound.HostPort(u)] = true
		}
	}
	return hosts
}

// Load reads the table. The start of the service calls it once, then Watch.
func (s *Settings) Load(ctx context.Context) error {
	rows, err := store.New(s.cfg.Pool).ListConfigValues(ctx)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	next := &stored{values: make(map[string]string, len(rows)), unreadable: map[string]error{}}
	for _, r := range rows {
		if !r.Secret {
			next.values[r.Key] = r.Value
			continue
		}
		value, err := s.cfg.Keys.Open(r.Key, r.Value)
		next.values[r.Key] = value // empty rather than the environment's: that one was replaced on purpose
		if err != nil {
			next.unreadable[r.Key] = err
		}
	}
	before := s.current.Swap(next)
	for key, err := range next.unreadable {
		if before.unreadable[key] == nil {
			s.cfg.Log.ErrorContext(ctx, "stored secret cannot be opened", slog.String("key", key), slog.Any("err", err))
		}
	}
	return nil
}

// Watch reads the table again and again until ctx ends.
func (s *Settings) Watch(ctx context.Context) error {
	refresh.Loop(ctx, s.cfg.Log, s.Load)
	return nil
}

// Value returns the value of a key in force; empty without one. It implements upstream.Settings.
func (s *Settings) Value(key string) string {
	if v, ok := s.current.Load().values[key]; ok {
		return v
	}
	if v, ok := s.cfg.Environment[key]; ok {
		return v.Reveal()
	}
	return definitionByKey[key].standard
}

// Check is the readiness check: it names stored secrets that no configured key opens.
func (s *Settings) Check(context.Context) error {
	unreadable := s.current.Load().unreadable
	if len(unreadable) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(unreadable))
	return fmt.Errorf("stored secrets cannot be opened: %s; add the key that sealed them to DASHBOARD_SECRET_KEY, or store them again: %w",
		strings.Join(keys, ", "), errors.Join(slices.Collect(maps.Values(unreadable))...))
}

// entry is one key with its definition and value.
type entry struct {
	definition
	value  string // a secret's is masked
	source api.ConfigKeySource
	at     *time.Time
	by     string
}

// list returns every key: the fixed ones, then the stored thresholds by name.
func (s *Settings) list(rows []store.ConfigValue) []entry {
	byKey := make(map[string]store.ConfigValue, len(rows))
	all := slices.Clone(definitions)
	for _, r := range rows {
		byKey[r.Key] = r
		if _, fixed := definitionByKey[r.Key]; fixed {
			continue
		}
		if d, ok := define(r.Key); ok {
			all = append(all, d)
		}
	}
	out := make([]entry, 0, len(all))
	for _, d := range all {
		e := entry{definition: d, source: api.Default, value: d.standard}
		if v, ok := s.cfg.Environment[d.key]; ok && v.Reveal() != d.standard {
			e.source, e.value = api.Environment, v.Reveal()
		}
		if r, ok := byKey[d.key]; ok {
			at := r.UpdatedAt.UTC()
			e.source, e.value, e.at, e.by = api.Stored, r.Value, &at, r.UpdatedBy
		}
		if d.isSecret() && e.value != "" {
			e.value = masked
		}
		out = append(out, e)
	}
	return out
}
