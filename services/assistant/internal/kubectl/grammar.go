package kubectl

import "github.com/mlp-platform/platform/services/assistant/internal/operation"

// args describes the words besides the flags.
type args int

const (
	none       args = iota
	refs            // KIND NAME… or KIND/NAME…
	nodes           // NAME… or node/NAME…
	nodesPairs      // node NAME… TAINT…
	pod             // NAME, or KIND/NAME
	pairs           // one ref, then name=value or name-
	fieldPath       // KIND.path
	right           // ACTION KIND[/NAME]
	jobName         // NAME of the new job
	expression      // one query
)

// command is one row of the grammar. A verb has one row; get and list share one.
type command struct {
	words []string
	verb  operation.Verb
	args  args
	// fixed are flags always written, since kubectl needs them for the same effect.
	fixed []string
	flags []flag
	// other are flags parsed but never written: older spellings.
	other []flag
}

// grammar lists longer commands before their prefixes. limit, contains and evict are ours: kubectl has no word for
// them. Queries begin with the name of their tool, since no kubectl command queries those stores.
var grammar = []command{
	{words: []string{"kubectl", "get"}, verb: operation.List, args: refs, flags: []flag{namespace, allNamespaces, selector, fieldSelector, limit, output, sortBy}, other: []flag{watch}},
	{words: []string{"kubectl", "describe"}, verb: operation.Describe, args: refs, flags: []flag{namespace, allNamespaces, selector, limit}},
	{words: []string{"kubectl", "logs"}, verb: operation.Logs, args: pod, flags: []flag{namespace, selector, container, previous, since, tail, contains}},
	{words: []string{"kubectl", "events"}, verb: operation.Events, args: none, flags: []flag{namespace, allNamespaces, forObject, limit}},
	{words: []string{"kubectl", "top"}, verb: operation.Top, args: refs, flags: []flag{namespace, allNamespaces, selector}},
	{words: []string{"kubectl", "rollout", "history"}, verb: operation.RolloutHistory, args: refs, flags: []flag{namespace, revision}},
	{words: []string{"kubectl", "auth", "can-i"}, verb: operation.CanI, args: right, flags: []flag{namespace, allNamespaces, subresource}, other: []flag{listRights}},
	{words: []string{"kubectl", "auth", "whoami"}, verb: operation.WhoAmI, args: none},
	{words: []string{"kubectl", "api-resources"}, verb: operation.APIResources, args: none},
	{words: []string{"kubectl", "cluster-info"}, verb: operation.ClusterInfo, args: none},
	{words: []string{"kubectl", "explain"}, verb: operation.Explain, args: fieldPath, flags: []flag{apiVersion, recursive}},
	{words: []string{"kubectl", "diff"}, verb: operation.Diff, args: none, flags: []flag{namespace, filename}},
	{words: []string{"query_prometheus"}, verb: operation.QueryPrometheus, args: expression, flags: []flag{rangeMinutes}},
	{words: []string{"query_loki"}, verb: operation.QueryLoki, args: expression, flags: []flag{limit, since}},

	{words: []string{"kubectl", "scale"}, verb: operation.Scale, args: refs, flags: []flag{namespace, selector, fieldSelector, all, replicas, rehearse}},
	{words: []string{"kubectl", "rollout", "restart"}, verb: operation.Restart, args: refs, flags: []flag{namespace, rehearse}},
	{words: []string{"kubectl", "rollout", "undo"}, verb: operation.Undo, args: refs, flags: []flag{namespace, toRevision, rehearse}},
	{words: []string{"kubectl", "rollout", "pause"}, verb: operation.Pause, args: refs, flags: []flag{namespace, rehearse}},
	{words: []string{"kubectl", "rollout", "resume"}, verb: operation.Resume, args: refs, flags: []flag{namespace, rehearse}},
	{words: []string{"kubectl", "create", "job"}, verb: operation.RunJob, args: jobName, flags: []flag{namespace, fromObject, rehearse}},
	{words: []string{"kubectl", "set", "image"}, verb: operation.SetImage, args: pairs, flags: []flag{namespace, rehearse}},
	{words: []string{"kubectl", "set", "resources"}, verb: operation.SetResources, args: refs, flags: []flag{namespace, containers, requests, limits, rehearse}},
	{words: []string{"kubectl", "set", "env"}, verb: operation.SetEnv, args: pairs, flags: []flag{namespace, containers, rehearse}},
	{words: []string{"kubectl", "expose"}, verb: operation.Expose, args: refs, flags: []flag{namespace, newName, port, targetPort, protocol, serviceType, rehearse}},
	{words: []string{"kubectl", "autoscale"}, verb: operation.Autoscale, args: refs, flags: []flag{namespace, least, most, cpu, rehearse}, other: []flag{cpuPercent}},
	{words: []string{"kubectl", "label"}, verb: operation.Label, args: pairs, flags: []flag{namespace, overwrite, rehearse}},
	{words: []string{"kubectl", "annotate"}, verb: operation.Annotate, args: pairs, flags: []flag{namespace, overwrite, rehearse}},
	{words: []string{"kubectl", "patch"}, verb: operation.Patch, args: refs, flags: []flag{namespace, patchType, patch, rehearse}},
	{words: []string{"kubectl", "apply"}, verb: operation.Apply, args: none, fixed: []string{"--server-side"}, flags: []flag{namespace, prune, selector, all, takeOver, rehearse, filename}, other: []flag{serverSide}},
	{words: []string{"kubectl", "create"}, verb: operation.Create, args: none, flags: []flag{namespace, rehearse, filename}},
	{words: []string{"kubectl", "replace"}, verb: operation.Replace, args: none, flags: []flag{namespace, force, gracePeriod, rehearse, filename}},
	{words: []string{"kubectl", "delete"}, verb: operation.Delete, args: refs, flags: []flag{namespace, selector, fieldSelector, all, force, gracePeriod, cascade, rehearse}},
	{words: []string{"kubectl", "evict"}, verb: operation.Evict, args: refs, flags: []flag{namespace, selector, fieldSelector, all, gracePeriod, rehearse}},
	{words: []string{"kubectl", "cordon"}, verb: operation.Cordon, args: nodes, flags: []flag{selector, all, rehearse}},
	{words: []string{"kubectl", "uncordon"}, verb: operation.Uncordon, args: nodes, flags: []flag{selector, all, rehearse}},
	{words: []string{"kubectl", "drain"}, verb: operation.Drain, args: nodes, flags: []flag{selector, all, ignoreDaemons, deleteLocal, force, gracePeriod, podSelector, rehearse}},
	{words: []string{"kubectl", "taint"}, verb: operation.Taint, args: nodesPairs, flags: []flag{selector, all, overwrite, rehearse}},
}

// forbidden maps commands that bypass the typed operations to the reason.
var forbidden = map[string]string{
	"exec":              "runs commands in containers",
	"attach":            "joins the input of containers",
	"cp":                "copies files",
	"debug":             "starts containers",
	"run":               "starts pods outside a manifest",
	"port-forward":      "opens the cluster's network",
	"proxy":             "opens the whole API",
	"edit":              "needs an editor",
	"certificate":       "hands out identities",
	"config":            "reads and changes credentials",
	"auth reconcile":    "changes who may do what",
	"create token":      "hands out credentials",
	"cluster-info dump": "copies the whole cluster state",
}

// foreign are the flags that would act as another user, on another cluster, outside the typed operations, or without
// verifying the server. as covers all flags that begin with it.
var foreign = []string{
	"as", "user", "token", "username", "password", "server", "kubeconfig", "context", "cluster", "raw",
	"insecure-skip-tls-verify", "certificate-authority", "client-certificate", "client-key", "tls-server-name",
}
