package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// recently is the period that RecentChanges covers.
const recently = 24 * time.Hour

type change struct {
	at        time.Time
	namespace string
	object    string
	what      string
}

// Change is a change that the cluster shows: a creation, a rollout or a scaling.
type Change struct {
	At                time.Time
	Namespace, Object string
	What              string // a phrase, in Markdown
}

// Changes lists creations, rollouts and scalings, newest first.
func (v View) Changes() []Change {
	var all []Change
	for _, c := range v.changes() {
		all = append(all, Change{c.at, c.namespace, c.object, c.what})
	}
	return all
}

func (v View) changes() []change {
	all := slices.Concat(v.rollouts(), v.released(), v.created(), v.scaled())
	slices.SortStableFunc(all, func(a, b change) int {
		return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.object, b.object), cmp.Compare(a.what, b.what))
	})
	return all
}

// RecentChanges lists creations, rollouts and scalings, newest first. Only the cluster's audit log has the users; the
// managed fields have the clients.
func RecentChanges(v View) Answer {
	t := newTable("When", "Namespace", "Object", "What")
	for _, c := range v.changes() {
		t.add(formatAge(v.Taken, c.at)+" ago", tableCell(c.namespace), c.object, c.what)
	}
	period := cmp.Or(v.period(), " in the last 24 hours")
	return t.under("What changed "+v.where()+period+", the newest first (the cluster does not record here who did it):",
		"Nothing was created, rolled out or scaled "+v.where()+period+". Other edits, such as of a selector or a value, are not visible here, nor is who made them.")
}

func (v View) recent(at time.Time) bool { return v.Taken.Sub(at) <= cmp.Or(v.Within, recently) }

const revisionAnnotation = "deployment.kubernetes.io/revision"

// rollouts lists each new revision of a deployment, with its images.
func (v View) rollouts() []change {
	var all []change
	for i := range v.ReplicaSets {
		r := &v.ReplicaSets[i]
		owner := metav1.GetControllerOf(r)
		if owner == nil || !v.recent(r.CreationTimestamp.Time) || !v.about(owner.Kind, &metav1.ObjectMeta{Namespace: r.Namespace, Name: owner.Name}) {
			continue
		}
		var images []string
		for _, c := range r.Spec.Template.Spec.Containers {
			images = append(images, c.Image)
		}
		all = append(all, change{r.CreationTimestamp.Time, r.Namespace, kindName(operation.Ref{Kind: owner.Kind, Name: owner.Name}),
			fmt.Sprintf("revision %s, image %s", tableCell(r.Annotations[revisionAnnotation]), tableCells(images))})
	}
	return all
}

func (v View) created() []change {
	var all []change
	add := func(kind string, o metav1.Object) {
		if v.about(kind, o) && v.recent(o.GetCreationTimestamp().Time) {
			all = append(all, change{o.GetCreationTimestamp().Time, o.GetNamespace(), kindName(operation.Ref{Kind: kind, Name: o.GetName()}), "created"})
		}
	}
	for i := range v.Deployments {
		add("Deployment", &v.Deployments[i])
	}
	for i := range v.StatefulSets {
		add("StatefulSet", &v.StatefulSets[i])
	}
	for i := range v.DaemonSets {
		add("DaemonSet", &v.DaemonSets[i])
	}
	for i := range v.CronJobs {
		add("CronJob", &v.CronJobs[i])
	}
	for i := range v.Services {
		add("Service", &v.Services[i])
	}
	for i := range v.Ingresses {
		add("Ingress", &v.Ingresses[i])
	}
	for i := range v.Gateways {
		add("Gateway", &v.Gateways[i])
	}
	for i := range v.Routes {
		add(v.Routes[i].Kind, &v.Routes[i])
	}
	for i := range v.Certificates {
		add("Certificate", &v.Certificates[i])
	}
	for i := range v.ConfigMaps {
		if v.ConfigMaps[i].Name != "kube-root-ca.crt" {
			add("ConfigMap", &v.ConfigMaps[i])
		}
	}
	for i := range v.NetworkPolicies {
		add("NetworkPolicy", &v.NetworkPolicies[i])
	}
	return all
}

