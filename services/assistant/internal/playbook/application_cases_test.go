package playbook_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// failSync makes the last sync of the fixture fail at its deployment.
func failSync(s *engine.Snapshot, message string) {
	a := &s.Applications[0]
	a.Status.Sync.Status = "OutOfSync"
	a.Status.OperationState.Phase, a.Status.OperationState.Message = "Failed", "one or more objects failed to apply, reason: "+message
	a.Status.OperationState.SyncResult.Resources[0].Status, a.Status.OperationState.SyncResult.Resources[0].Message = "SyncFailed", message
}

// degrade makes Argo CD report the deployment of the fixture as degraded.
func degrade(s *engine.Snapshot) {
	a := &s.Applications[0]
	a.Status.Health.Status = "Degraded"
	a.Status.Resources[0].Health.Status, a.Status.Resources[0].Health.Message = "Degraded", "Deployment \"storefront\" exceeded its progress deadline"
}

// hideHealth makes the application of the fixture one as Argo CD writes it from version 3 on.
func hideHealth(s *engine.Snapshot) {
	for i := range s.Applications[0].Status.Resources {
		s.Applications[0].Status.Resources[i].Health = nil
	}
}

// TestApplicationCases: why an Argo CD application is not synced, or not healthy.
func TestApplicationCases(t *testing.T) {
	t.Parallel()
	compares := func(message, say string) changeCase {
		return changeCase{"compares: " + message, "application", "", func(s *engine.Snapshot) {
			s.Applications[0].Status.Sync.Status = "Unknown"
			s.Applications[0].Status.Conditions = []argocd.Condition{{Type: "ComparisonError", Message: message}}
		}, say}
	}
	syncs := func(message, say string) changeCase {
		return changeCase{"syncs: " + message, "application", "", func(s *engine.Snapshot) { failSync(s, message) }, say}
	}
	checkCases(t, []changeCase{
		{"synced and healthy", "application", "", nil, ""},
		compares("failed to get git client for repo: authentication required", "Argo CD cannot compare the application with its source, so it changes nothing. The repository does not let Argo CD in"),
		compares("deploy: app path does not exist", "The path is not in the repository at that revision."),
		compares("unable to resolve 'main' to a commit SHA", "The revision does not exist."),
		compares("rpc error: code = Unavailable desc = connection error: dial tcp 10.0.0.7:8081: connect: connection refused", "Look whether argocd-repo-server runs"),
		compares("Manifest generation error (cached): `helm template` failed", "Its manifests cannot be rendered."),
		compares("whatever", "Its source is `https://git.example/store.git`, path `deploy`, revision `main`."),
		{"another cluster permitted by no project", "application", "", func(s *engine.Snapshot) {
			s.Applications[0].Status.Conditions = []argocd.Condition{{Type: "InvalidSpecError", Message: "application destination server is not permitted in project 'default'"}}
		}, "Its project does not permit this."},
		{"a warning alone", "application", "", func(s *engine.Snapshot) {
			s.Applications[0].Status.Conditions = []argocd.Condition{{Type: "OrphanedResourceWarning", Message: "1 orphaned"}}
		}, ""},
		syncs("Deployment.apps \"storefront\" is invalid: spec.selector: Invalid value: field is immutable", "The last sync of the application failed at deployment `storefront`. A field that cannot be changed differs."),
		syncs("deployments.apps is forbidden: User \"argocd\" cannot create resource", "Argo CD may not do this in the cluster."),
		syncs("admission webhook \"policy.example\" denied the request: no team label", "An admission webhook refuses it."),
		syncs("pods \"x\" is forbidden: exceeded quota: small", "A quota refuses it."),
		syncs("no matches for kind \"ServiceMonitor\" in version \"monitoring.coreos.com/v1\"", "The cluster does not serve a kind of it."),
		{"failed, without results", "application", "", func(s *engine.Snapshot) {
			failSync(s, "x")
			s.Applications[0].Status.OperationState.SyncResult = nil
		}, "The last sync of the application failed. (Confidence: high.)"},
		{"failed, and in sync since", "application", "", func(s *engine.Snapshot) { failSync(s, "x"); s.Applications[0].Status.Sync.Status = "Synced" }, ""},
		{"out of sync alone", "application", "", func(s *engine.Snapshot) { s.Applications[0].Status.Sync.Status = "OutOfSync" }, ""},
		{"hook failed", "application", "", func(s *engine.Snapshot) {
			failSync(s, "x")
			s.Applications[0].Status.OperationState.SyncResult.Resources = []argocd.Result{{
				Object: argocd.Object{Group: "batch", Version: "v1", Kind: "Job", Namespace: "store", Name: "migrate"}, HookPhase: "Failed", Message: "Job has reached the specified backoff limit",
			}}
		}, "The last sync of the application failed at job `migrate`."},
		{"sync runs for long", "application", "", func(s *engine.Snapshot) {
			s.Applications[0].Status.OperationState.Phase, s.Applications[0].Status.OperationState.Message = "Running", "waiting for healthy state of apps/Deployment/storefront"
		}, "The sync of the application has been running for 2 hours."},
		{"sync runs", "application", "", func(s *engine.Snapshot) {
			s.Applications[0].Status.OperationState.Phase, s.Applications[0].Status.OperationState.StartedAt = "Running", metav1.NewTime(s.Taken.Add(-time.Minute))
		}, ""},
		{"degraded", "application", "", degrade, "Deployment `storefront` is `Degraded`: `Deployment \"storefront\" exceeded its progress deadline`."},
		{"degraded, of Argo CD 3", "application", "", func(s *engine.Snapshot) { degrade(s); hideHealth(s) }, "Look at these objects. The application does not name them: `argocd app get store` does."},
		{"missing, and synced by nobody", "application", "", func(s *engine.Snapshot) {
			a := &s.Applications[0]
			a.Spec.SyncPolicy, a.Status.Health.Status, a.Status.Resources[0].Health = nil, "Missing", &argocd.Health{Status: "Missing"}
		}, "Objects that the application's source holds are not in the cluster. Automatic sync is off."},
		{"being deleted", "application", "", func(s *engine.Snapshot) {
			degrade(s)
			s.Applications[0].DeletionTimestamp = &metav1.Time{Time: s.Taken}
		}, ""},
	})
}

