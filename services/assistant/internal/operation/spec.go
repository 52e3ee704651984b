package operation

// refRule states how a verb names its objects.
type refRule int

const (
	noRef       refRule = iota // none: manifests and queries
	maybeRef                   // one or none
	oneRef                     // exactly one
	oneNode                    // at most one, pods or nodes only
	kindOnly                   // kinds, no names
	namedRefs                  // kinds and at least one name
	anyRefs                    // kinds, with names or without
	chosenRefs                 // names, a selector or all
	chosenNodes                // the same, nodes only
)

// spec is one row of the tool table: the members that a verb takes, the required ones, and its risk.
type spec struct {
	verb     Verb
	risk     Risk
	refs     refRule
	about    string
	fields   []string // in addition to those of refs
	required []string
}

// The risks are those of the risk table; images and resources always require a decision, so those two verbs are high.
var table = []spec{
	{List, Low, kindOnly, "List objects of one or several kinds.", []string{"namespace", "all_namespaces", "label_selector", "field_selector", "limit", "output", "sort_by"}, nil},
	{Get, Low, namedRefs, "Read objects by name.", []string{"namespace", "output"}, nil},
	{Describe, Low, anyRefs, "Read objects with their conditions and events.", []string{"namespace", "all_namespaces", "label_selector", "limit"}, nil},
	{Logs, Low, maybeRef, "Read the log of a pod, or of the pods behind a workload or selector.", []string{"namespace", "label_selector", "container", "previous", "since", "tail", "contains"}, nil},
	{Events, Low, maybeRef, "Read the events of an object or of a namespace.", []string{"namespace", "all_namespaces", "limit"}, nil},
	{Top, Low, oneNode, "Read what pods or nodes use now.", []string{"namespace", "all_namespaces", "label_selector"}, []string{"kind"}},
	{RolloutHistory, Low, oneRef, "Read the revisions of a workload.", []string{"namespace", "revision"}, nil},
	{CanI, Low, maybeRef, "Ask whether the assistant's own account may do something; without an action, list what it may do.", []string{"namespace", "all_namespaces", "action", "subresource"}, nil},
	{Explain, Low, kindOnly, "Read the schema of a kind or of a field in it.", []string{"path", "api_version", "recursive"}, nil},
	{Diff, Low, noRef, "Show what applying a manifest would change.", []string{"namespace", "manifest"}, []string{"manifest"}},
	{WhoAmI, Low, noRef, "Read who the assistant's own account is.", nil, nil},
	{APIResources, Low, noRef, "List the kinds that the cluster serves.", nil, nil},
	{ClusterInfo, Low, noRef, "Read the cluster's version, and where its control plane and add-ons answer.", nil, nil},
	{QueryPrometheus, Low, noRef, "Ask the metrics store. range_minutes 0 is an instant.", []string{"promql", "range_minutes"}, []string{"promql"}},
	{QueryLoki, Low, noRef, "Ask the log store.", []string{"logql", "limit", "since"}, []string{"logql"}},

	{Scale, Medium, chosenRefs, "Set the number of replicas.", []string{"namespace", "replicas", "dry_run"}, []string{"replicas"}},
	{Restart, Medium, oneRef, "Replace the pods of a workload one by one.", []string{"namespace", "dry_run"}, nil},
	{Undo, Medium, oneRef, "Go back to an earlier revision.", []string{"namespace", "revision", "dry_run"}, nil},
	{Pause, Medium, oneRef, "Pause a rollout.", []string{"namespace", "dry_run"}, nil},
	{Resume, Medium, oneRef, "Resume a paused rollout, or a suspended CronJob or Job.", []string{"namespace", "dry_run"}, nil},
	{Suspend, Medium, oneRef, "Suspend a CronJob or Job.", []string{"namespace", "dry_run"}, nil},
	{RunJob, Medium, oneRef, "Run a CronJob now, as a Job named new_name.", []string{"namespace", "new_name", "dry_run"}, []string{"new_name"}},
	{SetImage, High, oneRef, "Set container images: container to image.", []string{"namespace", "images", "dry_run"}, []string{"images"}},
	{SetResources, High, oneRef, "Set container requests and limits.", []string{"namespace", "container", "requests", "limits", "dry_run"}, nil},
	{SetEnv, Medium, oneRef, "Set or remove environment variables.", []string{"namespace", "container", "set", "remove", "dry_run"}, nil},
	{Expose, Medium, oneRef, "Create a Service for a workload.", []string{"namespace", "new_name", "port", "target_port", "protocol", "service_type", "dry_run"}, []string{"port"}},
	{Autoscale, Medium, oneRef, "Create an autoscaler for a workload.", []string{"namespace", "min", "max", "cpu_percent", "dry_run"}, []string{"max"}},
	{Label, Medium, oneRef, "Set or remove labels.", []string{"namespace", "set", "remove", "overwrite", "dry_run"}, nil},
	{Annotate, Medium, oneRef, "Set or remove annotations.", []string{"namespace", "set", "remove", "overwrite", "dry_run"}, nil},
	{Patch, Medium, oneRef, "Patch an object with a JSON object.", []string{"namespace", "patch", "patch_type", "dry_run"}, []string{"patch"}},
	{Apply, Medium, noRef, "Apply a manifest.", []string{"namespace", "manifest", "prune", "label_selector", "all", "force", "dry_run"}, []string{"manifest"}},
	{Create, Medium, noRef, "Create the objects of a manifest.", []string{"namespace", "manifest", "dry_run"}, []string{"manifest"}},
	{Replace, High, noRef, "Replace objects by those of a manifest.", []string{"namespace", "manifest", "force", "grace_period", "dry_run"}, []string{"manifest"}},
	{Delete, High, chosenRefs, "Delete objects.", []string{"namespace", "force", "grace_period", "cascade", "dry_run"}, nil},
	{Evict, Medium, chosenRefs, "Evict pods, as disruption budgets allow.", []string{"namespace", "grace_period", "dry_run"}, nil},
	{Cordon, Medium, chosenNodes, "Keep new pods off nodes.", []string{"dry_run"}, nil},
	{Uncordon, Medium, chosenNodes, "Let new pods on nodes again.", []string{"dry_run"}, nil},
	{Drain, High, chosenNodes, "Cordon nodes and evict their pods.", []string{"force", "grace_period", "ignore_daemonsets", "delete_emptydir_data", "pod_selector", "dry_run"}, nil},
	{Taint, High, chosenNodes, "Set or remove node taints.", []string{"taints", "remove_taints", "overwrite", "dry_run"}, nil},
}

func specOf(v Verb) *spec {
	if s := clusterSpecOf(v); s != nil {
		return s
	}
	return serverSpecs[v]
}

// clusterSpecOf returns the row of a verb that is an operation on the cluster.
func clusterSpecOf(v Verb) *spec {
	for i := range table {
		if table[i].verb == v {
			return &table[i]
		}
	}
	return nil
}

// members returns the names of all members that the verb takes, those of its refs first.
func (s *spec) members() []string {
	var m []string
	switch s.refs {
	case noRef:
	case kindOnly:
		m = []string{"kind"}
	case maybeRef, oneRef, oneNode, namedRefs, anyRefs:
		m = []string{"kind", "names"}
	case chosenRefs, chosenNodes:
		m = []string{"kind", "names", "all", "label_selector"}
		if s.refs == chosenRefs {
			m = append(m, "field_selector")
		}
	}
	return append(m, s.fields...)
}

// single reports whether the verb takes one name at most; its tool then has no names.
func (s *spec) single() bool {
	return s.refs == maybeRef || s.refs == oneRef || s.refs == oneNode
}