// scaled returns the events about added or removed replicas.
func (v View) scaled() []change {
	var all []change
	for i := range v.Snapshot.Events {
		e := &v.Snapshot.Events[i]
		on := e.InvolvedObject
		told := e.Reason == "ScalingReplicaSet" || e.Reason == "SuccessfulRescale" || e.Reason == "NodeNotSchedulable" || e.Reason == "NodeSchedulable"
		if told && v.recent(engine.LastSeen(e).Time) && v.about(on.Kind, &metav1.ObjectMeta{Namespace: on.Namespace, Name: on.Name}) {
			all = append(all, change{engine.LastSeen(e).Time, on.Namespace, kindName(operation.Ref{Kind: on.Kind, Name: on.Name}), tableCell(e.Message)})
		}
	}
	return all
}

// Idle lists workloads that seem to do nothing, from what the cluster shows.
func Idle(v View) Answer {
	asleep := v.asleep()
	t := newTable("Namespace", "Object", "Why it looks idle")
	for _, w := range v.Workloads() {
		switch {
		case w.Wanted == 0 && w.Ref.Kind != "DaemonSet":
			t.add(tableCell(w.Ref.Namespace), kindName(w.Ref), "scaled to 0")
		case w.Ready > 0 && asleep[operation.Ref{Kind: w.Ref.Kind, Namespace: w.Ref.Namespace, Name: w.Ref.Name}]:
			t.add(tableCell(w.Ref.Namespace), kindName(w.Ref), "ready, and uses under 1m of CPU now")
		}
	}
	for i := range v.CronJobs {
		if c := &v.CronJobs[i]; v.about("CronJob", c) && c.Spec.Suspend != nil && *c.Spec.Suspend {
			t.add(tableCell(c.Namespace), kindName(operation.Ref{Kind: "CronJob", Name: c.Name}), "suspended")
		}
	}
	ready := engine.ReadyEndpoints(v.EndpointSlices)
	for _, s := range v.services() {
		if v.about("Service", s) && isEmptyService(s, ready) {
			t.add(tableCell(s.Namespace), "service "+tableCell(s.Name), "has no ready endpoint")
		}
	}
	mounted := v.mounted()
	for i := range v.Claims {
		if c := &v.Claims[i]; v.about("PersistentVolumeClaim", c) && !mounted[[2]string{c.Namespace, c.Name}] {
			t.add(tableCell(c.Namespace), "persistentvolumeclaim "+tableCell(c.Name), "no pod mounts it")
		}
	}
	return t.under("What looks idle "+v.where()+":", "Nothing looks idle "+v.where()+".")
}

// asleep returns the workloads whose pods all use next to nothing; without samples a workload is not listed.
func (v View) asleep() map[operation.Ref]bool {
	cpu := map[[2]string]int64{}
	for log, used := range v.Snapshot.Usage {
		cpu[[2]string{log.Namespace, log.Pod}] += used.Cpu().MilliValue()
	}
	owner, asleep := v.Owners(), map[operation.Ref]bool{}
	for i := range v.Pods {
		pod := &v.Pods[i]
		uses, sampled := cpu[[2]string{pod.Namespace, pod.Name}]
		if !sampled {
			continue
		}
		o := owner(pod)
		o = operation.Ref{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
		so, known := asleep[o]
		asleep[o] = (so || !known) && uses < 1
	}
	return asleep
}

// mounted returns the claims that pods mount, by namespace and name.
func (v View) mounted() map[[2]string]bool {
	all := map[[2]string]bool{}
	for i := range v.Pods {
		for j := range v.Pods[i].Spec.Volumes {
			if claim := v.Pods[i].Spec.Volumes[j].PersistentVolumeClaim; claim != nil {
				all[[2]string{v.Pods[i].Namespace, claim.ClaimName}] = true
			}
		}
	}
	return all
}
