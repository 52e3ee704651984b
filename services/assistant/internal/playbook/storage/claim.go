package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

const (
	defaultClass = "storageclass.kubernetes.io/is-default-class"
	// noProvisioner marks classes whose volumes are created manually.
	noProvisioner = "kubernetes.io/no-provisioner"
	// provisioning limits how long creating a volume may take before it is a problem.
	provisioning = 2 * time.Minute
)

// checkClaims explains ClaimUnbound: claims without a volume.
func checkClaims(x *Index) []engine.Finding {
	if x.Unread["persistentvolumeclaims"] {
		return x.explainAbsent()
	}
	users := x.Users()
	var found []engine.Finding
	for i := range x.Claims {
		c := &x.Claims[i]
		pods := users[engine.Name{Namespace: c.Namespace, Name: c.Name}]
		f := engine.Finding{Class: engine.ClaimUnbound, Object: engine.ClaimRef(c.Namespace, c.Name), Confidence: engine.High, Pods: engine.PodNames(pods)}
		switch {
		case c.DeletionTimestamp != nil:
			continue
		case c.Status.Phase == corev1.ClaimLost:
			f.Evidence = []string{fmt.Sprintf("The claim is Lost; it was bound to the volume %s.", engine.QuoteCode(c.Spec.VolumeName))}
			f.Cause = fmt.Sprintf("The volume %s that held the claim's data is gone.", engine.QuoteCode(c.Spec.VolumeName))
			f.Text = "Restore the volume under its name from a backup, or make the claim anew and accept that the data is gone."
		case c.Status.Phase == corev1.ClaimPending:
			if !explainUnbound(&f, x, c, pods) {
				continue
			}
		default:
			continue
		}
		for _, pod := range pods {
			f.Effects = append(f.Effects, engine.Effect{Of: x.WorkloadOf(pod).Ref, Classes: []engine.Class{engine.PendingPlacement, engine.RolloutStuck, engine.StatefulSetStuck}})
		}
		found = append(found, f)
	}
	return append(found, x.explainAbsent()...)
}

// userTable returns the living pods that mount each claim, by name, without failed ones.
func (x *Index) userTable() map[engine.Name][]*corev1.Pod {
	users := map[engine.Name][]*corev1.Pod{}
	for of, pods := range x.Mounts() {
		if live := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed }); len(live) > 0 {
			users[of] = live
		}
	}
	return users
}

// Absent is a claim that does not exist, with the pods that wait for it, by name.
type Absent struct {
	engine.Name
	Pods []*corev1.Pod
}

// AbsentClaims returns the missing claims that pods wait for, in order. If claims were not read, it relies on the
// scheduler's message.
func (x *Index) AbsentClaims() []Absent {
	there := map[engine.Name]bool{}
	for i := range x.Claims {
		there[engine.NameOf(&x.Claims[i])] = true
	}
	var all []Absent
	for of, pods := range x.Users() {
		// The claim of an ephemeral volume has the pod's own name: its controller creates it.
		pods = slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
			return !engine.IsUnschedulable(pod) || strings.HasPrefix(of.Name, pod.Name+"-") || x.Unread["persistentvolumeclaims"] && !missedByScheduler(pod, of.Name)
		})
		if !there[of] && len(pods) > 0 {
			all = append(all, Absent{of, pods})
		}
	}
	slices.SortFunc(all, func(a, b Absent) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name.Name, b.Name.Name))
	})
	return all
}

// missedByScheduler reports whether the scheduler reported that a pod's claim does not exist.
func missedByScheduler(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && strings.Contains(c.Message, fmt.Sprintf("persistentvolumeclaim %q not found", claim))
	})
}

// explainAbsent explains ClaimUnbound: claims that do not exist.
func (x *Index) explainAbsent() []engine.Finding {
	byNamespace := map[string][]string{}
	for i := range x.Claims {
		byNamespace[x.Claims[i].Namespace] = append(byNamespace[x.Claims[i].Namespace], x.Claims[i].Name)
	}
	var found []engine.Finding
	for _, of := range x.AbsentClaims() {
		f := engine.Finding{Class: engine.ClaimUnbound, Object: x.WorkloadOf(of.Pods[0]).Ref, Confidence: engine.High, Pods: engine.PodNames(of.Pods)}
		f.Evidence = []string{fmt.Sprintf("Namespace %s was searched: no volume claim has the name %s.", engine.QuoteCode(of.Namespace), engine.QuoteCode(of.Name.Name))}
		if x.Unread["persistentvolumeclaims"] {
			f.Evidence = []string{fmt.Sprintf("The scheduler finds no volume claim with the name %s.", engine.QuoteCode(of.Name.Name))}
		}
		f.Cause = fmt.Sprintf("The pod mounts the volume claim %s, which does not exist.", engine.QuoteCode(of.Name.Name))
		f.Text = "Create the claim, or correct its name in the pod."
		if near, ok := engine.NearestName(of.Name.Name, byNamespace[of.Namespace]); ok {
			f.Evidence = append(f.Evidence, fmt.Sprintf("The nearest that exists is %s.", engine.QuoteCode(near)))
		}
		found = append(found, f)
	}
	return found
}

