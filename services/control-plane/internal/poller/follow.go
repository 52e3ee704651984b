package poller

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/forge"
)

// readTimeout limits one read of the shared row.
const readTimeout = 3 * time.Second

// followState is this replica's view of the shared row.
type followState struct {
	read     bool // a row was seen
	readings int64
	nudges   int64
	folder   string    // the commit of the folder that was read or refused
	fault    string    // the reason why the newest head is not in force anywhere
	retry    time.Time // not before
	nudged   time.Time // when the nudge that waits for its poll was seen; zero: none
	overdue  bool      // the leader's poll is late
	tried    time.Time // when this replica last polled in the leader's place
}

// watch follows the shared row until ctx ends.
func (s *Service) watch(ctx context.Context) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	var f followState
	failing := false
	for {
		err := s.follow(ctx, &f)
		if err != nil && !failing && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "registry not followed", slog.Any("err", err))
		}
		failing = err != nil
		if f.overdue && time.Since(f.tried) > standInAfter {
			f.tried = time.Now()
			if _, err := s.poll(ctx, ""); err != nil && !errors.Is(err, errBusy) && ctx.Err() == nil {
				s.Log.WarnContext(ctx, "poll of the model repository failed, in place of the leader", slog.Any("err", err))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// checkOverdue records whether a poll by the leader is overdue. Its lease outlives
// a killed leader by three intervals, during which no other can be elected; the
// platform would become unready although any replica could poll. The lock of the
// cycle still keeps polls apart.
func (s *Service) checkOverdue(f *followState, checkedAge float64) {
	age := time.Since(*s.begun.Load())
	if checkedAge >= 0 {
		age = min(age, time.Duration(checkedAge*float64(time.Second)))
	}
	waits := time.Duration(0)
	if !f.nudged.IsZero() {
		if waits = time.Since(f.nudged); age < waits {
			f.nudged, waits = time.Time{}, 0
		}
	}
	every := s.interval()
	f.overdue = s.Source != nil && every > 0 && !s.leading.Load() && (age > missedAfter*every || waits > standInAfter)
}

// follow carries out what the shared row requests of this replica.
func (s *Service) follow(ctx context.Context, f *followState) error {
	select {
	case <-s.turn: // before the read, so that the row is not older than the registry
	default:
		return nil // a poll is already running here
	}
	defer func() { s.turn <- struct{}{} }()
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	row, err := s.Store.GetPoller(reading)
	cancel()
	if err != nil {
		return err
	}
	reread := f.read && row.Readings != f.readings
	if f.read && row.Nudges != f.nudges {
		signalOnce(s.poke)
		f.nudged = time.Now()
	}
	f.read, f.readings, f.nudges = true, row.Readings, row.Nudges
	s.checkOverdue(f, row.CheckedAgeSeconds)

	if source, ok := s.exporter(); ok {
		want, fault := "", ""
		if row.Source == s.SourceID && row.Branch == s.Config.Current().WatchBranch {
			want, fault = valueOrEmpty(row.ForceCommit), valueOrEmpty(row.Fault)
		}
		err := s.checkout(ctx, source, want, reread, f)
		if err == nil && fault != f.fault {
			f.fault = fault
			s.Registry.Refuse(fault)
		}
		return err
	}
	if local, ok := s.Source.(*forge.Local); ok && !reread && s.interval() > 0 {
		// Another commit may be checked out without notice.
		now, err := local.CheckedOut()
		if err != nil {
			return nil // the next poll reports it
		}
		reread = now != s.Registry.Head() && now != f.folder
		f.folder = now
	}
	if !reread {
		return nil
	}
	return ignoreRefused(s.Registry.Reload(ctx))
}

func valueOrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// checkout brings a commit into force on this replica. An empty one means that no replica has polled yet: then a
// replica without models takes the head.
func (s *Service) checkout(ctx context.Context, source forge.Exporter, want string, reread bool, f *followState) error {
	have := s.Registry.Head()
	switch {
	case want == "" && have != "", want != "" && want == have && !reread:
		return nil
	case want != "" && want == have:
		return ignoreRefused(s.Registry.Reload(ctx))
	case time.Now().Before(f.retry):
		return nil
	}
	f.retry = time.Now().Add(followRetry)
	asked, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	err := error(forge.ErrUnknown)
	if want != "" {
		err = s.apply(asked, want)
	}
	if errors.Is(err, forge.ErrUnknown) {
		head, headErr := source.Head(asked, s.Config.Current().WatchBranch)
		if headErr != nil {
			return headErr
		}
		if want == "" {
			want = head.SHA
		}
		if want == "" {
			return nil // the repository is empty
		}
		err = s.apply(asked, want)
	}
	if err = ignoreRefused(err); err == nil {
		f.retry = time.Time{}
	}
	return err
}

// ignoreRefused drops refused-commit errors; the registry already warns about them.
func ignoreRefused(err error) error {
	if isRefusedCommit(err) {
		return nil
	}
	return err
}
