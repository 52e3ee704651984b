package poller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge"
	"github.com/mlp-platform/platform/services/control-plane/internal/identity"
	"github.com/mlp-platform/platform/services/control-plane/internal/push"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// errBusy means that a poll is in progress, on any replica.
var errBusy = errors.New("a poll is under way")

// recordTimeout limits the part of a poll that uses only this platform.
const recordTimeout = time.Minute

// maxError limits the stored text of an error, in bytes.
const maxError = 500

// found is the result of a poll.
type found struct {
	New    bool // the head was not known
	SHA    string
	Marked []string
}

// poll runs one cycle, requested by askedBy; empty: no one. An error is of the repository, errBusy, or of the
// platform's own stores; the first kind is kept for /health.
func (s *Service) poll(ctx context.Context, askedBy string) (found, error) {
	held, unlock, ok, err := s.Locks.Keep(ctx, cycle, cycleTTL)
	switch {
	case err != nil:
		return found{}, fmt.Errorf("lock the poll: %w", err)
	case !ok:
		return found{}, errBusy
	}
	defer unlock()
	select {
	case <-held.Done():
		return found{}, held.Err()
	case <-s.turn:
	}
	defer func() { s.turn <- struct{}{} }()
	out, err := s.look(held, askedBy)
	var away *awayError
	if errors.As(err, &away) && held.Err() == nil {
		msg := wire.TruncateText(err.Error(), maxError)
		if storeErr := s.Store.PollFailed(held, &msg); storeErr != nil {
			return out, errors.Join(err, storeErr)
		}
	}
	return out, err
}

// awayError is a fault of the repository or of the connection to it.
type awayError struct{ err error }

func (e *awayError) Error() string { return e.err.Error() }
func (e *awayError) Unwrap() error { return e.err }

// look compares the branch's head with the known one, and brings a new head into force before it is recorded: models
// added by it become stale as well.
func (s *Service) look(ctx context.Context, askedBy string) (out found, err error) {
	set, err := s.Config.Read(ctx, s.Store.Queries)
	if err != nil {
		return out, err
	}
	row, err := s.Store.GetPoller(ctx)
	if err != nil {
		return out, err
	}
	if row.Source != s.SourceID || row.Branch != set.WatchBranch {
		row = store.GetPollerRow{Readings: row.Readings}
	}
	asked, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	head, err := s.Source.Head(asked, set.WatchBranch)
	if errors.Is(err, forge.ErrMalformed) && head.SHA != "" {
		out.SHA = head.SHA
		return out, s.refuseHead(ctx, head.SHA, set.WatchBranch, row, err)
	}
	if err != nil {
		return out, &awayError{err}
	}
	out.SHA = head.SHA
	after := store.PollSucceededParams{
		Source: s.SourceID, Branch: set.WatchBranch, HeadCommit: wire.OptionalText(head.SHA), ForceCommit: row.ForceCommit, Fault: row.Fault,
	}
	if head.SHA == "" { // the repository is empty
		return out, s.Store.PollSucceeded(ctx, after)
	}
	known, err := s.known(ctx, set.WatchBranch, row)
	if err != nil {
		return out, err
	}
	p := push.Push{CommitSHA: head.SHA, Branch: set.WatchBranch, PushedBy: head.Author, Source: push.Poll, Message: head.Message, AskedBy: askedBy}
	if _, ok := s.Source.(*forge.Local); ok {
		p.Pusher = identity.Identity{Source: identity.Local}
	}
	if known != "" && known != head.SHA {
		// After a rewritten history the old head may be gone; then every file may have changed.
		files, err := s.Source.Files(asked, known, head.SHA)
		if p.Files, p.FilesKnown = files, err == nil; err != nil {
			s.Log.InfoContext(ctx, "changed files not known", slog.String("from", known), slog.String("to", head.SHA), slog.Any("err", err))
		}
	}
	before := s.Registry.Head()
	moved := row.HeadCommit == nil || *row.HeadCommit != head.SHA
	// A folder may get the head later; a commit's fault is permanent.
	_, fixed := s.exporter()
	if moved || before != head.SHA && !(fixed && row.Fault != nil) {
		after.Reread = 1
		if err := s.bring(asked, head.SHA, before, moved, &after); err != nil {
			return out, err
		}
	}
	// The first head seen is not news if the registry was read from it.
	first := known == "" && (before == "" || before == head.SHA)
	if known != head.SHA && !first {
		recording, cancel := context.WithTimeout(ctx, recordTimeout)
		defer cancel()
		s.own.Store(true)
		done, err := s.Push.Record(recording, p)
		out.New, out.Marked = err == nil && !done.Duplicate && done.Skipped == "", done.MarkedStale
		if heard := !s.own.Swap(false); heard && !out.New {
			signalOnce(s.heads) // the head was a webhook's
		}
		if err != nil {
			return out, fmt.Errorf("record the new head: %w", err)
		}
	}
	return out, s.Store.PollSucceeded(ctx, after)
}

