package registry

import (
	"context"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Applications are those of Argo CD.
type Applications struct {
	Applications []Application `json:"applications"`
	// NotLookedAt lists what could not be read.
	NotLookedAt []string `json:"not_looked_at"`
}

// Application is the state of one application as Argo CD reports it.
type Application struct {
	Application operation.Reference `json:"application"`
	Sync        string              `json:"sync" jsonschema:"Synced, OutOfSync or Unknown"`
	Health      string              `json:"health" jsonschema:"Healthy, Progressing, Degraded, Suspended, Missing or Unknown"`
	Destination string              `json:"destination,omitempty" jsonschema:"Namespace that it is for."`
	Elsewhere   bool                `json:"elsewhere" jsonschema:"It is for another cluster."`
	Automatic   bool                `json:"automatic" jsonschema:"It is synced without a person."`
	SelfHeal    bool                `json:"self_heal" jsonschema:"What others change is taken back."`
	LastSync    string              `json:"last_sync,omitempty" jsonschema:"Running, Terminating, Succeeded, Failed or Error"`
	Message     string              `json:"message,omitempty" jsonschema:"What the last sync says."`
}

func applications(ctx context.Context, box turn.Toolbox, a namespaceArguments) (Result, error) {
	s, err := snapshotOf(ctx, box, a.Namespace)
	if err != nil {
		return Result{}, err
	}
	view, versions := report.View{Snapshot: s, Namespace: a.Namespace}, newVersions(s)
	list := &Applications{Applications: []Application{}, NotLookedAt: unread(s, "applications")}
	var references []operation.Reference
	for _, one := range view.ApplicationStatuses() {
		object := versions.cite(operation.Ref{Group: argocd.Group, Version: argocd.Version, Kind: "Application", Namespace: one.Namespace, Name: one.Name})
		references = append(references, object)
		list.Applications = append(list.Applications, Application{object, one.Sync, one.Health, one.Destination, one.Elsewhere, one.Automatic, one.SelfHeal, one.Operation, redact.Text(one.Message)})
	}
	return shown(report.Applications(view).String()+notRead(s.Unread, "applications"), list, references...), nil
}
