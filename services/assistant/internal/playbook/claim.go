package playbook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

const (
	defaultClass = "storageclass.kubernetes.io/is-default-class"
	// noProvisioner stands in classes whose volumes somebody makes by hand.
	noProvisioner = "kubernetes.io/no-provisioner"
	// provisioning bounds how long making a volume may take before it is a trouble.
	provisioning = 2 * time.Minute
)

// checkClaims explains class 8: claims without a volume.
func checkClaims(x *index) []Finding {
	if x.Unread["persistentvolumeclaims"] {
		return nil
	}
	users := x.users()
	var found []Finding
	for i := range x.Claims {
		c := &x.Claims[i]
		pods := users[name{Namespace: c.Namespace, Name: c.Name}]
		f := Finding{Class: ClaimUnbound, Object: claimRef(c.Namespace, c.Name), Confidence: High, Pods: podNames(pods)}
		switch {
		case c.DeletionTimestamp != nil:
			continue
		case c.Status.Phase == corev1.ClaimLost:
			f.Evidence = []string{fmt.Sprintf("The claim is Lost; it was bound to the volume %s.", quoteCode(c.Spec.VolumeName))}
			f.Cause = fmt.Sprintf("The volume %s that held the claim's data is gone.", quoteCode(c.Spec.VolumeName))
			f.Text = "Restore the volume under its name from a backup, or make the claim anew and accept that the data is gone."
		case c.Status.Phase == corev1.ClaimPending:
			if !f.unbound(x, c, len(pods) > 0) {
				continue
			}
		default:
			continue
		}
		for _, pod := range pods {
			f.effects = append(f.effects, effect{of: x.workloadOf(pod).ref, classes: []Class{PendingPlacement, RolloutStuck, StatefulSetStuck}})
		}
		found = append(found, f)
	}
	return append(found, x.absentClaims(users)...)
}

// userTable has the living pods that mount each claim, by name, without those that failed.
func (x *index) userTable() map[name][]*corev1.Pod {
	users := map[name][]*corev1.Pod{}
	for of, pods := range x.mounts() {
		if live := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed }); len(live) > 0 {
			users[of] = live
		}
	}
	return users
}

func podNames(pods []*corev1.Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

// absentClaims are those that pods wait for and nobody made.
func (x *index) absentClaims(users map[name][]*corev1.Pod) []Finding {
	there := map[name]bool{}
	byNamespace := map[string][]string{}
	for i := range x.Claims {
		c := &x.Claims[i]
		there[name{Namespace: c.Namespace, Name: c.Name}] = true
		byNamespace[c.Namespace] = append(byNamespace[c.Namespace], c.Name)
	}
	var found []Finding
	for of, pods := range users {
		// The claim of an ephemeral volume has the pod's own name: its controller makes it.
		pods = slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !isUnschedulable(pod) || strings.HasPrefix(of.Name, pod.Name+"-") })
		if there[of] || len(pods) == 0 {
			continue
		}
		f := Finding{Class: ClaimUnbound, Object: x.workloadOf(pods[0]).ref, Confidence: High, Pods: podNames(pods)}
		f.Evidence = []string{fmt.Sprintf("Namespace %s was searched: no volume claim has the name %s.", quoteCode(of.Namespace), quoteCode(of.Name))}
		f.Cause = fmt.Sprintf("The pod mounts the volume claim %s, which does not exist.", quoteCode(of.Name))
		f.Text = "Create the claim, or correct its name in the pod."
		if near, ok := nearestName(of.Name, byNamespace[of.Namespace]); ok {
			f.Evidence = append(f.Evidence, fmt.Sprintf("The nearest that exists is %s.", quoteCode(near)))
		}
		found = append(found, f)
	}
	return found
}

// waitsForClaim says whether a pod cannot be placed on any node because of a claim: the
// scheduler gives up before it looks at nodes.
func (x *index) waitsForClaim(pod *corev1.Pod) bool {
	if x.Unread["persistentvolumeclaims"] {
		return false
	}
	return slices.ContainsFunc(claimsOf(pod), func(claim string) bool {
		c := x.claimNamed()[name{Namespace: pod.Namespace, Name: claim}]
		if c == nil {
			return true
		}
		class := x.storageClass(className(c))
		return c.Status.Phase != corev1.ClaimBound && (class == nil || !bindsLate(class))
	})
}

// className is the class that a claim names; nil is none, empty is none on purpose.
func className(c *corev1.PersistentVolumeClaim) *string {
	if old, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return &old
	}
	return c.Spec.StorageClassName
}

func (x *index) storageClass(class *string) *storagev1.StorageClass {
	for i := range x.StorageClasses {
		if class != nil && x.StorageClasses[i].Name == *class {
			return &x.StorageClasses[i]
		}
	}
	return nil
}

