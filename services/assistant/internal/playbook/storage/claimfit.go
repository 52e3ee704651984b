package storage

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// explainNamedVolume explains a claim that names a volume and does not get it.
func explainNamedVolume(f *engine.Finding, x *Index, c *corev1.PersistentVolumeClaim) bool {
	if x.Unread["persistentvolumes"] {
		return false
	}
	at := slices.IndexFunc(x.Volumes, func(v corev1.PersistentVolume) bool { return v.Name == c.Spec.VolumeName })
	if at < 0 {
		f.Cause = fmt.Sprintf("The claim wants the volume %s, which does not exist.", engine.QuoteCode(c.Spec.VolumeName))
		f.Text = "Create this volume, or make the claim anew without its name."
		return true
	}
	why := volumeMisfit(&x.Volumes[at], c)
	if why == "" {
		return false
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("Volume %s %s.", engine.QuoteCode(c.Spec.VolumeName), why))
	f.Cause = fmt.Sprintf("The claim wants the volume %s, and this does not fit.", engine.QuoteCode(c.Spec.VolumeName))
	f.Text = "Make the claim anew so that it fits the volume, or name another."
	return true
}

// volumesFor reports whether a free volume fits a claim; otherwise why lists the misfit of each.
func (x *Index) volumesFor(c *corev1.PersistentVolumeClaim) (fits bool, why []string) {
	volumes := make([]*corev1.PersistentVolume, 0, len(x.Volumes))
	for i := range x.Volumes {
		volumes = append(volumes, &x.Volumes[i])
	}
	slices.SortFunc(volumes, func(a, b *corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
	for _, v := range volumes {
		reason := volumeMisfit(v, c)
		if reason == "" {
			return true, nil
		}
		why = append(why, fmt.Sprintf("Volume %s %s.", engine.QuoteCode(v.Name), reason))
	}
	if len(volumes) == 0 {
		why = []string{"The cluster has no persistent volume."}
	}
	return false, why
}

// volumeMisfit returns the reason why a volume cannot satisfy a claim, or empty.
func volumeMisfit(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) string {
	wanted := engine.ValueOr(className(c), "")
	wants, offers := c.Spec.Resources.Requests[corev1.ResourceStorage], v.Spec.Capacity[corev1.ResourceStorage]
	block := engine.ValueOr(c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	switch r := v.Spec.ClaimRef; {
	case r != nil && (r.Namespace != c.Namespace || r.Name != c.Name || r.UID != "" && r.UID != c.UID):
		if v.Status.Phase == corev1.VolumeReleased {
			return fmt.Sprintf("is still kept for the claim %s, which is gone", engine.QuoteCode(r.Namespace+"/"+r.Name))
		}
		return fmt.Sprintf("is bound to another claim, %s", engine.QuoteCode(r.Namespace+"/"+r.Name))
	case v.DeletionTimestamp != nil || v.Status.Phase == corev1.VolumeFailed:
		return "is being removed, or failed"
	case v.Spec.StorageClassName != wanted && v.Spec.StorageClassName == "":
		return "has no class"
	case v.Spec.StorageClassName != wanted:
		return "has the class " + engine.QuoteCode(v.Spec.StorageClassName)
	case offers.Cmp(wants) < 0:
		return fmt.Sprintf("has %s, which is too small", offers.String())
	case slices.ContainsFunc(c.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool { return !slices.Contains(v.Spec.AccessModes, m) }):
		return "offers the access modes " + engine.QuoteCode(formatModes(v.Spec.AccessModes)) + " only"
	case engine.ValueOr(v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) != block:
		return "has another volume mode"
	}
	if s, err := metav1.LabelSelectorAsSelector(c.Spec.Selector); c.Spec.Selector != nil && (err != nil || !s.Matches(labels.Set(v.Labels))) {
		return "lacks the labels that the selector of the claim wants"
	}
	return ""
}
