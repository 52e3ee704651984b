package assistanttest

import "github.com/mlp-platform/platform/services/assistant/internal/operation"

func (g generator) write(o *operation.Operation) {
	switch o.Verb {
	case operation.Apply, operation.Create, operation.Replace:
		g.document(o)
	case operation.Delete, operation.Evict, operation.Cordon, operation.Uncordon, operation.Drain, operation.Taint:
		g.choose(o)
	case operation.Scale:
		g.choose(o)
		g.one(o)
	default:
		g.ref(o)
		g.one(o)
	}
}

func (g generator) document(o *operation.Operation) {
	o.Manifest = g.manifest()
	switch o.Verb {
	case operation.Apply:
		if o.Prune = g.maybe(); o.Prune {
			o.LabelSelector = g.pick("", g.selector())
			o.All = o.LabelSelector == ""
		}
		o.Force = g.maybe()
	case operation.Replace:
		if o.Force = g.maybe(); o.Force {
			o.GracePeriod = g.seconds()
		}
	}
}

func (g generator) seconds() *int64 {
	if g.maybe() {
		return nil
	}
	n := int64(g.IntN(100))
	return &n
}

func (g generator) choose(o *operation.Operation) {
	switch {
	case nodeVerb(o.Verb):
		o.Kind = "node"
	case o.Verb == operation.Evict:
		o.Kind = g.pick("pod", "pods", "po")
	default:
		o.Kind = g.pick("pod", "ns,pv", g.kind())
	}
	switch g.IntN(4) {
	case 0:
		o.All = true
	case 1:
		o.LabelSelector = g.selector()
	default:
		for range 1 + g.IntN(3) {
			o.Names = append(o.Names, g.pick("n1", "n2", "ip-10-0-0-1.ec2.internal"))
		}
	}
	switch o.Verb {
	case operation.Delete:
		o.Force, o.GracePeriod, o.Cascade = g.maybe(), g.seconds(), g.pick("", "orphan", "foreground", "background")
	case operation.Evict:
		o.GracePeriod = g.seconds()
	case operation.Drain:
		o.Force, o.GracePeriod, o.IgnoreDaemonSets, o.DeleteEmptyDirData = g.maybe(), g.seconds(), g.maybe(), g.maybe()
		o.PodSelector = g.pick("", g.selector())
	case operation.Taint:
		o.Taints, o.Overwrite = []string{g.pick("a=b:NoExecute", "x.io/y:NoSchedule", "k=v:PreferNoSchedule")}, g.maybe()
		if g.maybe() {
			o.RemoveTaints = []string{g.pick("old", "old:NoSchedule", "old=v:NoExecute")}
		}
	}
}

func (g generator) one(o *operation.Operation) {
	switch o.Verb {
	case operation.Scale:
		n := int32(g.IntN(9))
		o.Replicas = &n
	case operation.Undo:
		o.Revision = int64(g.IntN(5))
	case operation.Suspend:
		o.Kind = g.pick("cronjob", "CronJobs", "jobs.batch")
	case operation.RunJob:
		o.Kind, o.NewName = g.pick("cronjob", "cj"), g.label()
	case operation.SetImage:
		o.Images = map[string]string{g.pick("*", g.label()): g.pick("nginx", "nginx:1.27", "host.example:5000/a/b@sha256:00ff")}
	case operation.SetResources:
		o.Container = g.pick("", g.label())
		o.Limits = map[string]string{"memory": g.pick("256Mi", "1e3", "0"), "nvidia.com/gpu": "1"}
		if g.maybe() {
			o.Requests = map[string]string{"cpu": "250m"}
		}
	case operation.SetEnv:
		o.Container, o.Set = g.pick("", g.label()), g.pairs(g.text)
		if g.maybe() {
			o.Set["EMPTY"], o.Remove = "", []string{"OLD", "OLDER-"}
		}
	case operation.Label:
		o.Overwrite, o.Set = g.maybe(), map[string]string{"app": g.pick("api", ""), "x.io/y": "1"}
		o.Remove = []string{"z", "example.com/w"}
	case operation.Annotate:
		o.Overwrite, o.Set = g.maybe(), g.pairs(g.text)
	default:
		g.rest(o)
	}
}

func (g generator) rest(o *operation.Operation) {
	switch o.Verb {
	case operation.Expose:
		o.Port, o.TargetPort, o.NewName = 1+g.IntN(65535), g.pick("", "http", "8080"), g.pick("", "web")
		o.Protocol, o.ServiceType = g.pick("", "UDP"), g.pick("", "NodePort")
	case operation.Autoscale:
		o.Max, o.CPUPercent = int32(1+g.IntN(9)), int32(g.IntN(101))
		if g.maybe() {
			one := int32(g.IntN(2))
			o.Min = &one
		}
	case operation.Patch:
		if g.maybe() {
			o.PatchType = "json"
			o.Patch = g.pick(`[{"op":"remove","path":"/metadata/finalizers/0"}]`, `[{"op":"test","path":"/spec/x~1y","value":null},{"op":"add","path":"/spec/a/-","value":{"b":"it's <c>"}}]`, "- {op: move, from: /spec/a, path: /spec/b}\n")
			return
		}
		o.PatchType = g.pick("", "merge", "strategic")
		o.Patch = g.pick(`{"spec":{"suspend":true}}`, `{"spec":{"replicas":3,"x":0.5,"big":9007199254740993}}`, "spec:\n  a: \"it's <b>\"\n", `{"metadata":{"finalizers":null}}`)
	}
}
