// Package application explains why an Application of Argo CD is not synced or not healthy.
package application

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// longSync is how long a sync may run before it is a problem.
const longSync = 30 * time.Minute

// Index finds the objects of a snapshot.
type Index struct{ *engine.Index }

// New returns the index of this package over x, for one diagnosis.
func New(x *engine.Index) *Index { return &Index{x} }

// Checks returns the checks of this package.
func (x *Index) Checks() engine.Checks {
	return engine.Checks{Objects: engine.BindObjectChecks(x, checkApplications)}
}

// checkApplications explains ApplicationNotSynced.
func checkApplications(x *Index) []engine.Finding {
	var found []engine.Finding
	for i := range x.Applications {
		a := &x.Applications[i]
		if a.DeletionTimestamp != nil {
			continue
		}
		f := newFinding(a)
		if x.explain(&f, a) {
			found = append(found, f)
		}
	}
	return found
}

// Drifted returns the applications that differ from their sources and have no automatic sync, which may be intentional.
func (x *Index) Drifted() []engine.Finding {
	var found []engine.Finding
	for i := range x.Applications {
		a := &x.Applications[i]
		if f := newFinding(a); a.DeletionTimestamp == nil && a.Status.Sync.Status == "OutOfSync" && !a.IsAutomatic() && !x.explain(&f, a) {
			f.Confidence = engine.Low
			f.Cause = "The running objects differ from the source, and automatic sync is off for this application."
			f.Evidence = append(f.Evidence, differing(a)...)
			f.Text = "Sync it in Argo CD, if what its source holds is meant."
			found = append(found, f)
		}
	}
	return found
}

func newFinding(a *argocd.Application) engine.Finding {
	f := engine.Finding{Class: engine.ApplicationNotSynced, Object: engine.ApplicationRef(a), Confidence: engine.High}
	f.Evidence = []string{fmt.Sprintf("Argo CD reports it as %s and %s.", engine.QuoteCode(orUnknown(a.Status.Sync.Status)), engine.QuoteCode(orUnknown(a.Status.Health.Status)))}
	if !a.IsHere() {
		return f
	}
	f.Namespaces = []string{a.Spec.Destination.Namespace}
	for _, o := range a.Status.Resources {
		if o.Namespace != "" && !slices.Contains(f.Namespaces, o.Namespace) {
			f.Namespaces = append(f.Namespaces, o.Namespace)
		}
	}
	return f
}

func orUnknown(status string) string {
	if status == "" {
		return "Unknown"
	}
	return status
}

// explain explains why an application is not synced or not healthy.
func (x *Index) explain(f *engine.Finding, a *argocd.Application) (bad bool) {
	unhealthy := isUnhealthy(a)
	op := a.Status.OperationState
	refused := conditionsOf(a, "ComparisonError", "InvalidSpecError", "UnknownError", "DeletionError")
	switch {
	case len(refused) > 0:
		f.Cause = "Argo CD cannot compare the application with its source, so it changes nothing."
		f.Text = "Correct what the condition names."
		addHint(f, comparisonHints, refused[0].Message)
		for _, c := range refused {
			f.Evidence = append(f.Evidence, fmt.Sprintf("Its condition %s: %s.", engine.QuoteCode(c.Type), engine.QuoteLine(c.Message)))
		}
		f.Evidence = append(f.Evidence, sourcesText(a)...)
	case a.HasFailed() && (unhealthy || a.Status.Sync.Status != "Synced"):
		x.explainFailed(f, a)
	case op != nil && op.Phase == "Running" && x.Taken.Sub(op.StartedAt.Time) > longSync:
		f.Confidence = engine.Medium
		f.Cause = fmt.Sprintf("The sync of the application has been running for %s.", x.Since(op.StartedAt))
		f.Evidence = append(f.Evidence, fmt.Sprintf("It says %s.", engine.QuoteLine(op.Message)))
		f.Text = "Look at the object that it waits for. To end the sync: `argocd app terminate-op`."
		x.addUnhealthy(f, a)
	case unhealthy:
		f.Confidence = engine.Medium
		f.Cause = "Objects of the application are not healthy."
		f.Text = "Look at these objects."
		if a.Status.Health.Status == "Missing" {
			f.Cause = "Objects that the application's source holds are not in the cluster."
			f.Text = "Sync it in Argo CD, or look what its last sync says."
			if !a.IsAutomatic() {
				f.Cause += " Automatic sync is off."
			}
		}
		x.addUnhealthy(f, a)
	default:
		return false
	}
	return true
}

