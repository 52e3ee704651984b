package alias

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"

	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// TagDigest is the version tag that holds the digest of its files.
const TagDigest = "artifact_digest"

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ValidDigest reports whether a tag holds the digest of a version's files.
func ValidDigest(tag string) bool { return digestForm.MatchString(tag) }

// digestSeen tags versions that hold an alias of an external model with the digest of
// their files when they are first seen, so that a later change of the files is detected.
// A version that fails is retried on the next pass.
func (m *Mover) digestSeen(ctx context.Context, found map[string]Holders) error {
	if m.digested == nil {
		m.digested = map[string]bool{}
	}
	var faults []error
	wanted := map[string][]string{} // versions by model
	for model, holders := range found {
		for _, version := range holders {
			wanted[model] = append(wanted[model], version)
		}
	}
	// Promotions for moves that were put back hold no alias, and the gate will need their digest.
	waiting, err := m.Store.PendingOutsidePromotions(ctx)
	if err != nil {
		return err
	}
	for _, p := range waiting {
		wanted[p.ModelID] = append(wanted[p.ModelID], p.Version)
	}
	for _, t := range m.Registry.External() {
		for _, version := range wanted[t.ID] {
			key := t.ID + "\x00" + version
			if m.digested[key] {
				continue
			}
			if err := m.digestVersion(ctx, t.ID, t.TrackerName, version); err != nil {
				faults = append(faults, fmt.Errorf("digest of version %s of %s: %w", version, t.ID, err))
				continue
			}
			m.digested[key] = true
		}
	}
	return errors.Join(faults...)
}

// watcher is the actor recorded for the watcher's own actions.
const watcher = "system:alias-watcher"

// bindHolders records the digest of versions that hold Production without one, such as those from before digests were
// recorded: until then inference would accept any files of that version.
func (m *Mover) bindHolders(ctx context.Context) error {
	rows, err := m.Store.CurrentHolders(ctx)
	if err != nil {
		return err
	}
	var faults []error
	for _, r := range rows {
		if r.Alias == Production && r.Version != nil && r.Digest == nil {
			faults = append(faults, m.bindHolder(ctx, r))
		}
	}
	return errors.Join(faults...)
}

func (m *Mover) bindHolder(ctx context.Context, holder store.AliasHistory) error {
	digest, err := m.taggedDigest(ctx, holder.ModelID, *holder.Version)
	if err != nil || !ValidDigest(digest) {
		return err
	}
	return m.Store.InTx(ctx, func(tx store.Tx) error {
		n, err := tx.RecordHolderDigest(ctx, store.RecordHolderDigestParams{ID: holder.ID, Digest: &digest})
		if err != nil || n == 0 { // replaced, or recorded by another replica
			return err
		}
		return tx.Emit(ctx, event.Audit(event.PlatformTenant, watcher, "alias.digest_recorded", event.Model(holder.ModelID), event.OK, map[string]any{
			"alias": holder.Alias, "version": holder.Version, "digest": digest,
		}))
	})
}

// taggedDigest returns the digest of the version's files from its tag; empty without one.
func (m *Mover) taggedDigest(ctx context.Context, model, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	mv, err := m.Tracker.GetModelVersion(ctx, m.Registry.TrackerName(model), version)
	switch {
	case errors.Is(err, tracker.ErrNotFound):
		return "", nil
	case err != nil:
		return "", Problem(err)
	}
	return mv.Tags[TagDigest], nil
}

func (m *Mover) digestVersion(ctx context.Context, model, name, version string) error {
	mv, err := m.Tracker.GetModelVersion(ctx, name, version)
	if errors.Is(err, tracker.ErrNotFound) || err == nil && mv.Tags[TagDigest] != "" {
		return nil
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "external-model-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	files, err := m.Tracker.DownloadModel(ctx, mv, filepath.Join(dir, "model"))
	if err != nil {
		return err
	}
	digest := tracker.Digest(files)
	m.Log.InfoContext(ctx, "digest of an external model computed", slog.String("model", name), slog.String("version", version), slog.String("digest", digest))
	// Before the tag, without which the gate refuses: so no one can approve files that the promotion does not show.
	if err := m.Store.RecordDigestOfPending(ctx, store.RecordDigestOfPendingParams{ModelID: model, Version: version, Digest: &digest}); err != nil {
		return err
	}
	return m.Tracker.SetModelVersionTag(ctx, name, version, TagDigest, digest)
}
