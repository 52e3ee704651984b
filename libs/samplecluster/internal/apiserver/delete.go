package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

// deleteOptions reads the options from the body or, where there is none, from the query.
func deleteOptions(r request) (metav1.DeleteOptions, bool, error) {
	var o metav1.DeleteOptions
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return o, false, err
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &o); err != nil {
			return o, false, apierrors.NewBadRequest("couldn't decode the DeleteOptions: " + err.Error())
		}
	} else {
		query := r.URL.Query()
		o.DryRun = query["dryRun"]
		if v := query.Get("propagationPolicy"); v != "" {
			policy := metav1.DeletionPropagation(v)
			o.PropagationPolicy = &policy
		}
		if v := query.Get("gracePeriodSeconds"); v != "" {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				return o, false, apierrors.NewBadRequest(fmt.Sprintf("invalid gracePeriodSeconds %q", v))
			}
			o.GracePeriodSeconds = &n
		}
	}
	if o.PropagationPolicy != nil && !slices.Contains([]metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}, *o.PropagationPolicy) {
		return o, false, apierrors.NewBadRequest(fmt.Sprintf("invalid propagationPolicy %q", *o.PropagationPolicy))
	}
	dry, err := dryRun(o.DryRun)
	return o, dry, err
}

func (s *Server) remove(w http.ResponseWriter, r request) error {
	opts, dry, err := deleteOptions(r)
	if err != nil {
		return err
	}
	var left, old resource.Object
	s.store.Do(func(tx store.Tx) {
		if old, err = s.find(tx, r); err == nil {
			left, err = s.removeOne(tx, r.kind, old, opts, dry)
		}
	})
	if err != nil {
		return err
	}
	if left != nil {
		writeJSON(w, http.StatusOK, left)
		return nil
	}
	writeJSON(w, http.StatusOK, successStatus(r, old))
	return nil
}

func (s *Server) removeAll(w http.ResponseWriter, r request) error {
	match, err := parseSelectors(r)
	if err != nil {
		return err
	}
	opts, dry, err := deleteOptions(r)
	if err != nil {
		return err
	}
	out := list{TypeMeta: metav1.TypeMeta{Kind: r.kind.GroupVersionKind.Kind + "List", APIVersion: r.kind.GroupVersionKind.GroupVersion().String()}, Items: []resource.Object{}}
	s.store.Do(func(tx store.Tx) {
		for _, o := range tx.List(r.kind.GroupResource(), r.namespace) {
			if !match(o) {
				continue
			}
			if _, err = s.removeOne(tx, r.kind, o, opts, dry); err != nil {
				return
			}
			out.Items = append(out.Items, o)
		}
		out.Metadata.ResourceVersion = strconv.FormatUint(tx.Version(), 10)
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// removeOne deletes an object, or marks it as being deleted when a kubelet, a finalizer or the namespace has to finish first.
// It returns the marked object, or nil when the object is gone.
func (s *Server) removeOne(tx store.Tx, kind resource.Kind, old resource.Object, opts metav1.DeleteOptions, dry bool) (resource.Object, error) {
	gr := kind.GroupResource()
	if p := opts.Preconditions; p != nil {
		if p.UID != nil && *p.UID != old.GetUID() {
			//lint:ignore ST1005 the API server's own words
			return nil, apierrors.NewConflict(gr, old.GetName(), fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, old.GetUID()))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
			//lint:ignore ST1005 the API server's own words
			return nil, apierrors.NewConflict(gr, old.GetName(), fmt.Errorf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", *p.ResourceVersion, old.GetResourceVersion()))
		}
	}
	o := old.DeepCopyObject().(resource.Object)
	grace := int64(0)
	if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		grace = *pod.Spec.TerminationGracePeriodSeconds
		if opts.GracePeriodSeconds != nil {
			grace = max(*opts.GracePeriodSeconds, 0)
		}
	}
	policy := metav1.DeletePropagationBackground
	if opts.PropagationPolicy != nil {
		policy = *opts.PropagationPolicy
	}
	finalizers := o.GetFinalizers()
	if policy == metav1.DeletePropagationForeground && !slices.Contains(finalizers, metav1.FinalizerDeleteDependents) {
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	}
	o.SetFinalizers(finalizers)
	if grace > 0 || len(finalizers) > 0 || isNamespace(kind) {
		at := metav1.NewTime(s.now().Add(time.Duration(grace) * time.Second).Truncate(time.Second))
		if was := o.GetDeletionTimestamp(); was == nil || at.Before(was) {
			o.SetDeletionTimestamp(&at)
			o.SetDeletionGracePeriodSeconds(&grace)
		}
		if kind.Generation && old.GetDeletionTimestamp() == nil {
			o.SetGeneration(old.GetGeneration() + 1)
		}
		if ns, ok := o.(*corev1.Namespace); ok {
			ns.Status.Phase = corev1.NamespaceTerminating
			ns.SetDeletionGracePeriodSeconds(nil)
		}
		if !dry {
			if policy == metav1.DeletePropagationOrphan {
				orphanDependents(tx, old)
			}
			tx.Put(gr, o)
		}
		return o, nil
	}
	if !dry {
		if policy == metav1.DeletePropagationOrphan {
			orphanDependents(tx, old)
		}
		tx.Remove(gr, old.GetNamespace(), old.GetName())
	}
	return nil, nil
}

// orphanDependents removes the owner's references, so that the dependents outlive it.
func orphanDependents(tx store.Tx, owner resource.Object) {
	for _, kind := range resource.All() {
		if !kind.Namespaced {
			continue
		}
		for _, o := range tx.List(kind.GroupResource(), owner.GetNamespace()) {
			refs := o.GetOwnerReferences()
			kept := slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() })
			if len(kept) == len(refs) {
				continue
			}
			free := o.DeepCopyObject().(resource.Object)
			free.SetOwnerReferences(kept)
			tx.Put(kind.GroupResource(), free)
		}
	}
}

// evict deletes a pod unless a disruption budget forbids it.
func (s *Server) evict(w http.ResponseWriter, r request) error {
	var eviction policyv1.Eviction
	if err := decodeBody(r.Request, &eviction); err != nil {
		return err
	}
	if eviction.Name != "" && eviction.Name != r.name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	opts := metav1.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		opts = *eviction.DeleteOptions
	}
	dry, err := dryRun(append(opts.DryRun, r.URL.Query()["dryRun"]...))
	if err != nil {
		return err
	}
	s.store.Do(func(tx store.Tx) {
		o, missing := s.find(tx, r)
		if missing != nil {
			err = missing
			return
		}
		pod := o.(*corev1.Pod)
		if pod.Status.Phase == corev1.PodRunning {
			for _, pdb := range store.List[*policyv1.PodDisruptionBudget](tx, resource.DisruptionBudgets, r.namespace) {
				match, bad := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
				if bad != nil || !match.Matches(labels.Set(pod.Labels)) {
					continue
				}
				if pdb.Status.DisruptionsAllowed < 1 {
					err = tooManyDisruptions(pdb)
					return
				}
				if !dry {
					spent := pdb.DeepCopy()
					spent.Status.DisruptionsAllowed--
					tx.Put(resource.DisruptionBudgets, spent)
				}
			}
		}
		_, err = s.removeOne(tx, r.kind, o, opts, dry)
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusCreated})
	return nil
}

func tooManyDisruptions(pdb *policyv1.PodDisruptionBudget) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    policyv1.DisruptionBudgetCause,
		Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", pdb.Name, pdb.Status.DesiredHealthy, pdb.Status.CurrentHealthy),
	})
	return err
}
