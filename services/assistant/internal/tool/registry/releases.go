package registry

import (
	"context"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Releases are those of Helm.
type Releases struct {
	Releases []Release `json:"releases"`
	// NotLookedAt lists what could not be read.
	NotLookedAt []string `json:"not_looked_at"`
}

// Release is the newest revision of one.
type Release struct {
	Secret   operation.Reference `json:"secret" jsonschema:"The Secret that stores the revision; its data is not read."`
	Name     string              `json:"name"`
	Revision int                 `json:"revision"`
	Status   string              `json:"status" jsonschema:"deployed, failed, pending-install, pending-upgrade, pending-rollback, uninstalling, uninstalled or superseded"`
	Created  *time.Time          `json:"created,omitempty" jsonschema:"When the revision was begun."`
	Deployed int                 `json:"deployed" jsonschema:"The newest revision that was deployed; 0: none."`
}

func releases(ctx context.Context, box turn.Toolbox, a namespaceArguments) (Result, error) {
	s, err := snapshotOf(ctx, box, a.Namespace)
	if err != nil {
		return Result{}, err
	}
	view := report.View{Snapshot: s, Namespace: a.Namespace}
	list := &Releases{Releases: []Release{}, NotLookedAt: unread(s, "secrets")}
	var references []operation.Reference
	for _, r := range view.ReleaseList() {
		secret := r.Ref.Cite("")
		references = append(references, secret)
		list.Releases = append(list.Releases, Release{secret, r.Name, r.Revision, r.Status, timePointer(r.Created), r.Deployed})
	}
	return shown(report.Releases(view).String()+notRead(s.Unread, "secrets"), list, references...), nil
}
