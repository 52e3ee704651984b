// Package repoconfig stores the settings of the model repository that an operator may change while the platform runs:
// the watched branch, the poll interval, and the effects of a push. They are in Postgres, so that they survive a
// restart and are in force on all replicas.
package repoconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// The models that a push makes stale.
const (
	All     = "all"     // every model
	Touched = "touched" // models whose files changed
)

// The gates between a push and a training run if AutoRetrain is on.
const (
	Approval = "approval" // a person decides
	Direct   = "direct"   // immediately
)

// Limits of PollIntervalSeconds, besides 0 (off).
const (
	minInterval = 10
	maxInterval = 86400
)

// maxBranch limits a branch's name, in bytes: the limit of file systems.
const maxBranch = 244

// Settings are the settings in force.
type Settings struct {
	// AutoRetrain makes pushes lead to training, through Gate.
	AutoRetrain bool `json:"auto_retrain"`
	// PollIntervalSeconds is 0 (no polling) or 10 to 86400.
	PollIntervalSeconds int `json:"poll_interval_seconds"`
	// WatchBranch is the branch whose pushes count, without refs/heads/.
	WatchBranch string `json:"watch_branch"`
	// StaleScope is All or Touched.
	StaleScope string `json:"stale_scope"`
	// Gate is Approval or Direct.
	Gate string `json:"gate"`
}

// Check describes the faults of the settings, by key; empty if there are none.
func (s Settings) Check() map[string]string {
	faults := map[string]string{}
	if n := s.PollIntervalSeconds; n != 0 && (n < minInterval || n > maxInterval) {
		faults[keyInterval] = fmt.Sprintf("must be 0 (off) or %d to %d seconds", minInterval, maxInterval)
	}
	if !validBranch(s.WatchBranch) {
		faults[keyBranch] = "must be the name of a git branch, without refs/heads/ and invisible characters"
	}
	if s.StaleScope != All && s.StaleScope != Touched {
		faults[keyScope] = "must be all or touched"
	}
	if s.Gate != Approval && s.Gate != Direct {
		faults[keyGate] = "must be approval or direct"
	}
	return faults
}

// validBranch checks a name against git's rules for branches, and requires it to be short and readable: refs/heads/main
// would match no push, and a name with invisible characters is not one that a person chose.
func validBranch(name string) bool {
	return name != "HEAD" && !strings.HasPrefix(name, "refs/") && len(name) <= maxBranch && utf8.ValidString(name) &&
		strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 &&
		plumbing.NewBranchReferenceName(name).Validate() == nil
}

// CheckFirst is Check for the settings of a first start, for the reader of the environment.
func CheckFirst(autoRetrain bool, seconds int, branch string) (Settings, error) {
	s := Settings{AutoRetrain: autoRetrain, PollIntervalSeconds: seconds, WatchBranch: branch, StaleScope: All, Gate: Approval}
	names := map[string]string{keyInterval: "MODELREPO_POLL_SECONDS", keyBranch: "MODELREPO_WATCH_BRANCH"}
	var faults []error
	found := s.Check()
	for _, key := range slices.Sorted(maps.Keys(found)) {
		faults = append(faults, fmt.Errorf("%s %s", names[key], found[key]))
	}
	return s, errors.Join(faults...)
}

// pollEvery is how often a replica checks for another's changes: one row by key. It is well under the second in which a
// change must be in force.
const pollEvery = 400 * time.Millisecond

// readTimeout limits one read.
const readTimeout = 3 * time.Second

// firstStart is the actor of settings from the environment.
const firstStart = "system:start"

// Service returns the settings in force. It is safe for concurrent use.
type Service struct {
	store *store.Store
	first Settings
	guard *guarded.Service
	now   func() time.Time
	log   *slog.Logger

	mu      sync.Mutex // guards the fields below
	current Settings
	changed chan struct{}
}

// New returns a Service that uses first until Load has read the stored settings.
func New(db *store.Store, first Settings, guard *guarded.Service, now func() time.Time, log *slog.Logger) *Service {
	s := &Service{store: db, first: first, guard: guard, now: now, log: log, current: first, changed: make(chan struct{})}
	guard.Handle(guarded.RepoConfig, s.applyChange)
	return s
}

// Load stores the first settings if there are none, and reads the stored ones.
func (s *Service) Load(ctx context.Context) error {
	if err := s.store.InTx(ctx, func(tx store.Tx) error {
		f := s.first
		added, err := tx.InitModelrepoConfig(ctx, store.InitModelrepoConfigParams{
			AutoRetrain: f.AutoRetrain, PollIntervalSeconds: int32(f.PollIntervalSeconds), WatchBranch: f.WatchBranch,
			StaleScope: f.StaleScope, Gate: f.Gate, Now: s.now(), UpdatedBy: firstStart,
		})
		if err != nil || added == 0 {
			return err
		}
		return tx.Emit(ctx, event.Audit(event.PlatformTenant, firstStart, "modelrepo.config_set", target, event.OK,
			map[string]any{"new": f.values()}))
	}); err != nil {
		return err
	}
	return s.refresh(ctx)
}