// explainFailed names the objects at which the last sync failed.
func (x *Index) explainFailed(f *engine.Finding, a *argocd.Application) {
	op := a.Status.OperationState
	f.Cause, f.Text = "The last sync of the application failed.", "Correct what the sync's message names, at the source."
	message := op.Message
	if op.SyncResult != nil {
		var names []string
		for _, r := range op.SyncResult.Resources {
			if !r.HasFailed() {
				continue
			}
			if len(names) == 0 {
				message = r.Message // only the operation's own message
			}
			names = append(names, engine.RefTitle(r.Ref()))
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s.", engine.UpperFirst(engine.RefTitle(r.Ref())), engine.QuoteLine(r.Message)))
			x.follow(f, a, r.Object)
		}
		if len(names) > 0 {
			f.Cause = fmt.Sprintf("The last sync of the application failed at %s.", joinSome(names))
		}
	}
	addHint(f, syncHints, message)
	f.Evidence = append(f.Evidence, fmt.Sprintf("The sync ended as %s: %s.", engine.QuoteCode(op.Phase), engine.QuoteLine(op.Message)))
	for _, c := range conditionsOf(a, "SyncError") {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Its condition %s: %s.", engine.QuoteCode(c.Type), engine.QuoteLine(c.Message)))
	}
	x.addUnhealthy(f, a)
}

// follow makes a finding about an object of the application the cause of this one.
func (x *Index) follow(f *engine.Finding, a *argocd.Application, o argocd.Object) {
	if a.IsHere() && !slices.Contains(f.Because, o.Ref()) {
		f.Because = append(f.Because, o.Ref())
	}
}

// addUnhealthy names the unhealthy objects: findings about them are more specific. From version 3 on Argo CD does not
// write the health of each object into the status, so any of them may be the one.
func (x *Index) addUnhealthy(f *engine.Finding, a *argocd.Application) {
	hidden := isUnhealthy(a) && !slices.ContainsFunc(a.Status.Resources, func(o argocd.Resource) bool { return o.Health != nil })
	if hidden {
		f.Text += fmt.Sprintf(" The application does not name them: `argocd app get %s` does.", a.Name)
	}
	for _, o := range a.Status.Resources {
		if hidden {
			x.follow(f, a, o.Object)
		}
		if o.Health == nil || o.Health.Status != "Degraded" && o.Health.Status != "Missing" && (o.Health.Status != "Progressing" || a.Status.Health.Status == "Degraded") {
			continue
		}
		text := fmt.Sprintf("%s is %s", engine.UpperFirst(engine.RefTitle(o.Ref())), engine.QuoteCode(o.Health.Status))
		if o.Health.Message != "" {
			text += ": " + engine.QuoteLine(o.Health.Message)
		}
		f.Evidence = append(f.Evidence, text+".")
		x.follow(f, a, o.Object)
	}
	if a.Status.Health.Message != "" {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Its health says %s.", engine.QuoteLine(a.Status.Health.Message)))
	}
}

func isUnhealthy(a *argocd.Application) bool {
	return a.Status.Health.Status == "Degraded" || a.Status.Health.Status == "Missing"
}

func conditionsOf(a *argocd.Application, types ...string) (all []argocd.Condition) {
	for _, c := range a.Status.Conditions {
		if slices.Contains(types, c.Type) {
			all = append(all, c)
		}
	}
	return all
}

