// Package helmrelease derives the properties of a Helm release from the name, labels and age of a Secret. The release
// itself is in the Secret's data, with all values that were set, and is never read.
package helmrelease

import (
	"strconv"
	"strings"
	"time"
)

// SecretType is the type of the Secrets in which Helm stores releases, and Selector the labels that it gives them.
const (
	SecretType = "helm.sh/release.v1"
	Selector   = "owner=helm"
)

// Annotations that Helm adds to the objects it installs.
const (
	NameAnnotation      = "meta.helm.sh/release-name"
	NamespaceAnnotation = "meta.helm.sh/release-namespace"
)

// Release is one revision of a release.
type Release struct {
	Name     string
	Revision int
	// Status is deployed, superseded, failed, pending-install, pending-upgrade, pending-rollback, uninstalling or uninstalled.
	Status  string
	Created time.Time
}

// Of derives a release from the name, labels and time of a Secret; nil for other Secrets.
func Of(object string, labels map[string]string, created time.Time) *Release {
	name, revision := labels["name"], labels["version"]
	n, err := strconv.Atoi(revision)
	if labels["owner"] != "helm" || err != nil || n < 1 || object != "sh.helm.release.v1."+name+".v"+revision {
		return nil
	}
	return &Release{Name: name, Revision: n, Status: labels["status"], Created: created}
}

// IsPending reports whether a Helm operation is running, or was when its process ended.
func (r *Release) IsPending() bool {
	return strings.HasPrefix(r.Status, "pending-") || r.Status == "uninstalling"
}