// bindsLate says whether volumes of a class are made only when a pod has its node.
func bindsLate(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// unbound says why a pending claim has no volume, or that all is as it should be.
func (f *Finding) unbound(x *index, c *corev1.PersistentVolumeClaim, used bool) bool {
	named := className(c)
	class := x.storageClass(named)
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	f.Evidence = []string{fmt.Sprintf("The claim is Pending: it wants %s, access mode %s, %s.", size.String(), quoteCode(formatModes(c.Spec.AccessModes)), classText(named))}
	said := ""
	if e := x.eventOf(c.UID, func(e *corev1.Event) bool {
		return e.Reason == "ProvisioningFailed" || e.Reason == "FailedBinding" || e.Reason == "VolumeMismatch"
	}); e != nil {
		said = e.Message
	}
	switch {
	case c.Spec.VolumeName != "":
		return f.namedVolume(x, c)
	case named == nil || *named == "" || class != nil && class.Provisioner == noProvisioner:
		if class != nil && bindsLate(class) && !used {
			return false // nobody wants it yet
		}
		return f.byHand(x, c, named)
	case x.Unread["storageclasses"]:
		return false
	case class == nil:
		if fits, _ := x.volumesFor(c); fits {
			return false // about to be bound: a class need not exist for volumes made by hand
		}
		f.noClass(x, *named, said)
	case said != "":
		f.Evidence = append(f.Evidence, fmt.Sprintf("The class %s has the provisioner %s, which says %s.", quoteCode(class.Name), quoteCode(class.Provisioner), quoteCode(said)))
		f.Cause = fmt.Sprintf("The provisioner of the class %s cannot make the volume.", quoteCode(class.Name))
		f.Text = "Repair what the provisioner names: most often its quota, its credentials or a parameter of the class."
	case bindsLate(class):
		return false // it waits for a pod that has a node; what the pod lacks is told there
	case x.Taken.Sub(c.CreationTimestamp.Time) < provisioning:
		return false
	default:
		f.Evidence = append(f.Evidence, fmt.Sprintf("The class %s has the provisioner %s; it has said nothing about the claim for %s.", quoteCode(class.Name), quoteCode(class.Provisioner), x.since(c.CreationTimestamp)))
		f.Cause, f.Confidence = fmt.Sprintf("The provisioner %s of the class does not make the volume: it may not run.", quoteCode(class.Provisioner)), Medium
		f.Text = "Look whether the pods of this provisioner run, and in their logs."
	}
	return true
}

func classText(named *string) string {
	switch {
	case named == nil:
		return "names no storage class"
	case *named == "":
		return "and asks for no storage class"
	}
	return "storage class " + quoteCode(*named)
}

func formatModes(list []corev1.PersistentVolumeAccessMode) string {
	var all []string
	for _, m := range list {
		all = append(all, string(m))
	}
	return strings.Join(all, ",")
}

// classes lists the storage classes, the default one marked.
func (x *index) classes() []string {
	var all []string
	for i := range x.StorageClasses {
		all = append(all, x.StorageClasses[i].Name)
	}
	slices.Sort(all)
	return all
}

func (f *Finding) noClass(x *index, named, said string) {
	f.Cause = fmt.Sprintf("The storage class %s does not exist, so nothing makes a volume for the claim.", quoteCode(named))
	have := x.classes()
	if len(have) == 0 {
		f.Evidence = append(f.Evidence, "The cluster has no storage class at all.")
		f.Text = fmt.Sprintf("Install a provisioner with a storage class %s, or create a volume by hand.", quoteCode(named))
		return
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("The storage classes that exist are %s.", quoteCodes(have)))
	if said != "" {
		f.Evidence = append(f.Evidence, "The volume controller says "+quoteCode(said)+".")
	}
	// The class of a claim cannot be changed afterwards.
	f.Text = fmt.Sprintf("Say which of these classes is meant: the claim has to be made anew with it, for its class cannot be changed. Or create a class %s.", quoteCode(named))
}

// byHand explains claims that only a volume which is there already can satisfy.
func (f *Finding) byHand(x *index, c *corev1.PersistentVolumeClaim, named *string) bool {
	if x.Unread["persistentvolumes"] || x.Unread["storageclasses"] {
		return false
	}
	fits, why := x.volumesFor(c)
	if fits {
		return false // the controller binds it in a moment
	}
	f.Evidence = append(f.Evidence, why...)
	have := x.classes()
	if named != nil {
		f.Cause = "No volume that is free fits the claim, and its class makes none by itself."
		f.Text = "Create a volume that fits: size, access modes and class as the claim wants them."
		return true
	}
	for i := range x.StorageClasses {
		if x.StorageClasses[i].Annotations[defaultClass] == "true" {
			// A claim gets the default class late, but by itself.
			f.Confidence = Low
		}
	}
	f.Cause = "The claim names no storage class, the cluster had none by default, and no free volume fits."
	f.Text = "Say which storage class the claim is to have, or mark one as default."
	if len(have) == 0 {
		f.Evidence = append(f.Evidence, "The cluster has no storage class at all.")
		f.Text = "Create a volume that fits, or install a provisioner with a storage class."
		return true
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("The storage classes that exist are %s.", quoteCodes(have)))
	if len(have) == 1 {
		if f.Fix = newPatch(f.Object, members{"spec": members{"storageClassName": have[0]}}); f.Fix != nil {
			f.Text = fmt.Sprintf("Give the claim the only class there is, %s.", quoteCode(have[0]))
		}
	}
	return true
}
