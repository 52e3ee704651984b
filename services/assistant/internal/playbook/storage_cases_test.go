package playbook_test

import (
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

func TestClaimCases(t *testing.T) {
	t.Parallel()
	volume := func(change func(*corev1.PersistentVolume)) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			v := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}}
			v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}
			v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			s.Claims[0].Spec.StorageClassName = new(string)
			change(&v)
			s.Volumes = append(s.Volumes, v)
		}
	}
	class := func(name string, change func(*engine.Snapshot)) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			s.Claims[0].Spec.StorageClassName = &name
			s.Events = nil
			if change != nil {
				change(s)
			}
		}
	}
	checkCases(t, []changeCase{
		{"classes unread", "a11_absent_class", "", func(s *engine.Snapshot) { s.Unread["storageclasses"] = true }, "Service `warehouse`"},
		{"no class at all", "a11_absent_class", "", func(s *engine.Snapshot) { s.StorageClasses = nil }, "no storage class at all"},
		{"provisioner silent", "a11_absent_class", "", class("slow", nil), "has said nothing about the claim for 20 minutes"},
		{"provisioner fails", "a11_absent_class", "", class("slow", func(s *engine.Snapshot) {
			s.Events = []corev1.Event{{Reason: "ProvisioningFailed", Message: "rpc error: code = ResourceExhausted desc = disk quota", InvolvedObject: corev1.ObjectReference{UID: s.Claims[0].UID}}}
		}), "`rpc error: code = ResourceExhausted desc = disk quota`"},
		{"no class named, no default", "a11_absent_class", "", func(s *engine.Snapshot) {
			s.Claims[0].Spec.StorageClassName = nil
			s.StorageClasses = []storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "only"}, Provisioner: "disks.example"}}
		}, `{"spec":{"storageClassName":"only"}}`},
		{"volume too small", "a11_absent_class", "", volume(func(v *corev1.PersistentVolume) {
			v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("10Gi")
		}), "Volume `pv-1` has 10Gi, which is too small"},
		{"volume of another mode", "a11_absent_class", "", volume(func(v *corev1.PersistentVolume) {
			v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		}), "offers the access modes `ReadOnlyMany` only"},
		{"volume of another class", "a11_absent_class", "", volume(func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "tape" }), "has the class `tape`"},
		{"volume of a claim that is gone", "a11_absent_class", "", volume(func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef, v.Status.Phase = &corev1.ObjectReference{Namespace: "reports", Name: "old"}, corev1.VolumeReleased
		}), "is still kept for the claim `reports/old`"},
		{"lost", "a11_absent_class", "", func(s *engine.Snapshot) {
			s.Claims[0].Status.Phase, s.Claims[0].Spec.VolumeName = corev1.ClaimLost, "pv-9"
		}, "The volume `pv-9` that held the claim's data is gone"},
		{"claim absent", "a11_absent_class", "", func(s *engine.Snapshot) {
			s.Claims[0].Name = "data-warehous-0"
			s.Claims[0].Status.Phase = corev1.ClaimBound
		}, "which does not exist"},
		{"volume by name, absent", "a11_absent_class", "", func(s *engine.Snapshot) { s.Claims[0].Spec.VolumeName = "pv-7" }, "wants the volume `pv-7`, which does not exist"},
		{"volume by name, too small", "a11_absent_class", "", func(s *engine.Snapshot) {
			volume(func(v *corev1.PersistentVolume) {
				v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("1Gi")
			})(s)
			s.Claims[0].Spec.VolumeName = "pv-1"
		}, "Volume `pv-1` has 1Gi, which is too small"},
		{"rollout that waits for itself", "a16_ingress_port", "", func(s *engine.Snapshot) {
			s.Ingresses = nil
			s.Pods[0].Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
			claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "store", Name: "data"}}
			claim.Status.Phase = corev1.ClaimBound
			s.Claims = append(s.Claims, claim)
			pod := *s.Pods[0].DeepCopy()
			pod.Name, pod.UID, pod.Spec.NodeName, pod.Status = "storefront-1-fghij", "p-new", "node-2", corev1.PodStatus{Phase: corev1.PodPending}
			s.Pods = append(s.Pods, pod)
			s.Events = []corev1.Event{{Reason: "FailedAttachVolume", InvolvedObject: corev1.ObjectReference{UID: pod.UID},
				Message: `Multi-Attach error for volume "pv-1" Volume is already exclusively attached to one node and can't be attached to another`}}
		}, `{"spec":{"strategy":{"rollingUpdate":null,"type":"Recreate"}}}`},
		{"held by another node", "a11_absent_class", "", func(s *engine.Snapshot) {
			s.Claims[0].Status.Phase = corev1.ClaimBound
			pod := &s.Pods[0]
			pod.Status.Conditions = nil
			other := *pod.DeepCopy()
			pod.Spec.NodeName = "node-2"
			other.Name, other.UID, other.Spec.NodeName, other.Status.Phase = "warehouse-old", "p-old", "node-1", corev1.PodRunning
			s.Pods = append(s.Pods, other)
			s.Events = []corev1.Event{{Reason: "FailedAttachVolume", InvolvedObject: corev1.ObjectReference{UID: pod.UID},
				Message: `Multi-Attach error for volume "pv-1" Volume is already used by pod(s) warehouse-old`}}
		}, "is mounted by pod `warehouse-old` on node `node-1`"},
	})
	for name, change := range map[string]func(*engine.Snapshot){
		"class that waits":       class("standard", nil),
		"just made":              class("slow", func(s *engine.Snapshot) { s.Claims[0].CreationTimestamp.Time = s.Taken.Add(-time.Minute) }),
		"volume that fits":       volume(func(*corev1.PersistentVolume) {}),
		"claims unread":          func(s *engine.Snapshot) { s.Unread["persistentvolumeclaims"] = true },
		"bound":                  func(s *engine.Snapshot) { s.Claims[0].Status.Phase = corev1.ClaimBound },
		"volume made for absent": volume(func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "by-hand" }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := readSnapshot(t, "a11_absent_class")
			change(s)
			if name == "volume made for absent" {
				s.Claims[0].Spec.StorageClassName = new("by-hand")
			}
			for _, f := range playbook.Diagnose(s, "") {
				if f.Class == engine.ClaimUnbound {
					t.Errorf("found %+v; want f.Class != engine.ClaimUnbound", f)
				}
			}
		})
	}
}