// WaitsForClaim reports whether a pod cannot be scheduled because of a claim: the scheduler gives up before it
// considers nodes.
func (x *Index) WaitsForClaim(pod *corev1.Pod) bool {
	if x.Unread["persistentvolumeclaims"] {
		return slices.ContainsFunc(engine.ClaimsOf(pod), func(claim string) bool { return missedByScheduler(pod, claim) })
	}
	return slices.ContainsFunc(engine.ClaimsOf(pod), func(claim string) bool {
		c := x.ClaimByName()[engine.Name{Namespace: pod.Namespace, Name: claim}]
		if c == nil {
			return true
		}
		class := x.storageClass(className(c))
		return c.Status.Phase != corev1.ClaimBound && (class == nil || !bindsLate(class))
	})
}

// className returns the class that a claim names; nil means none, empty means deliberately none.
func className(c *corev1.PersistentVolumeClaim) *string {
	if old, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return &old
	}
	return c.Spec.StorageClassName
}

func (x *Index) storageClass(class *string) *storagev1.StorageClass {
	for i := range x.StorageClasses {
		if class != nil && x.StorageClasses[i].Name == *class {
			return &x.StorageClasses[i]
		}
	}
	return nil
}

// bindsLate reports whether volumes of a class are created only once a pod has its node.
func bindsLate(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// explainUnbound explains why a pending claim has no volume, or that nothing is wrong.
func explainUnbound(f *engine.Finding, x *Index, c *corev1.PersistentVolumeClaim, users []*corev1.Pod) bool {
	named := className(c)
	class := x.storageClass(named)
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	f.Evidence = []string{fmt.Sprintf("The claim is Pending: it wants %s, access mode %s, %s.", size.String(), engine.QuoteCode(formatModes(c.Spec.AccessModes)), classText(named))}
	said := ""
	if e := x.EventOf(c.UID, func(e *corev1.Event) bool {
		return e.Reason == "ProvisioningFailed" || e.Reason == "FailedBinding" || e.Reason == "VolumeMismatch"
	}); e != nil {
		said = e.Message
	}
	switch {
	case c.Spec.VolumeName != "":
		return explainNamedVolume(f, x, c)
	case named == nil || *named == "" || class != nil && class.Provisioner == noProvisioner:
		if class != nil && bindsLate(class) && len(users) == 0 {
			return false // no pod uses it yet
		}
		return explainStaticVolumes(f, x, c, named)
	case x.Unread["storageclasses"]:
		return false
	case class == nil:
		if fits, _ := x.volumesFor(c); fits {
			return false // about to be bound: a class need not exist for manually created volumes
		}
		explainNoClass(f, x, *named, said)
	case said != "":
		f.Evidence = append(f.Evidence, fmt.Sprintf("The class %s has the provisioner %s, which says %s.", engine.QuoteCode(class.Name), engine.QuoteCode(class.Provisioner), engine.QuoteCode(said)))
		f.Cause = fmt.Sprintf("The provisioner of the class %s cannot make the volume.", engine.QuoteCode(class.Name))
		f.Text = "Repair what the provisioner names: most often its quota, its credentials or a parameter of the class."
	case bindsLate(class) && x.pinned(users) != "":
		workload := x.pinned(users)
		f.Evidence = append(f.Evidence, fmt.Sprintf("The class %s has the binding mode WaitForFirstConsumer: its volume is made when the scheduler has chosen a node for a pod.", engine.QuoteCode(class.Name)))
		f.Cause = fmt.Sprintf("The template of %s names the node itself (`nodeName`), so the scheduler never sees its pods, and the claim waits for it in vain.", workload)
		f.Text = "Choose the node by a nodeSelector for kubernetes.io/hostname, or by node affinity, in place of nodeName."
	case bindsLate(class):
		return false // it waits for a pod that has a node; the pod has a separate finding
	case x.Taken.Sub(c.CreationTimestamp.Time) < provisioning:
		return false
	default:
		f.Evidence = append(f.Evidence, fmt.Sprintf("The class %s has the provisioner %s; it has said nothing about the claim for %s.", engine.QuoteCode(class.Name), engine.QuoteCode(class.Provisioner), x.Since(c.CreationTimestamp)))
		f.Cause, f.Confidence = fmt.Sprintf("The provisioner %s of the class does not create the volume: it may not be running.", engine.QuoteCode(class.Provisioner)), engine.Medium
		f.Text = "Look whether the pods of this provisioner run, and in their logs."
	}
	return true
}

// pinned returns the workload, as a title, of pods whose template names their node; empty: there is none.
func (x *Index) pinned(pods []*corev1.Pod) string {
	title := ""
	for _, pod := range pods {
		w := x.WorkloadOf(pod)
		if w.Ref.Kind != "Pod" && (w.Template == nil || w.Template.Spec.NodeName == "") || engine.IsUnschedulable(pod) {
			return ""
		}
		if w.Ref.Kind == "Pod" && (pod.Spec.NodeName == "" || slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })) {
			return "" // the scheduler has seen it
		}
		title = engine.RefTitle(w.Ref)
	}
	return title
}

