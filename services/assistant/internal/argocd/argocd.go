// Package argocd holds the Application of Argo CD, with the fields that a diagnosis reads. The project's own module is not used: it
// would bring most of Kubernetes along for one struct.
package argocd

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Group and Version are those of Applications.
const (
	Group   = "argoproj.io"
	Version = "v1alpha1"
)

// TrackingAnnotation is the annotation that Argo CD writes on objects that an Application manages: APP:GROUP/KIND:NAMESPACE/NAME.
const TrackingAnnotation = "argocd.argoproj.io/tracking-id"

// Application is a source of manifests that is to be applied to a namespace of a cluster.
type Application struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status"`
}

// Spec is the desired state of an Application.
type Spec struct {
	Source      *Source     `json:"source"`
	Sources     []Source    `json:"sources"` // in place of Source
	Destination Destination `json:"destination"`
	SyncPolicy  *struct {
		Automated *struct {
			Enabled  *bool `json:"enabled"` // nil: true
			SelfHeal bool  `json:"selfHeal"`
		} `json:"automated"`
	} `json:"syncPolicy"`
}

// Source is where manifests come from.
type Source struct {
	RepoURL        string `json:"repoURL"`
	Path           string `json:"path"`
	Chart          string `json:"chart"`
	TargetRevision string `json:"targetRevision"` // empty: HEAD
}

// Destination is where manifests go to.
type Destination struct {
	Server    string `json:"server"`
	Name      string `json:"name"` // in place of Server
	Namespace string `json:"namespace"`
}

// Status is the state of an Application as Argo CD reports it.
type Status struct {
	Sync struct {
		Status   string `json:"status"` // Synced, OutOfSync, Unknown
		Revision string `json:"revision"`
	} `json:"sync"`
	Health         Health      `json:"health"`
	Conditions     []Condition `json:"conditions"`
	OperationState *Operation  `json:"operationState"`
	Resources      []Resource  `json:"resources"`
}

// Health is how an object is: Healthy, Progressing, Degraded, Suspended, Missing, Unknown.
type Health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// Condition is an error or a warning about an Application. One that is there holds.
type Condition struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Operation is the last sync, or the one that runs.
type Operation struct {
	Phase      string       `json:"phase"` // Running, Terminating, Succeeded, Failed, Error
	Message    string       `json:"message"`
	StartedAt  metav1.Time  `json:"startedAt"`
	FinishedAt *metav1.Time `json:"finishedAt"`
	SyncResult *struct {
		Resources []Result `json:"resources"`
	} `json:"syncResult"`
}

// Object names an object that an Application manages.
type Object struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Ref is the object as this service names it.
func (o Object) Ref() operation.Ref {
	return operation.Ref{Group: o.Group, Version: o.Version, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// Result is the result of a sync for one object.
type Result struct {
	Object
	Status    string `json:"status"` // Synced, SyncFailed, Pruned, PruneSkipped
	Message   string `json:"message"`
	HookPhase string `json:"hookPhase"` // as Operation.Phase
}

// HasFailed reports whether a sync failed at this object.
func (r Result) HasFailed() bool {
	return r.Status == "SyncFailed" || r.HookPhase == "Failed" || r.HookPhase == "Error"
}

// Resource is one object that an Application manages, as it is.
type Resource struct {
	Object
	Status string  `json:"status"`
	Health *Health `json:"health"` // nil: the kind has none
}

// IsAutomatic reports whether Argo CD syncs automatically.
func (a *Application) IsAutomatic() bool {
	p := a.Spec.SyncPolicy
	return p != nil && p.Automated != nil && (p.Automated.Enabled == nil || *p.Automated.Enabled)
}

// HealsItself reports whether Argo CD takes back what others change.
func (a *Application) HealsItself() bool {
	return a.IsAutomatic() && a.Spec.SyncPolicy.Automated.SelfHeal
}

// IsHere reports whether an Application deploys to the cluster that it is in.
func (a *Application) IsHere() bool {
	d := a.Spec.Destination
	server := strings.TrimSuffix(strings.TrimSuffix(d.Server, "/"), ":443")
	return d.Name == "in-cluster" || server == "https://kubernetes.default.svc" || server == "https://kubernetes.default" || server == "" && d.Name == ""
}

// HasFailed reports whether the last sync failed.
func (a *Application) HasFailed() bool {
	op := a.Status.OperationState
	return op != nil && (op.Phase == "Failed" || op.Phase == "Error")
}

// Manages reports whether an object, with these annotations, is one of the Application's: by its own list, else by what Argo CD
// wrote on the object.
func (a *Application) Manages(r operation.Ref, annotations map[string]string) bool {
	if !a.IsHere() {
		return false
	}
	return a.lists(r) || a.isTracked(r, annotations)
}

func (a *Application) lists(r operation.Ref) bool {
	return slices.ContainsFunc(a.Status.Resources, func(o Resource) bool {
		return o.Group == r.Group && o.Kind == r.Kind && o.Namespace == r.Namespace && o.Name == r.Name
	})
}

// isTracked compares with the annotation of an object. Applications outside of Argo CD's own namespace have theirs before their
// name; copies of an object, as controllers make them, have the annotation of another one.
func (a *Application) isTracked(r operation.Ref, annotations map[string]string) bool {
	app, object, _ := strings.Cut(annotations[TrackingAnnotation], ":")
	return (app == a.Name || app == a.Namespace+"_"+a.Name) && object == r.Group+"/"+r.Kind+":"+r.Namespace+"/"+r.Name
}

// SourceList are all sources.
func (a *Application) SourceList() []Source {
	if a.Spec.Source != nil && len(a.Spec.Sources) == 0 {
		return []Source{*a.Spec.Source}
	}
	return a.Spec.Sources
}
