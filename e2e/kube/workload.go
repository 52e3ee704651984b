package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/mlp-platform/platform/e2e/kube/kubelet"
	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// Simulated adds the labels and annotations to meta that make package kubelet run the pod with these programs.
func Simulated(meta *metav1.ObjectMeta, programs map[string]program.Program) {
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Labels["e2e"] = "program"
	for k, v := range kubelet.Annotate(programs) {
		meta.Annotations[k] = v
	}
}

// Deployment returns a Deployment of one container with this program, not created yet.
func Deployment(namespace, name, image string, replicas int32, p program.Program) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image}}},
			},
		},
	}
	Simulated(&d.Spec.Template.ObjectMeta, map[string]program.Program{name: p})
	return d
}

// Apply creates the objects of a YAML stream in a namespace, unless they name one. An owner that comes before its object
// in the stream needs no uid. It also writes statuses, as controllers do.
func (c *Cluster) Apply(ctx context.Context, namespace, text string) error {
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	var m *meta.RESTMapping
	uids := map[string]types.UID{}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var o unstructured.Unstructured
		if err := decoder.Decode(&o.Object); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if o.Object == nil {
			continue
		}
		gvk := o.GroupVersionKind()
		if m, err = c.mappingOf(gvk); err != nil {
			return err
		}
		to := dynamic.ResourceInterface(client.Resource(m.Resource))
		if m.Scope.Name() == meta.RESTScopeNameNamespace {
			if o.GetNamespace() == "" {
				o.SetNamespace(namespace)
			}
			to = client.Resource(m.Resource).Namespace(o.GetNamespace())
		}
		if err := create(ctx, to, &o, uids); err != nil {
			return fmt.Errorf("create %s %s: %w", gvk.Kind, o.GetName(), err)
		}
	}
}

// mappingOf returns the resource of a kind. The list of all groups shows a new one some time after the group is served.
func (c *Cluster) mappingOf(gvk schema.GroupVersionKind) (m *meta.RESTMapping, err error) {
	err = Until(func() error {
		groups, err := restmapper.GetAPIGroupResources(c.Client.Discovery())
		if err == nil {
			m, err = restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(gvk.GroupKind(), gvk.Version)
		}
		return err
	})
	return m, err
}

// create creates an object under the owners that were created before it, whose uids are kept by kind and name.
func create(ctx context.Context, to dynamic.ResourceInterface, o *unstructured.Unstructured, uids map[string]types.UID) error {
	if owners := o.GetOwnerReferences(); len(owners) > 0 {
		for i := range owners {
			owners[i].UID = cmp.Or(owners[i].UID, uids[owners[i].Kind+"/"+owners[i].Name])
		}
		o.SetOwnerReferences(owners)
	}
	status := o.Object["status"]
	made, err := to.Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	uids[made.GetKind()+"/"+made.GetName()] = made.GetUID()
	if status == nil || equality.Semantic.DeepEqual(made.Object["status"], status) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = to.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil // its kind has no subresource for it: it was created with its status
	}
	return err
}

// Namespace creates a namespace and waits until pods can be created in it.
func (c *Cluster) Namespace(ctx context.Context, name string) error {
	if _, err := c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return pollUntil(30*time.Second, func() error {
		_, err := c.Client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// Until waits up to half a minute for a condition of the cluster.
func Until(check func() error) error { return pollUntil(30*time.Second, check) }
