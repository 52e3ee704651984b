package registry

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// facts are the tools that conclude, and do not only show what is there.
func facts() []Tool {
	return []Tool{
		define[diagnoseArguments, Diagnosis]("diagnose", "Find what is wrong in a namespace, around one object or everywhere, by deterministic playbooks: causes with evidence, confidence and fix, and what was not looked at.", diagnose),
		define[reachArguments, Reachability]("reachability", "Judge whether the pods of one side reach a Service, workload, pod or address, by the network policies and Services of both sides.", reachability),
		define[workloadArguments, Dependencies]("dependencies", "List what a workload needs (configuration, volumes, account, Services that it calls) and what refers to it, and what of it is missing.", dependencies),
		define[drainArguments, DrainPlan]("drain_plan", "Show what draining a node would do to each pod on it, without draining it.", drainPlan),
		define[whoCanArguments, Allowed]("who_can", "List who may do something to a kind of object, by the roles and role bindings.", whoCan),
		define[namespaceArguments, Certificates]("certificates", "List the certificates in TLS Secrets with their hosts, validity and faults, never their keys.", certificates),
		define[namespaceArguments, Applications]("argo_applications", "List the applications of Argo CD that are in a namespace or deploy to it, with their state in Argo CD: in sync, healthy, the last sync and its message.", applications),
		define[namespaceArguments, Releases]("helm_releases", "List the releases of Helm with the status of their newest revision, by the names and labels of their Secrets; their values are never read.", releases),
		define[logSearchArguments, LogStatistics]("log_search", "Search the logs of a pod or workload and count them by message: how often, first and last time, numbers in them, and which part was not read.", logSearch),
		define[eventsArguments, Timeline]("events_in_time", "List the events of a namespace or object in the order in which they happened.", eventsInTime),
		define[changesArguments, Changes]("changes_since", "List what was created, rolled out or scaled in the last hours, newest first.", changesSince),
		define[noArguments, Capacity]("capacity", "Show for each node what it has and what its pods ask for.", capacity),
		tableTool(),
		runbooksTool(),
		define[fieldsArguments, Fields]("fields", "Read fields of one object or of all of a kind by their paths.", fields),
	}
}

type noArguments struct{}

type namespaceArguments struct {
	Namespace string `json:"namespace,omitempty" jsonschema:"Namespace; left out: all."`
}

type workloadArguments struct {
	Namespace string `json:"namespace" jsonschema:"Namespace of the workload."`
	Kind      string `json:"kind,omitempty" jsonschema:"Kind: deployment, statefulset, daemonset, job, cronjob or pod; left out: deployment."`
	Name      string `json:"name" jsonschema:"Name of the workload."`
}

// snapshotOf reads a namespace, or all with an empty one.
func snapshotOf(ctx context.Context, box turn.Toolbox, namespace string) (*engine.Snapshot, error) {
	if namespace != "" && !operation.ValidName(namespace) {
		return nil, operation.Refuse(operation.InvalidArgument, "namespace", "%s cannot be the name of a namespace.", operation.Quote(namespace))
	}
	return box.Snapshot(ctx, namespace)
}

// unread lists the kinds that could not be read whole, of those that matter to a tool; without any, of all.
func unread(s *engine.Snapshot, kinds ...string) []string {
	list := []string{}
	for _, kind := range slices.Sorted(maps.Keys(s.Unread)) {
		if s.Unread[kind] && (len(kinds) == 0 || slices.Contains(kinds, kind)) {
			list = append(list, kind)
		}
	}
	return list
}

// resolve finds an object by the names that the cluster itself takes for its kind.
func resolve(ctx context.Context, box turn.Toolbox, namespace, kind, name string) (operation.Reference, error) {
	op := operation.Normalize(operation.Operation{Verb: operation.Get, Kind: kind, Names: []string{name}, Namespace: namespace, Output: "name"})
	if err := op.Validate(); err != nil {
		return operation.Reference{}, err
	}
	out, err := box.Call(ctx, op)
	if err != nil {
		return operation.Reference{}, err
	}
	if len(out.References) == 0 {
		return operation.Reference{}, operation.Refuse(operation.NotFound, "name", "There is no %s %s.", cmp.Or(kind, "object"), operation.Quote(name))
	}
	return out.References[0], nil
}

// scopeOf looks up the object that a call is about, if it names one, and the namespace to read.
func scopeOf(ctx context.Context, box turn.Toolbox, asked operation.Reference) (about *operation.Reference, namespace string, err error) {
	if (asked.Kind == "") != (asked.Name == "") {
		return nil, "", operation.Refuse(operation.InvalidArgument, "name", "Give kind and name together, or neither.")
	}
	if asked.Name == "" {
		return nil, asked.Namespace, nil
	}
	found, err := resolve(ctx, box, asked.Namespace, asked.Kind, asked.Name)
	return &found, cmp.Or(asked.Namespace, found.Namespace), err
}

// joinLines makes a text of lines, without empty ones.
func joinLines(lines ...string) string {
	lines = slices.DeleteFunc(lines, func(s string) bool { return strings.TrimSpace(s) == "" })
	return strings.Join(lines, "\n") + "\n"
}
