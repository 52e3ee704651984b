package playbook_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/helmrelease"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// addRelease adds a revision of the release front, with a given age.
func addRelease(s *engine.Snapshot, revision int, status string, ago time.Duration) {
	r := &helmrelease.Release{Name: "front", Revision: revision, Status: status, Created: s.Taken.Add(-ago)}
	s.Secrets = append(s.Secrets, engine.SecretKeys{Namespace: "store", Name: "sh.helm.release.v1.front.v" + string(rune('0'+revision)), Type: helmrelease.SecretType, Release: r})
}

// TestReleaseCases: Helm releases whose last operation failed or never ended. Earlier revisions do not count.
func TestReleaseCases(t *testing.T) {
	t.Parallel()
	type revision struct {
		status string
		ago    time.Duration
	}
	for name, c := range map[string]struct {
		revisions []revision
		say       string // empty: nothing is found
	}{
		"deployed":             {[]revision{{"superseded", 2 * time.Hour}, {"deployed", time.Hour}}, ""},
		"failed before":        {[]revision{{"failed", 2 * time.Hour}, {"deployed", time.Hour}}, ""},
		"uninstalled":          {[]revision{{"uninstalled", time.Hour}}, ""},
		"failed":               {[]revision{{"deployed", 2 * time.Hour}, {"failed", time.Hour}}, "`helm history front -n store`. To go back: `helm rollback front 1 -n store`."},
		"failed at once":       {[]revision{{"failed", time.Hour}}, "No revision of it is deployed."},
		"upgrade is at work":   {[]revision{{"deployed", time.Hour}, {"pending-upgrade", time.Minute}}, ""},
		"upgrade never ended":  {[]revision{{"superseded", 3 * time.Hour}, {"deployed", 2 * time.Hour}, {"pending-upgrade", time.Hour}}, "`helm rollback front 2 -n store`. Then try again."},
		"rollback never ended": {[]revision{{"superseded", 3 * time.Hour}, {"failed", 2 * time.Hour}, {"pending-rollback", time.Hour}}, "`helm rollback front 1 -n store`"},
		"install never ended":  {[]revision{{"pending-install", time.Hour}}, "`helm uninstall front -n store`"},
		"removal never ended":  {[]revision{{"uninstalling", time.Hour}}, "uninstall it again"},
	} {
		s := readSnapshot(t, "gateway")
		for i, r := range c.revisions {
			addRelease(s, i+1, r.status, r.ago)
		}
		found := playbook.Diagnose(s, "")
		answer := engine.Answer(s, found)
		if len(found) != min(len(c.say), 1) || !strings.Contains(answer, c.say) {
			t.Errorf("%s: found %+v\n%s\nwant %q", name, found, answer, c.say)
		}
	}
}

// TestReleaseFollows: an upgrade that failed because a workload did not become ready is a consequence of that
// workload's problem.
func TestReleaseFollows(t *testing.T) {
	t.Parallel()
	s := readSnapshot(t, "gateway")
	s.Routes, s.Gateways, s.GatewayClasses = nil, nil, nil
	addRelease(s, 1, "failed", time.Hour)
	s.Deployments[0].Annotations = map[string]string{helmrelease.NameAnnotation: "front", helmrelease.NamespaceAnnotation: "store"}
	s.Pods[0].Status.ContainerStatuses[0].Ready = false
	s.Pods[0].Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "registry.example/store/front:1.0.0: not found"}}
	s.Pods[0].Status.Conditions[0].Status = corev1.ConditionFalse
	found := playbook.Diagnose(s, "")
	if len(found) != 1 || found[0].Class != engine.ImagePull || !strings.Contains(engine.Answer(s, found), "The last operation of Helm on release `front` failed.") {
		t.Errorf("found %+v; want the image, with the release as a consequence", found)
	}
}