// TestApplicationFollows: an application degraded by a workload with a known problem is a consequence of it.
func TestApplicationFollows(t *testing.T) {
	t.Parallel()
	s := joinSnapshots(readSnapshot(t, "gateway"), readSnapshot(t, "application"))
	s.Routes, s.Gateways, s.GatewayClasses = nil, nil, nil
	degrade(s)
	s.Pods[0].Status.ContainerStatuses[0].Ready = false
	s.Pods[0].Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "registry.example/store/front:1.0.0: not found"}}
	s.Pods[0].Status.Conditions[0].Status = corev1.ConditionFalse
	check := func(health string) {
		for _, namespace := range []string{"", "store"} {
			found := playbook.Diagnose(s, namespace)
			if len(found) != 1 || found[0].Class != engine.ImagePull || !strings.Contains(engine.Answer(s, found), "A consequence: application `store`. Objects of the application are not healthy.") {
				t.Errorf("%s, namespace %q: found %+v; want the image, with the application as a consequence", health, namespace, found)
			}
		}
	}
	check("with the health of each object")
	hideHealth(s)
	check("without the health of each object")
}

// TestApplicationElsewhere: an application's objects in another cluster do not count for a namespace of the same name
// here.
func TestApplicationElsewhere(t *testing.T) {
	t.Parallel()
	s := readSnapshot(t, "application")
	degrade(s)
	s.Applications[0].Spec.Destination.Server = "https://203.0.113.7:6443"
	for namespace, want := range map[string]int{"": 1, "argocd": 1, "store": 0} {
		if found := playbook.Diagnose(s, namespace); len(found) != want {
			t.Errorf("namespace %q: found %+v; want %d", namespace, found, want)
		}
	}
}

// TestDriftMayBeMeant: an application that differs, and is synced manually, is no fault but may answer the question.
func TestDriftMayBeMeant(t *testing.T) {
	t.Parallel()
	s := readSnapshot(t, "application")
	s.Applications[0].Status.Sync.Status, s.Applications[0].Status.Resources[0].Status = "OutOfSync", "OutOfSync"
	for _, c := range []struct {
		automatic bool
		want      int
	}{{true, 0}, {false, 1}} {
		if !c.automatic {
			s.Applications[0].Spec.SyncPolicy = nil
		}
		if meant := playbook.Meant(s); len(meant) != c.want || c.want == 1 && !strings.Contains(strings.Join(meant[0].Evidence, " "), "Different are deployment `storefront`.") {
			t.Errorf("synced by itself %v: meant %+v; want %d", c.automatic, meant, c.want)
		}
	}
}

// TestApplicationManages: an application owns the objects that it lists and those that Argo CD marked as its own,
// unless the mark names another object.
func TestApplicationManages(t *testing.T) {
	t.Parallel()
	s := readSnapshot(t, "application")
	a := &s.Applications[0]
	web := engine.Name{Namespace: "store", Name: "web"}
	ref := argocd.Object{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: web.Namespace, Name: web.Name}.Ref()
	for mark, want := range map[string]bool{
		"": false, "store:apps/Deployment:store/web": true, "argocd_store:apps/Deployment:store/web": true, "other:apps/Deployment:store/web": false, "store:apps/Deployment:store/api": false,
	} {
		if got := a.Manages(ref, map[string]string{argocd.TrackingAnnotation: mark}); got != want {
			t.Errorf("mark %q: managed %v; want %v", mark, got, want)
		}
	}
	ref.Name = "storefront"
	if !a.Manages(ref, nil) {
		t.Errorf("%s is not managed; want what the application lists to be", ref)
	}
	a.Spec.Destination.Server = "https://203.0.113.7:6443"
	if a.Manages(ref, nil) {
		t.Errorf("%s is managed by an application of another cluster; want it not to be", ref)
	}
}