func classText(named *string) string {
	switch {
	case named == nil:
		return "names no storage class"
	case *named == "":
		return "and requests no storage class"
	}
	return "storage class " + engine.QuoteCode(*named)
}

func formatModes(list []corev1.PersistentVolumeAccessMode) string {
	var all []string
	for _, m := range list {
		all = append(all, string(m))
	}
	return strings.Join(all, ",")
}

// classes lists the storage classes, the default one marked.
func (x *Index) classes() []string {
	var all []string
	for i := range x.StorageClasses {
		all = append(all, x.StorageClasses[i].Name)
	}
	slices.Sort(all)
	return all
}

func explainNoClass(f *engine.Finding, x *Index, named, said string) {
	f.Cause = fmt.Sprintf("The storage class %s does not exist, so nothing makes a volume for the claim.", engine.QuoteCode(named))
	have := x.classes()
	if len(have) == 0 {
		f.Evidence = append(f.Evidence, "The cluster has no storage class at all.")
		f.Text = fmt.Sprintf("Install a provisioner with a storage class %s, or create a volume by hand.", engine.QuoteCode(named))
		return
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("The storage classes that exist are %s.", engine.QuoteCodes(have)))
	if said != "" {
		f.Evidence = append(f.Evidence, "The volume controller says "+engine.QuoteCode(said)+".")
	}
	// The class of a claim is immutable.
	f.Text = fmt.Sprintf("Choose one of these classes and recreate the claim with it, since its class cannot be changed. Or create a class %s.", engine.QuoteCode(named))
}

// explainStaticVolumes explains claims that only an existing volume can satisfy.
func explainStaticVolumes(f *engine.Finding, x *Index, c *corev1.PersistentVolumeClaim, named *string) bool {
	if x.Unread["persistentvolumes"] || x.Unread["storageclasses"] {
		return false
	}
	fits, why := x.volumesFor(c)
	if fits {
		return false // the controller is about to bind it
	}
	f.Evidence = append(f.Evidence, why...)
	have := x.classes()
	if named != nil {
		f.Cause = "No free volume fits the claim, and its class does not provision volumes."
		f.Text = "Create a volume that fits: size, access modes and class as the claim wants them."
		return true
	}
	for i := range x.StorageClasses {
		if x.StorageClasses[i].Annotations[defaultClass] == "true" {
			// A claim is given the default class late, but automatically.
			f.Confidence = engine.Low
		}
	}
	f.Cause = "The claim names no storage class, the cluster had none by default, and no free volume fits."
	f.Text = "Choose a storage class for the claim, or mark one as default."
	if len(have) == 0 {
		f.Evidence = append(f.Evidence, "The cluster has no storage class at all.")
		f.Text = "Create a volume that fits, or install a provisioner with a storage class."
		return true
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("The storage classes that exist are %s.", engine.QuoteCodes(have)))
	if len(have) == 1 {
		if f.Fix = engine.NewPatch(f.Object, engine.Members{"spec": engine.Members{"storageClassName": have[0]}}); f.Fix != nil {
			f.Text = fmt.Sprintf("Give the claim the only class there is, %s.", engine.QuoteCode(have[0]))
		}
	}
	return true
}
