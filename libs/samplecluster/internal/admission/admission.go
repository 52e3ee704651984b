// Package admission decides which objects may be stored: it sets defaults, validates objects and enforces quotas and
// limits, with the messages of a real API server. Requests and controllers both use it.
package admission

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// Create makes o ready to be stored as a new object, or returns why it must not be. It stores nothing.
func Create(tx store.Tx, kind resource.Kind, o resource.Object, now time.Time) error {
	gr := kind.GroupResource()
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(o.GetGenerateName()[:min(len(o.GetGenerateName()), 58)] + rand.String(5))
	}
	if o.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if kind.Namespaced {
		if err := admitNamespace(tx, kind, o); err != nil {
			return err
		}
	}
	if _, taken := tx.Get(gr, o.GetNamespace(), o.GetName()); taken {
		return apierrors.NewAlreadyExists(gr, o.GetName())
	}
	o.SetUID(uuid.NewUUID())
	o.SetCreationTimestamp(metav1.NewTime(now.Truncate(time.Second)))
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	o.SetSelfLink("")
	o.SetGeneration(0)
	if kind.Generation {
		o.SetGeneration(1)
	}
	if kind.Status {
		resetStatus(o, nil)
	}
	applyDefaults(tx, o)
	if pod, ok := o.(*corev1.Pod); ok {
		if err := admitPod(tx, pod); err != nil {
			return err
		}
	}
	if errs := validateObject(kind, o); len(errs) > 0 {
		return apierrors.NewInvalid(kind.GroupVersionKind.GroupKind(), o.GetName(), errs)
	}
	return admitQuota(tx, kind, o)
}

// countsAnnotations reports whether a change of annotations increments the generation too: an old rule, of deployments
// alone.
func countsAnnotations(kind resource.Kind) bool { return kind.GroupResource() == resource.Deployments }

// Update makes o ready to replace old: fields that a client may not set are carried over, the others are checked. The
// subresource selects which half of the object is written.
func Update(tx store.Tx, kind resource.Kind, old, o resource.Object, subresource string) error {
	gr := kind.GroupResource()
	if v := o.GetResourceVersion(); v != "" && v != old.GetResourceVersion() {
		return apierrors.NewConflict(gr, old.GetName(), errModified)
	}
	if uid := o.GetUID(); uid != "" && uid != old.GetUID() {
		//lint:ignore ST1005 the API server's own words
		return apierrors.NewConflict(gr, old.GetName(), fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, old.GetUID()))
	}
	o.SetUID(old.GetUID())
	o.SetCreationTimestamp(old.GetCreationTimestamp())
	o.SetDeletionTimestamp(old.GetDeletionTimestamp())
	o.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	o.SetGenerateName(old.GetGenerateName())
	o.SetSelfLink("")
	o.SetGeneration(old.GetGeneration())
	o.SetResourceVersion(old.GetResourceVersion())
	if subresource == "status" {
		fields := o.GetManagedFields()
		keepAllButStatus(o, old)
		o.SetManagedFields(fields)
		return nil
	}
	if kind.Status {
		resetStatus(o, old)
	}
	if svc, ok := o.(*corev1.Service); ok && svc.Spec.ClusterIP == "" && svc.Spec.Type != corev1.ServiceTypeExternalName {
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = old.(*corev1.Service).Spec.ClusterIP, old.(*corev1.Service).Spec.ClusterIPs
	}
	applyDefaults(tx, o)
	if kind.Generation && (!equality.Semantic.DeepEqual(versionedSpec(old), versionedSpec(o)) || countsAnnotations(kind) && !equality.Semantic.DeepEqual(old.GetAnnotations(), o.GetAnnotations())) {
		o.SetGeneration(old.GetGeneration() + 1)
	}
	errs := validateObject(kind, o)
	errs = append(errs, validateUpdate(old, o)...)
	if len(errs) > 0 {
		return apierrors.NewInvalid(kind.GroupVersionKind.GroupKind(), o.GetName(), errs)
	}
	return nil
}

func admitNamespace(tx store.Tx, kind resource.Kind, o resource.Object) error {
	ns, ok := store.Get[*corev1.Namespace](tx, resource.Namespaces, "", o.GetNamespace())
	if !ok {
		return apierrors.NewNotFound(resource.Namespaces, o.GetNamespace())
	}
	if ns.Status.Phase == corev1.NamespaceTerminating && kind.GroupResource() != resource.Events {
		err := apierrors.NewForbidden(kind.GroupResource(), o.GetName(), fmt.Errorf("unable to create new content in namespace %s because it is being terminated", o.GetNamespace()))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", o.GetNamespace()), Field: "metadata.namespace"})
		return err
	}
	return nil
}

func fieldByName(o resource.Object, name string) reflect.Value {
	return reflect.ValueOf(o).Elem().FieldByName(name)
}

// versionedSpec returns what metadata.generation counts: the spec where there is one.
func versionedSpec(o resource.Object) any {
	if f := fieldByName(o, "Spec"); f.IsValid() {
		return f.Interface()
	}
	return nil
}

// resetStatus takes the status of old, or empties it.
func resetStatus(o, old resource.Object) {
	to := fieldByName(o, "Status")
	if !to.IsValid() {
		return
	}
	if old == nil {
		to.SetZero()
		return
	}
	to.Set(fieldByName(old.DeepCopyObject().(resource.Object), "Status"))
}

func keepAllButStatus(o, old resource.Object) {
	status := reflect.New(fieldByName(o, "Status").Type()).Elem()
	status.Set(fieldByName(o, "Status"))
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(old.DeepCopyObject()).Elem())
	fieldByName(o, "Status").Set(status)
}

// KeepStatus gives o the status in given, if it has one: a sample node keeps the status in its manifest.
func KeepStatus(o, given resource.Object) {
	if status := fieldByName(given, "Status"); status.IsValid() && !status.IsZero() {
		fieldByName(o, "Status").Set(status)
	}
}
