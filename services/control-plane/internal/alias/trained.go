package alias

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Tags on the version and on its run in which the trainer records the source of the training.
const (
	tagCommit = "modelrepo_commit"
	tagDirty  = "modelrepo_dirty"
	tagDummy  = "dummy"
)

// Commit returns the model repository's commit that a version claims; empty without one.
func Commit(v tracker.ModelVersion, r tracker.Run) string {
	return cmp.Or(v.Tags[tagCommit], r.Tags[tagCommit])
}

// Dirty reports whether a version was trained on an uncommitted definition.
func Dirty(v tracker.ModelVersion, r tracker.Run) bool {
	return strings.EqualFold(v.Tags[tagDirty], "true") || strings.EqualFold(r.Tags[tagDirty], "true")
}

// Dummy reports whether a version was trained on a dummy sample: its tag or its run's
// has any value but empty and false.
func Dummy(v tracker.ModelVersion, r tracker.Run) bool {
	for _, s := range []string{v.Tags[tagDummy], r.Tags[tagDummy]} {
		if s = strings.ToLower(strings.TrimSpace(s)); s != "" && s != "false" {
			return true
		}
	}
	return false
}

// trainedFrom returns the commit of a version that now holds an alias; empty if it does not count for the model's
// freshness. Reported versions are in the store; others, such as versions trained while no control plane was
// configured, are looked up in the tracker.
func (m *Mover) trainedFrom(ctx context.Context, model, alias, version string) (string, error) {
	if _, defined := m.Registry.Find(model); !defined || alias != Production || version == "" {
		return "", nil
	}
	row, err := m.Store.GetVersion(ctx, store.GetVersionParams{ModelID: model, Version: version})
	switch {
	case err == nil && row.IsDummy:
		return "", nil
	case err == nil:
		return wire.Deref(row.CommitSha), nil
	case !store.None(err):
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	mv, err := m.Tracker.GetModelVersion(ctx, m.Registry.TrackerName(model), version)
	var run tracker.Run
	if err == nil && mv.RunID != "" {
		run, err = m.Tracker.GetRun(ctx, mv.RunID)
	}
	switch {
	case err != nil && !errors.Is(err, tracker.ErrNotFound):
		return "", Problem(err)
	case Dummy(mv, run) || Dirty(mv, run):
		return "", nil
	}
	return Commit(mv, run), nil
}
