package operation

import "slices"

// Verb names what an operation does. It is also the name of the tool for it.
type Verb string

// Verbs that read.
const (
	List            Verb = "list"
	Get             Verb = "get"
	Describe        Verb = "describe"
	Logs            Verb = "logs"
	Events          Verb = "events"
	Top             Verb = "top"
	RolloutHistory  Verb = "rollout_history"
	CanI            Verb = "can_i"
	Explain         Verb = "explain"
	Diff            Verb = "diff"
	WhoAmI          Verb = "who_am_i"
	APIResources    Verb = "api_resources"
	ClusterInfo     Verb = "cluster_info"
	QueryPrometheus Verb = "query_prometheus"
	QueryLoki       Verb = "query_loki"
)

// Verbs that write.
const (
	Scale        Verb = "scale"
	Restart      Verb = "restart"
	Undo         Verb = "undo"
	Pause        Verb = "pause"
	Resume       Verb = "resume"
	Suspend      Verb = "suspend"
	RunJob       Verb = "run_job"
	SetImage     Verb = "set_image"
	SetResources Verb = "set_resources"
	SetEnv       Verb = "set_env"
	Expose       Verb = "expose"
	Autoscale    Verb = "autoscale"
	Label        Verb = "label"
	Annotate     Verb = "annotate"
	Patch        Verb = "patch"
	Apply        Verb = "apply"
	Create       Verb = "create"
	Replace      Verb = "replace"
	Delete       Verb = "delete"
	Evict        Verb = "evict"
	Cordon       Verb = "cordon"
	Uncordon     Verb = "uncordon"
	Drain        Verb = "drain"
	Taint        Verb = "taint"
)

// Verbs lists every verb that is an operation on the cluster: reads first, in the order of the tool table.
func Verbs() []Verb {
	verbs := make([]Verb, len(table))
	for i, s := range table {
		verbs[i] = s.verb
	}
	return verbs
}

// Known reports whether the verb is one of [Verbs], or calls a tool of another server.
func (v Verb) Known() bool { return specOf(v) != nil }

// Writes reports whether the verb changes the cluster, or another system. An unknown verb counts as a write.
func (v Verb) Writes() bool {
	s := specOf(v)
	return s == nil || s.risk != Low
}

// Risk grades the possible damage of an operation.
type Risk string

// The three grades. Reads and dry runs are low and never gated.
const (
	Low    Risk = "low"
	Medium Risk = "medium"
	High   Risk = "high"
)

// Max returns the higher of two risks.
func (r Risk) Max(other Risk) Risk {
	order := []Risk{Low, Medium, High}
	if slices.Index(order, other) > slices.Index(order, r) {
		return other
	}
	return r
}
