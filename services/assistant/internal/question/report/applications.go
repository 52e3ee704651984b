package report

import (
	"cmp"
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
)

// ApplicationStatus is the state of an Argo CD application.
type ApplicationStatus struct {
	Namespace, Name string
	Sync, Health    string
	// Destination is its target namespace; Elsewhere reports that this is in another cluster.
	Destination string
	Elsewhere   bool
	Automatic   bool   // synced automatically
	SelfHeal    bool   // changes by others are reverted
	Operation   string // phase of the last sync; empty: none
	Message     string // of the last sync
}

// ApplicationStatuses lists the Argo CD applications that are in the namespace of a view, or deploy to it.
func (v View) ApplicationStatuses() []ApplicationStatus {
	var all []ApplicationStatus
	for i := range v.Applications {
		a := &v.Applications[i]
		if !v.about("Application", a) && (len(v.Objects) > 0 || !a.IsHere() || !v.has(a.Spec.Destination.Namespace)) {
			continue
		}
		all = append(all, statusOf(a))
	}
	slices.SortFunc(all, func(a, b ApplicationStatus) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func statusOf(a *argocd.Application) ApplicationStatus {
	s := ApplicationStatus{
		Namespace: a.Namespace, Name: a.Name, Sync: cmp.Or(a.Status.Sync.Status, "Unknown"), Health: cmp.Or(a.Status.Health.Status, "Unknown"),
		Destination: a.Spec.Destination.Namespace, Elsewhere: !a.IsHere(), Automatic: a.IsAutomatic(), SelfHeal: a.HealsItself(),
	}
	if op := a.Status.OperationState; op != nil {
		s.Operation, s.Message = op.Phase, op.Message
	}
	return s
}

// Applications lists the Argo CD applications with the status that Argo CD reports.
func Applications(v View) Answer {
	t := newTable("Namespace", "Application", "Sync", "Health", "For", "Sync policy", "Last sync")
	for _, a := range v.ApplicationStatuses() {
		to, how := tableCell(a.Destination), "manual"
		if a.Elsewhere {
			to += " of another cluster"
		}
		switch {
		case a.SelfHeal:
			how = "automatic, self-heal"
		case a.Automatic:
			how = "automatic"
		}
		last := "none"
		if a.Operation != "" {
			last = tableCell(a.Operation) + " " + tableCell(a.Message)
		}
		t.add(tableCell(a.Namespace), tableCell(a.Name), tableCell(a.Sync), tableCell(a.Health), to, how, last)
	}
	none := "There are no Argo CD applications " + v.where() + "."
	if v.Unread["applications"] {
		none = "The Argo CD applications could not be read."
	} else if v.Served != nil && !v.Served[argocd.Group+"/"+argocd.Version] {
		none = "The cluster does not serve Argo CD applications."
	}
	return t.under("Argo CD applications "+v.where()+":", none)
}
