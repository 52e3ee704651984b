// Package diff shows the changes under approval: those of the model repository between the commit a model was last
// trained from and the one in the notice.
package diff

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge"
	"github.com/mlp-platform/platform/services/control-plane/internal/repoconfig"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// timeout limits the repository queries of one diff.
const timeout = 10 * time.Second

// maxBytes limits the answer. frame is its size without the files.
const (
	maxBytes = 1 << 20
	frame    = 1 << 10
)

// API serves the diff of an approval.
type API struct {
	Store *store.Store
	// Source is the model repository; nil: it is in no git repository.
	Source forge.Source
	Config *repoconfig.Service
	Log    *slog.Logger
}

// compare retries after a fetch: the commit may be newer than the last poll.
func (a API) compare(ctx context.Context, from, to string) (forge.Diff, error) {
	d, err := a.Source.Diff(ctx, from, to)
	if _, fetches := a.Source.(forge.Exporter); !fetches || !errors.Is(err, forge.ErrUnknown) {
		return d, err
	}
	if _, fetchErr := a.Source.Head(ctx, a.Config.Current().WatchBranch); fetchErr != nil {
		a.Log.InfoContext(ctx, "nothing fetched for a diff", slog.Any("err", fetchErr))
		return d, err
	}
	return a.Source.Diff(ctx, from, to)
}

// limitSize keeps the encoded answer within maxBytes: patches are left out first, then files.
func limitSize(d forge.Diff) (api.ApprovalDiff, error) {
	out := api.ApprovalDiff{FromCommit: wire.OptionalText(d.From), ToCommit: d.To, Files: []api.DiffFile{}, Truncated: d.Truncated}
	left := maxBytes - frame
	for _, f := range d.Files {
		row := api.DiffFile{
			Path: f.Path, Status: api.DiffFileStatus(f.Status), Additions: f.Additions, Deletions: f.Deletions, Patch: wire.OptionalText(f.Patch),
		}
		size, err := sizeOf(row)
		if err != nil {
			return out, err
		}
		if size > left && row.Patch != nil {
			row.Patch, out.Truncated = nil, true
			if size, err = sizeOf(row); err != nil {
				return out, err
			}
		}
		if size > left {
			out.Truncated = true
			break
		}
		left -= size
		out.Files = append(out.Files, row)
	}
	return out, nil
}

func sizeOf(f api.DiffFile) (int, error) {
	b, err := json.Marshal(f)
	return len(b) + 1, err // plus a comma
}
