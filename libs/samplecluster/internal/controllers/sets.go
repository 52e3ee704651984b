package controllers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

func (p *pass) statefulSets() {
	for _, old := range store.List[*appsv1.StatefulSet](p.Tx, resource.StatefulSets, "") {
		if old.DeletionTimestamp != nil {
			continue
		}
		s := copyObject(old)
		rev := s.Name + "-" + hashOf(s.Spec.Template)
		status := appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, UpdateRevision: rev, CurrentRevision: rev}
		pods := map[int]*corev1.Pod{}
		for _, pod := range p.podsOf(s, resource.Pods) {
			if n, err := strconv.Atoi(strings.TrimPrefix(pod.Name, s.Name+"-")); err == nil {
				pods[n] = pod
			}
		}
		want, waiting := int(*s.Spec.Replicas), false
		for n := range want {
			pod := pods[n]
			delete(pods, n)
			if pod == nil {
				if !waiting {
					p.createOrdinal(s, n, rev)
				}
				waiting = waiting || s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
				continue
			}
			status.Replicas++
			if pod.Labels[appsv1.ControllerRevisionHashLabelKey] == rev {
				status.UpdatedReplicas++
				status.CurrentReplicas++
			} else if !waiting {
				p.stop(pod)
			}
			if isPodReady(pod) && pod.DeletionTimestamp == nil {
				status.ReadyReplicas++
				status.AvailableReplicas++
			} else if s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
				waiting = true
			}
		}
		last := -1
		for n, pod := range pods {
			status.Replicas++
			if pod.DeletionTimestamp == nil {
				last = max(last, n)
			}
		}
		if last >= 0 && !waiting {
			p.stop(pods[last])
			p.note(s, "statefulset-controller", corev1.EventTypeNormal, "SuccessfulDelete", fmt.Sprintf("delete Pod %s in StatefulSet %s successful", pods[last].Name, s.Name))
		}
		s.Status = status
		p.Put(resource.StatefulSets, s)
	}
}

func (p *pass) createOrdinal(s *appsv1.StatefulSet, n int, rev string) {
	pod := p.podFrom(s, resource.StatefulSets, &s.Spec.Template, fmt.Sprintf("%s-%d", s.Name, n))
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = rev
	pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, s.Spec.ServiceName
	for _, t := range s.Spec.VolumeClaimTemplates {
		name := t.Name + "-" + pod.Name
		if _, ok := p.Get(resource.Claims, s.Namespace, name); !ok {
			claim := resource.Of(resource.Claims).New().(*corev1.PersistentVolumeClaim)
			claim.Name, claim.Namespace, claim.Labels = name, s.Namespace, s.Spec.Selector.MatchLabels
			claim.Spec = *t.Spec.DeepCopy()
			if err := p.create(resource.Claims, claim); err != nil {
				p.note(s, "statefulset-controller", corev1.EventTypeWarning, "FailedCreate", fmt.Sprintf("create Claim %s for Pod %s in StatefulSet %s failed error: %v", name, pod.Name, s.Name, err))
				return
			}
		}
		pod.Spec.Volumes = append(slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == t.Name }), corev1.Volume{
			Name:         t.Name,
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}},
		})
	}
	if err := p.create(resource.Pods, pod); err != nil {
		p.noteRarely(s, "statefulset-controller", "FailedCreate", fmt.Sprintf("create Pod %s in StatefulSet %s failed error: %v", pod.Name, s.Name, err))
		return
	}
	p.note(s, "statefulset-controller", corev1.EventTypeNormal, "SuccessfulCreate", fmt.Sprintf("create Pod %s in StatefulSet %s successful", pod.Name, s.Name))
}

func (p *pass) daemonSets() {
	nodes := store.List[*corev1.Node](p.Tx, resource.Nodes, "")
	for _, old := range store.List[*appsv1.DaemonSet](p.Tx, resource.DaemonSets, "") {
		if old.DeletionTimestamp != nil {
			continue
		}
		d := copyObject(old)
		rev := hashOf(d.Spec.Template)
		byNode := map[string]*corev1.Pod{}
		for _, pod := range p.podsOf(d, resource.Pods) {
			byNode[pod.Spec.NodeName] = pod
		}
		d.Status = appsv1.DaemonSetStatus{ObservedGeneration: d.Generation}
		for _, node := range nodes {
			probe := &corev1.Pod{Spec: *d.Spec.Template.Spec.DeepCopy()}
			probe.Spec.Tolerations = append(probe.Spec.Tolerations, daemonTolerations...)
			match, err := nodeaffinity.GetRequiredNodeAffinity(probe).Match(node)
			if err != nil || !match || findUntoleratedTaint(probe, node) != nil {
				continue
			}
			d.Status.DesiredNumberScheduled++
			pod := byNode[node.Name]
			delete(byNode, node.Name)
			switch {
			case pod == nil:
				pod = p.podFrom(d, resource.DaemonSets, &d.Spec.Template, "")
				pod.GenerateName = d.Name + "-"
				if pod.Labels == nil {
					pod.Labels = map[string]string{}
				}
				pod.Labels[appsv1.ControllerRevisionHashLabelKey] = rev
				pod.Spec.NodeName, pod.Spec.Tolerations = node.Name, probe.Spec.Tolerations
				if err := p.create(resource.Pods, pod); err != nil {
					p.noteRarely(d, "daemonset-controller", "FailedCreate", "Error creating: "+creationRefusal(err, pod))
					continue
				}
				p.note(d, "daemonset-controller", corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: "+pod.Name)
			case pod.Labels[appsv1.ControllerRevisionHashLabelKey] != rev:
				p.stop(pod)
			default:
				d.Status.UpdatedNumberScheduled++
			}
			d.Status.CurrentNumberScheduled++
			if isPodReady(pod) {
				d.Status.NumberReady++
				d.Status.NumberAvailable++
			}
		}
		d.Status.NumberUnavailable = d.Status.DesiredNumberScheduled - d.Status.NumberAvailable
		for _, pod := range byNode {
			p.stop(pod)
		}
		p.Put(resource.DaemonSets, d)
	}
}

var daemonTolerations = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}
