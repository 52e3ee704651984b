//go:build e2e

package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/mlp-platform/platform/e2e/kube"
)

// cluster is a control plane whose pods behave as in the scenarios.
type cluster struct {
	*kube.Cluster
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
	actors  *actors
	shared  []shared // objects outside its namespace of the scenario that runs alone
}

// shared is an object without a namespace, or in another one.
type shared struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// startCluster starts a control plane with three nodes in two zones.
func startCluster(t testing.TB) *cluster {
	t.Helper()
	var nodes []kube.Node
	for name, zone := range map[string]string{"worker-1": "eu-central-1a", "worker-2": "eu-central-1a", "worker-3": "eu-central-1b"} {
		nodes = append(nodes, kube.Node{Name: name, CPU: "32", Memory: "64Gi", Labels: map[string]string{"topology.kubernetes.io/zone": zone}})
	}
	c := &cluster{Cluster: kube.Start(t, nodes...)}
	t.Cleanup(c.Stop)
	if err := c.Kubelet.ServeMetrics(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.dynamic, err = dynamic.NewForConfig(c.Config); err != nil {
		t.Fatal(err)
	}
	if err := c.discover(); err != nil {
		t.Fatal(err)
	}
	c.actors = newActors(c.Client)
	c.Kubelet.Serve(c.actors)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.actors.run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return c
}

func (c *cluster) discover() error {
	groups, err := restmapper.GetAPIGroupResources(c.Client.Discovery())
	if err == nil {
		c.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	}
	return err
}

// create creates an object, and its status where it has one.
func (c *cluster) create(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) error {
	made, err := c.dynamic.Resource(r).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	status, ok := o.Object["status"]
	if !ok {
		return nil
	}
	for {
		made.Object["status"] = status
		_, err = c.dynamic.Resource(r).Namespace(o.GetNamespace()).UpdateStatus(ctx, made, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) { // a controller was faster
			return err
		}
		if made, err = c.dynamic.Resource(r).Namespace(o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{}); err != nil {
			return err
		}
	}
}

// apply creates the objects of a YAML stream, in the scenario's namespace unless they name one.
func (c *cluster) apply(ctx context.Context, s *Scenario, text string) error {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var o unstructured.Unstructured
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if o.Object == nil {
			continue
		}
		gvk := o.GroupVersionKind()
		m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) { // a kind that the scenario has just defined
			err = kube.Until(func() error {
				if err := c.discover(); err != nil {
					return err
				}
				m, err = c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
				return err
			})
		}
		if err != nil {
			return err
		}
		if m.Scope.Name() == meta.RESTScopeNameNamespace && o.GetNamespace() == "" {
			o.SetNamespace(s.Namespace)
		}
		if err := c.create(ctx, m.Resource, &o); err != nil {
			return fmt.Errorf("create %s %s: %w", gvk.Kind, o.GetName(), err)
		}
		if o.GetNamespace() != s.Namespace {
			c.shared = append(c.shared, shared{m.Resource, o.GetNamespace(), o.GetName()})
		}
	}
}

func (c *cluster) joinNode(ctx context.Context, n Node) error {
	node := kube.Node{Name: n.Name, CPU: n.CPU, Memory: n.Memory, Labels: n.Labels}
	for _, t := range n.Taints {
		pair, effect, _ := strings.Cut(t, ":")
		key, value, _ := strings.Cut(pair, "=")
		node.Taints = append(node.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	if err := c.Join(ctx, node); err != nil {
		return err
	}
	c.shared = append(c.shared, shared{resource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, name: n.Name})
	return kube.Until(func() error { return c.nodeReady(ctx, n.Name, corev1.ConditionTrue) })
}

func (c *cluster) nodeReady(ctx context.Context, name string, want corev1.ConditionStatus) error {
	node, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady && cond.Status == want {
			return nil
		}
	}
	return fmt.Errorf("node %s is not Ready=%s", name, want)
}

// setConditions writes the conditions that a scenario gives its nodes, and makes lost nodes silent.
func (c *cluster) setConditions(ctx context.Context, nodes []Node) error {
	for _, n := range nodes {
		node, err := c.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for kind, text := range n.Conditions {
			words := strings.SplitN(text, " ", 3)
			node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(k corev1.NodeCondition) bool { return string(k.Type) == kind })
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
				Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(words[0]), Reason: words[1], Message: words[2],
				LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			})
		}
		if len(n.Conditions) > 0 {
			if _, err := c.Client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		if n.Lost {
			if err := c.Lose(ctx, n.Name); err != nil {
				return err
			}
			if err := kube.Until(func() error { return c.nodeReady(ctx, n.Name, corev1.ConditionUnknown) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle waits until everything matches the scenario, and then makes its updates.
func (c *cluster) settle(ctx context.Context, s *Scenario) error {
	for i := range s.Workloads {
		w := &s.Workloads[i]
		if err := waitFor(func() error { return c.actors.settled(s.Namespace, w) }); err != nil {
			return err
		}
	}
	if err := c.setConditions(ctx, s.Nodes); err != nil {
		return err
	}
	for _, u := range s.Update {
		r, name, err := c.find(u.Object)
		if err != nil {
			return err
		}
		if err := c.patch(ctx, s.Namespace, r, name, u); err != nil {
			return fmt.Errorf("patch %s: %w", u.Object, err)
		}
	}
	for _, d := range s.Delete {
		r, name, err := c.find(d)
		if err != nil {
			return err
		}
		if err := c.dynamic.Resource(r).Namespace(namespaceOf(r, s.Namespace)).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	for _, reason := range s.Until {
		if err := waitFor(func() error {
			list, err := c.Client.CoreV1().Events(s.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
			if err == nil && len(list.Items) == 0 {
				err = fmt.Errorf("no event %s in %s", reason, s.Namespace)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// find resolves resource/name.
func (c *cluster) find(object string) (schema.GroupVersionResource, string, error) {
	resource, name, _ := strings.Cut(object, "/")
	r, err := c.mapper.ResourceFor(schema.GroupVersionResource{Resource: resource})
	return r, name, err
}

func namespaceOf(r schema.GroupVersionResource, namespace string) string {
	switch r.Resource {
	case "namespaces", "nodes", "persistentvolumes", "storageclasses":
		return ""
	}
	return namespace
}

func (c *cluster) patch(ctx context.Context, namespace string, r schema.GroupVersionResource, name string, u Update) error {
	var sub []string
	if u.Subresource != "" {
		sub = []string{u.Subresource}
	}
	patch, err := json.Marshal(u.Patch)
	if err != nil {
		return err
	}
	_, err = c.dynamic.Resource(r).Namespace(namespaceOf(r, namespace)).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, sub...)
	return err
}

// remove deletes the objects of a scenario that runs alone.
func (c *cluster) remove(ctx context.Context, s *Scenario) error {
	var faults []error
	for _, o := range slices.Backward(c.shared) {
		err := c.dynamic.Resource(o.resource).Namespace(o.namespace).Delete(ctx, o.name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			faults = append(faults, err)
		}
	}
	c.shared = nil
	err := c.Client.CoreV1().Namespaces().Delete(ctx, s.Namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// waitFor waits up to three minutes, as controllers take long while many scenarios begin at once.
func waitFor(check func() error) error {
	var err error
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); {
		if err = kube.Until(check); err == nil {
			return nil
		}
	}
	return err
}
