package report

import (
	"strconv"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// ReleaseList returns the Helm releases in the view: those of the namespace, or of the objects in question.
func (v View) ReleaseList() []engine.Release {
	var list []engine.Release
	for _, r := range v.Releases() {
		if v.has(r.Ref.Namespace) && v.aboutRelease(engine.Name{Namespace: r.Ref.Namespace, Name: r.Name}, r.Ref) {
			list = append(list, r)
		}
	}
	return list
}

// aboutRelease reports whether a release, or one of its objects, is one of the objects in question.
func (v View) aboutRelease(release engine.Name, secret operation.Ref) bool {
	if len(v.Objects) == 0 {
		return true
	}
	for _, o := range v.Objects {
		of, ok := v.ReleaseOf(o)
		if ok && of == release || o.Kind == "Secret" && o.Namespace == secret.Namespace && o.Name == secret.Name {
			return true
		}
	}
	return false
}

// Releases lists the Helm releases, from the names and labels of their Secrets.
func Releases(v View) Answer {
	t := newTable("Namespace", "Release", "Revision", "Status", "Since", "Last deployed")
	for _, r := range v.ReleaseList() {
		deployed := "none"
		if r.Deployed > 0 {
			deployed = strconv.Itoa(r.Deployed)
		}
		t.add(tableCell(r.Ref.Namespace), tableCell(r.Name), strconv.Itoa(r.Revision), tableCell(r.Status), formatAge(v.Taken, r.Created), deployed)
	}
	none := "There are no Helm releases " + v.where() + "."
	if v.Unread["secrets"] {
		none = "The Secrets could not be read, so no Helm release was found."
	}
	return t.under("Helm releases "+v.where()+", from the names and labels of their Secrets:", none)
}

// released lists each new revision of a Helm release.
func (v View) released() []change {
	var all []change
	for i := range v.Snapshot.Secrets {
		s := &v.Snapshot.Secrets[i]
		if s.Release == nil || !v.has(s.Namespace) || !v.recent(s.Release.Created) {
			continue
		}
		ref := operation.Ref{Kind: "Secret", Namespace: s.Namespace, Name: s.Name}
		if v.aboutRelease(engine.Name{Namespace: s.Namespace, Name: s.Release.Name}, ref) {
			all = append(all, change{s.Release.Created, s.Namespace, "helm release " + tableCell(s.Release.Name), "revision " + strconv.Itoa(s.Release.Revision) + ", " + tableCell(s.Release.Status)})
		}
	}
	return all
}