// differing names the objects that differ from the source.
func differing(a *argocd.Application) []string {
	var names []string
	for _, o := range a.Status.Resources {
		if o.Status == "OutOfSync" {
			names = append(names, engine.RefTitle(o.Ref()))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Different are %s.", joinSome(names))}
}

// joinSome lists the first five names.
func joinSome(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

func sourcesText(a *argocd.Application) []string {
	var all []string
	for _, s := range a.SourceList() {
		what := "path " + engine.QuoteCode(s.Path)
		if s.Chart != "" {
			what = "chart " + engine.QuoteCode(s.Chart)
		}
		revision := s.TargetRevision
		if revision == "" {
			revision = "HEAD"
		}
		all = append(all, fmt.Sprintf("Its source is %s, %s, revision %s.", engine.QuoteCode(s.RepoURL), what, engine.QuoteCode(revision)))
	}
	return all
}

// hint maps phrases in a message of Argo CD to their meaning and a remedy.
type hint struct {
	words      []string
	what, help string
}

// comparisonHints and syncHints are tried in order.
var (
	comparisonHints = []hint{
		{[]string{"is not permitted in project", "not permitted in project", "not allowed in project", "does not match any of the allowed"}, "Its project does not permit this.", "Permit it in the AppProject, or name another project."},
		{[]string{"authentication required", "permission denied", "repository not found", "authorization failed", "invalid username"}, "The repository does not let Argo CD in, or does not exist.", "Check the address of the repository and Argo CD's credentials for it."},
		{[]string{"app path does not exist", "no such file or directory"}, "The path is not in the repository at that revision.", "Check the path and the revision."},
		{[]string{"unable to resolve", "couldn't find remote ref", "failed to resolve revision"}, "The revision does not exist.", "Check the branch, tag or version that the source names."},
		{[]string{"no such host", "connection refused", "i/o timeout", "deadline exceeded", "unavailable"}, "Argo CD does not reach the repository, or its own repo server.", "Look whether argocd-repo-server runs, and reaches the repository."},
		{[]string{"manifest generation error", "failed to generate", "helm template", "kustomize build", "error converting yaml"}, "Its manifests cannot be rendered.", "Render them as Argo CD does, at the source, and correct what fails."},
		{[]string{"the server could not find the requested resource", "no matches for kind"}, "The cluster does not serve a kind of it.", "Install the CRD first."},
	}
	syncHints = []hint{
		{[]string{"field is immutable", "cannot be changed", "updates to statefulset spec"}, "A field that cannot be changed differs.", "Delete the object and let Argo CD create it anew (`Replace=true`), if it may be gone for a moment; or take the change back at the source."},
		{[]string{"is not permitted in project", "not permitted in project"}, "Its project does not permit this.", "Permit it in the AppProject, or name another project."},
		{[]string{"denied the request", "admission webhook"}, "An admission webhook refuses it.", "Correct what the webhook names, or look whether it runs."},
		{[]string{"violates podsecurity"}, "The namespace's pod security standard forbids it.", "Reduce the pods' privileges in the source."},
		{[]string{"exceeded quota"}, "A quota refuses it.", "Raise the quota, or request less."},
		{[]string{"forbidden"}, "Argo CD may not do this in the cluster.", "Give Argo CD's account that right, or leave the object out."},
		{[]string{"no matches for kind", "could not find the requested resource", "make sure the crd is installed"}, "The cluster does not serve a kind of it.", "Install the CRD first, such as by a sync wave before it."},
		{[]string{"namespaces \"", "namespace not found"}, "The namespace does not exist.", "Create the namespace, or set the sync option `CreateNamespace=true`."},
		{[]string{"is invalid", "validation", "unknown field"}, "The cluster does not take a manifest of it.", "Correct the manifest at the source."},
	}
)

func addHint(f *engine.Finding, hints []hint, message string) {
	low := strings.ToLower(message)
	for _, h := range hints {
		if slices.ContainsFunc(h.words, func(w string) bool { return strings.Contains(low, w) }) {
			f.Cause, f.Text = f.Cause+" "+h.what, h.help
			return
		}
	}
}