func TestAdmissionCases(t *testing.T) {
	t.Parallel()
	refused := func(file, message string) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) {
			for i := range s.ReplicaSets[0].Status.Conditions {
				s.ReplicaSets[0].Status.Conditions[i].Message = message
			}
		}
	}
	box := func(s *engine.Snapshot) *corev1.Container {
		return &s.Deployments[0].Spec.Template.Spec.Containers[0]
	}
	checkCases(t, []changeCase{
		{"room again", "a12_quota", "", func(s *engine.Snapshot) { s.Quotas[0].Status.Used[corev1.ResourcePods] = resource.MustParse("1") }, "There is room again"},
		{"quota unread", "a12_quota", "", func(s *engine.Snapshot) { s.Quotas, s.Unread["resourcequotas"] = nil, true }, "could not be read"},
		{"quota gone", "a12_quota", "", func(s *engine.Snapshot) { s.Quotas = nil }, "has since been deleted"},
		{"quota that demands", "a12_quota", "", refused("a12_quota", `pods "x" is forbidden: failed quota: team-a: must specify limits.cpu for: worker; limits.memory for: worker`), "counts resources that the pods do not state"},
		{"autoscaled", "a12_quota", "", func(s *engine.Snapshot) {
			s.Autoscalers = []autoscalingv2.HorizontalPodAutoscaler{{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "worker"},
				Spec: autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "worker"}}}}
		}, "or raise the quota.\n"},
		{"rollout that needs one more", "a12_quota", "", func(s *engine.Snapshot) {
			s.Deployments[0].Spec.Replicas, s.Deployments[0].Status.Replicas = new(int32(2)), 2
		}, "maxSurge 0"},
		{"all pods there", "a12_quota", "", func(s *engine.Snapshot) { s.ReplicaSets[0].Status.Replicas = 4 }, ""},
		{"below the minimum", "limit_range", "", func(s *engine.Snapshot) {
			box(s).Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}}
			refused("", "pods is forbidden: minimum memory usage per Container is 16Mi, but request is 1Mi")(s)
		}, "--requests=memory=16Mi"},
		{"ratio", "limit_range", "", func(s *engine.Snapshot) {
			box(s).Resources.Requests[corev1.ResourceMemory] = resource.MustParse("64Mi")
			box(s).Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi")
			refused("", "pods is forbidden: memory max limit to request ratio per Container is 8, but provided ratio is 16.000000")(s)
		}, "may be 8 times the request"},
		{"of the whole pod", "limit_range", "", func(s *engine.Snapshot) {
			s.LimitRanges[0].Spec.Limits[0] = corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
			refused("", "pods is forbidden: maximum memory usage per Pod is 1Gi, but limit is 2147483648")(s)
		}, "maximum memory per Pod is 1Gi; the pod has limit 2Gi"},
		{"limit range unread", "limit_range", "", func(s *engine.Snapshot) { s.LimitRanges = nil }, "but limit is 2Gi"},
	})
}
