package controllers

import (
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

// eventLife is how long a real API server keeps events by default.
const eventLife = time.Hour

// note records that something happened to an object once more.
func (p *pass) note(o resource.Object, component, kind, reason, message string) {
	p.noteField(o, "", component, kind, reason, message)
}

func (p *pass) noteField(o resource.Object, fieldPath, component, kind, reason, message string) {
	gvk := o.GetObjectKind().GroupVersionKind()
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	sum := fnv.New64a()
	_, _ = fmt.Fprintf(sum, "%s\x00%s\x00%s\x00%s", o.GetUID(), reason, fieldPath, message) // a hash takes every write
	name := fmt.Sprintf("%s.%016x", o.GetName()[:min(len(o.GetName()), 200)], sum.Sum64())
	if old, ok := store.Get[*corev1.Event](p.Tx, resource.Events, namespace, name); ok {
		e := copyObject(old)
		e.Count++
		e.LastTimestamp = p.stamp()
		p.Put(resource.Events, e)
		return
	}
	e := resource.Of(resource.Events).New().(*corev1.Event)
	e.Name, e.Namespace = name, namespace
	e.InvolvedObject = corev1.ObjectReference{Kind: gvk.Kind, APIVersion: gvk.GroupVersion().String(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), FieldPath: fieldPath}
	e.Type, e.Reason, e.Message, e.Count = kind, reason, message, 1
	e.FirstTimestamp, e.LastTimestamp = p.stamp(), p.stamp()
	e.Source.Component, e.ReportingController = component, component
	_ = p.create(resource.Events, e) // as in a real cluster an event that cannot be stored is dropped
}

func (p *pass) expireEvents() {
	for _, e := range store.List[*corev1.Event](p.Tx, resource.Events, "") {
		ends := e.LastTimestamp.Add(eventLife)
		if !ends.After(p.now) {
			p.Remove(resource.Events, e.Namespace, e.Name)
			continue
		}
		// Once a minute is often enough to forget.
		p.again(ends.Add(time.Minute).Truncate(time.Minute))
	}
}

// noteRarely records a refusal that every pass meets again, at most once in a while.
func (p *pass) noteRarely(o resource.Object, component, reason, message string) {
	for _, e := range store.List[*corev1.Event](p.Tx, resource.Events, o.GetNamespace()) {
		if e.InvolvedObject.UID == o.GetUID() && e.Reason == reason && e.Message == message && e.LastTimestamp.Add(retryCreate).After(p.now) {
			p.again(e.LastTimestamp.Add(retryCreate))
			return
		}
	}
	p.note(o, component, corev1.EventTypeWarning, reason, message)
	p.again(p.now.Add(retryCreate))
}