// Current returns the settings in force on this replica, at most a second old.
func (s *Service) Current() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Changed returns a channel that is closed at the next change.
func (s *Service) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Read returns the settings in the transaction's view: exact even within the second that Current may be late.
func (s *Service) Read(ctx context.Context, q *store.Queries) (Settings, error) {
	row, err := q.GetModelrepoConfig(ctx)
	if store.None(err) {
		return s.first, nil
	}
	return settingsFromRow(row), err
}

// Run follows the changes of other replicas until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := s.refresh(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			s.log.WarnContext(ctx, "settings of the model repository not readable", slog.Any("err", err))
		}
		failing = err != nil
	}
}

func (s *Service) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	now, err := s.Read(ctx, s.store.Queries)
	if err == nil {
		s.take(now)
	}
	return err
}

func (s *Service) take(now Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now == s.current {
		return
	}
	s.current = now
	close(s.changed)
	s.changed = make(chan struct{})
}

// target is the settings' name in the ledger.
const target = "modelrepo:config"

// dispatches reports whether a push starts training without a decision.
func (s Settings) dispatches() bool { return s.AutoRetrain && s.Gate == Direct }

// applyChange carries out an approved change.
func (s *Service) applyChange(ctx context.Context, tx store.Tx, c store.GuardedChange, by auth.Principal) error {
	var to Settings
	if err := json.Unmarshal(c.New, &to); err != nil {
		return fmt.Errorf("guarded change %s: decode settings: %w", c.ID, err)
	}
	row, err := tx.LockModelrepoConfig(ctx)
	if err != nil {
		return err
	}
	return s.put(ctx, tx, by, settingsFromRow(row), to)
}

// Change applies fn to the settings in force and stores the result; an error of fn changes nothing. waits is not nil if
// the change waits for a second person, because with it training starts without a decision.
func (s *Service) Change(ctx context.Context, p auth.Principal, fn func(*Settings) error) (after Settings, waits *store.GuardedChange, err error) {
	err = s.store.InTx(ctx, func(tx store.Tx) error {
		waits = nil
		row, err := tx.LockModelrepoConfig(ctx)
		if err != nil {
			return err
		}
		before := settingsFromRow(row)
		after = before
		if err := fn(&after); err != nil || after == before {
			return err
		}
		if after.dispatches() { // even if it trained directly before: another branch or interval starts other training
			waits, err = s.guard.Propose(ctx, tx, p, guarded.Change{Kind: guarded.RepoConfig, Target: "modelrepo", Old: before, New: after})
			if err != nil || waits != nil {
				after = before
				return err
			}
		} else if err := s.guard.Supersede(ctx, tx, p, guarded.RepoConfig, "modelrepo"); err != nil {
			return err
		}
		return s.put(ctx, tx, p, before, after)
	})
	if err != nil {
		return Settings{}, nil, err
	}
	s.take(after)
	return after, waits, nil
}

// put stores the settings.
func (s *Service) put(ctx context.Context, tx store.Tx, p auth.Principal, before, after Settings) error {
	if err := tx.PutModelrepoConfig(ctx, store.PutModelrepoConfigParams{
		AutoRetrain: after.AutoRetrain, PollIntervalSeconds: int32(after.PollIntervalSeconds), WatchBranch: after.WatchBranch,
		StaleScope: after.StaleScope, Gate: after.Gate, Now: s.now(), UpdatedBy: p.Name,
	}); err != nil {
		return err
	}
	old, set := before.values(), after.values()
	maps.DeleteFunc(old, func(key string, v any) bool { return set[key] == v })
	maps.DeleteFunc(set, func(key string, _ any) bool { _, changed := old[key]; return !changed })
	return tx.Emit(ctx,
		event.Of(event.PlatformTenant, p.Name, "event", "config_changed", "modelrepo",
			event.ConfigChanged{Scope: "modelrepo", Keys: slices.Sorted(maps.Keys(set))}),
		event.Shared(p.Tenant, p.Name, "modelrepo.config_set", target, event.OK, map[string]any{"old": old, "new": set}),
	)
}

func settingsFromRow(row store.ModelrepoConfig) Settings {
	return Settings{
		AutoRetrain: row.AutoRetrain, PollIntervalSeconds: int(row.PollIntervalSeconds), WatchBranch: row.WatchBranch,
		StaleScope: row.StaleScope, Gate: row.Gate,
	}
}

// values returns the settings by key.
func (s Settings) values() map[string]any {
	return map[string]any{
		keyAuto: s.AutoRetrain, keyInterval: s.PollIntervalSeconds, keyBranch: s.WatchBranch, keyScope: s.StaleScope, keyGate: s.Gate,
	}
}