// refuseHead records a head that cannot be read. That is a property of the commit and not a failure to poll: a person
// who can push must not be able to make the platform unready. Nothing becomes stale and nothing is trained because of
// it.
func (s *Service) refuseHead(ctx context.Context, sha, branch string, row store.GetPollerRow, cause error) error {
	why := s.Registry.Unreadable(sha, cause.Error()).Error()
	after := store.PollSucceededParams{Source: s.SourceID, Branch: branch, HeadCommit: &sha, ForceCommit: row.ForceCommit, Fault: &why}
	if row.Fault == nil || *row.Fault != why {
		if err := s.Store.InTx(ctx, func(tx store.Tx) error {
			return tx.Emit(ctx, event.Audit(event.PlatformTenant, actor, "registry.swapped", "modelrepo", event.Failed,
				map[string]any{"old": s.Registry.Head(), "new": sha, "reason": why}))
		}); err != nil {
			return err
		}
	}
	return s.Store.PollSucceeded(ctx, after)
}

// patience limits how long a poll may query the repository: a first clone transfers more than an answer.
func (s *Service) patience() time.Duration {
	if _, ok := s.exporter(); ok && s.Registry.Head() == "" {
		return CloneTimeout
	}
	return Timeout
}

// known returns the known head of the branch: of the newest push, else of the last poll.
func (s *Service) known(ctx context.Context, branch string, row store.GetPollerRow) (string, error) {
	sha, err := s.Store.LastPushOf(ctx, branch)
	switch {
	case err == nil:
		return sha, nil
	case !store.None(err):
		return "", err
	case row.HeadCommit != nil:
		return *row.HeadCommit, nil
	}
	return "", nil
}

// bring puts the head into force on this replica and records that in after. A refused head is a property of the commit,
// not a failure to poll.
func (s *Service) bring(ctx context.Context, sha, before string, moved bool, after *store.PollSucceededParams) error {
	err := s.apply(ctx, sha)
	switch {
	case err == nil:
		after.ForceCommit, after.Fault = wire.OptionalText(s.Registry.Head()), nil
		if s.Registry.Head() == before {
			return nil // a folder that does not have the head yet
		}
	case isRefusedCommit(err):
		why := err.Error()
		if !moved && after.Fault != nil && *after.Fault == why {
			return nil // already reported
		}
		after.Fault = &why
	default:
		return err
	}
	outcome, details := event.OK, map[string]any{"old": before, "new": sha}
	if err != nil {
		outcome, details["reason"] = event.Failed, err.Error()
	}
	return s.Store.InTx(ctx, func(tx store.Tx) error {
		return tx.Emit(ctx, event.Audit(event.PlatformTenant, actor, "registry.swapped", "modelrepo", outcome, details))
	})
}

// isRefusedCommit reports whether the fault is the commit's own, so that a retry is useless.
func isRefusedCommit(err error) bool {
	var r *registry.Refused
	return errors.As(err, &r)
}

// apply makes the registry read the commit: from a checkout of it, or from the folder as it is now.
func (s *Service) apply(ctx context.Context, sha string) error {
	source, ok := s.exporter()
	if !ok {
		return s.Registry.Reload(ctx)
	}
	old := s.Registry.Head()
	dir, err := source.Export(ctx, sha)
	switch {
	case errors.Is(err, forge.ErrMalformed):
		return s.Registry.Unreadable(sha, err.Error())
	case err != nil:
		return &awayError{err}
	}
	if err := s.Registry.Take(ctx, dir, sha); err != nil {
		return err
	}
	// Folders that requests may still read stay until the next commit.
	if err := source.Prune(ctx, sha, old); err != nil {
		s.Log.WarnContext(ctx, "old checkouts not removed", slog.Any("err", err))
	}
	return nil
}
