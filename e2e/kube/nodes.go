package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Node is a simulated node.
type Node struct {
	Name        string
	CPU, Memory string // capacity for the requests of pods
	Labels      map[string]string
	Taints      []corev1.Taint
}

// join registers the nodes and waits until they are ready.
func (c *Cluster) join(nodes []Node) error {
	if len(nodes) == 0 {
		nodes = []Node{{Name: "node-a", CPU: "8", Memory: "16Gi"}, {Name: "node-b", CPU: "8", Memory: "16Gi"}}
	}
	for _, n := range nodes {
		if err := c.Join(context.Background(), n); err != nil {
			return err
		}
	}
	return pollUntil(60*time.Second, func() error {
		if p := c.dead(); p != nil {
			return stopWaiting{fmt.Errorf("%s ended", p.name)}
		}
		for _, n := range nodes {
			if err := c.nodeReady(n.Name); err != nil {
				return err
			}
		}
		_, err := c.Client.CoreV1().ServiceAccounts("default").Get(context.Background(), "default", metav1.GetOptions{})
		return err
	})
}

// Join registers one node.
func (c *Cluster) Join(ctx context.Context, n Node) error {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(n.CPU), corev1.ResourceMemory: resource.MustParse(n.Memory),
		corev1.ResourcePods: resource.MustParse("5500"), corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	labels := map[string]string{"type": "kwok", "kubernetes.io/hostname": n.Name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
	for k, v := range n.Labels {
		labels[k] = v
	}
	_, err := c.Client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: n.Taints},
		Status:     corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}, metav1.CreateOptions{})
	return err
}

func (c *Cluster) nodeReady(name string) error {
	n, err := c.Client.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady && cond.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("node %s is not ready", name)
}

// Lose makes a node's kubelet appear silent for a while.
func (c *Cluster) Lose(ctx context.Context, name string) error {
	_, err := c.Client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"type":null},"annotations":{"e2e/kubelet":"stopped"}}}`), metav1.PatchOptions{})
	return err
}
