package apiserver

import (
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
)

// parseSelectors returns the test that the request's label and field selectors make.
func parseSelectors(r request) (func(resource.Object) bool, error) {
	query := r.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	allowed := FieldSet(r.kind.New())
	for _, need := range byField.Requirements() {
		if _, ok := allowed[need.Field]; !ok {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("Unable to find %q that match label selector %q, field selector %q: field label not supported: %s",
				r.kind.GroupVersionKind.GroupVersion().WithResource(r.kind.Plural).String(), query.Get("labelSelector"), query.Get("fieldSelector"), need.Field))
		}
	}
	name := r.name
	return func(o resource.Object) bool {
		return (name == "" || o.GetName() == name) && byLabel.Matches(labels.Set(o.GetLabels())) && (byField.Empty() || byField.Matches(FieldSet(o)))
	}, nil
}

// FieldSet lists the fields that can be selected by; they are those of a real API server.
func FieldSet(o resource.Object) fields.Set {
	set := fields.Set{"metadata.name": o.GetName()}
	if o.GetNamespace() != "" || resourceIsNamespaced(o) {
		set["metadata.namespace"] = o.GetNamespace()
	}
	switch o := o.(type) {
	case *corev1.Pod:
		set["spec.nodeName"] = o.Spec.NodeName
		set["spec.restartPolicy"] = string(o.Spec.RestartPolicy)
		set["spec.schedulerName"] = o.Spec.SchedulerName
		set["spec.serviceAccountName"] = o.Spec.ServiceAccountName
		set["spec.hostNetwork"] = strconv.FormatBool(o.Spec.HostNetwork)
		set["status.phase"] = string(o.Status.Phase)
		set["status.podIP"] = o.Status.PodIP
		set["status.nominatedNodeName"] = o.Status.NominatedNodeName
	case *corev1.Event:
		set["involvedObject.kind"] = o.InvolvedObject.Kind
		set["involvedObject.namespace"] = o.InvolvedObject.Namespace
		set["involvedObject.name"] = o.InvolvedObject.Name
		set["involvedObject.uid"] = string(o.InvolvedObject.UID)
		set["involvedObject.apiVersion"] = o.InvolvedObject.APIVersion
		set["involvedObject.resourceVersion"] = o.InvolvedObject.ResourceVersion
		set["involvedObject.fieldPath"] = o.InvolvedObject.FieldPath
		set["reason"] = o.Reason
		set["reportingComponent"] = o.ReportingController
		set["source"] = o.Source.Component
		set["type"] = o.Type
	case *corev1.Namespace:
		set["status.phase"] = string(o.Status.Phase)
	case *corev1.Node:
		set["spec.unschedulable"] = strconv.FormatBool(o.Spec.Unschedulable)
	case *corev1.Secret:
		set["type"] = string(o.Type)
	case *corev1.Service:
		set["spec.clusterIP"] = o.Spec.ClusterIP
		set["spec.type"] = string(o.Spec.Type)
	case *batchv1.Job:
		set["status.successful"] = strconv.Itoa(int(o.Status.Succeeded))
	}
	return set
}

func resourceIsNamespaced(o resource.Object) bool {
	k, ok := resource.ForKind(o.GetObjectKind().GroupVersionKind())
	return ok && k.Namespaced
}
