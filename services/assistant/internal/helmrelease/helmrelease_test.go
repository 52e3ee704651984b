package helmrelease_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/services/assistant/internal/helmrelease"
)

// TestOf: a Secret is a release only if it has both the name and the labels of one.
func TestOf(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	labels := map[string]string{"owner": "helm", "name": "web", "version": "3", "status": "failed"}
	want := &helmrelease.Release{Name: "web", Revision: 3, Status: "failed", Created: at}
	if diff := cmp.Diff(want, helmrelease.Of("sh.helm.release.v1.web.v3", labels, at)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, with := range map[string]map[string]string{
		"sh.helm.release.v1.web.v4": {},
		"sh.helm.release.v1.web.v0": {"version": "0"},
		"sh.helm.release.v1.web.vx": {"version": "x"},
		"sh.helm.release.v1.web.v3": {"owner": "other"},
		"db-password":               {},
	} {
		of := maps.Clone(labels)
		maps.Copy(of, with)
		if got := helmrelease.Of(name, of, at); got != nil {
			t.Errorf("%s with %v: %+v; want no release", name, of, got)
		}
	}
}
