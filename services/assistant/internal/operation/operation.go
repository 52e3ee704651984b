package operation

import "strings"

// Ref is an object, its kind resolved through discovery. Name is empty if the server generates it.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind"`
	Resource  string `json:"resource,omitempty"` // plural, lower case
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns kind/name, with the group if there is one, and the namespace.
func (r Ref) String() string {
	s := strings.ToLower(r.Kind)
	if r.Group != "" {
		s += "." + r.Group
	}
	s += "/" + r.Name
	if r.Namespace != "" {
		s += " in " + r.Namespace
	}
	return s
}

// Object is one object as a person or a model named it.
type Object struct {
	Kind string // plural, singular, short name or kind.group, as written
	Name string // empty: all objects that the selectors match
}

// Operation is one thing to do in the cluster. Each verb has its own members (see [Schema]); a member that the verb
// does not take must be zero. The JSON form is stored in action rows. Two equivalent operations are equal after
// [Normalize].
type Operation struct {
	Verb Verb `json:"verb"`

	// Kind is as written, or several comma-separated kinds. Empty if the entries of Names include theirs.
	Kind string `json:"kind,omitempty"`
	// Names of objects of that kind; with an empty Kind each is kind/name.
	Names     []string `json:"names,omitempty"`
	Namespace string   `json:"namespace,omitempty"` // empty: the scope of the session
	// AllNamespaces widens a read.
	AllNamespaces bool `json:"all_namespaces,omitempty"`
	// All selects every object of the kind in the namespace.
	All           bool   `json:"all,omitempty"`
	LabelSelector string `json:"label_selector,omitempty"`
	FieldSelector string `json:"field_selector,omitempty"`
	// Limit of entries; 0 is the tool's default.
	Limit int `json:"limit,omitempty"`
	// Output is wide, yaml, json, name, jsonpath={…} or custom-columns=HEAD:path,…; empty is a table.
	Output string `json:"output,omitempty"`
	// SortBy is the path of the field by which a list is sorted.
	SortBy string `json:"sort_by,omitempty"`
	// DryRun sends the request to the server without any change.
	DryRun bool `json:"dry_run,omitempty"`

	// Container of logs, set_env and set_resources; empty: the only one, or all.
	Container string `json:"container,omitempty"`
	Previous  bool   `json:"previous,omitempty"` // the container before its restart
	Since     string `json:"since,omitempty"`    // a duration, at most 24h
	Tail      int    `json:"tail,omitempty"`     // lines, 0 is the tool's default
	Contains  string `json:"contains,omitempty"` // lines with this text only

	Action      string `json:"action,omitempty"` // can_i: the API verb; empty lists all
	Subresource string `json:"subresource,omitempty"`
	Path        string `json:"path,omitempty"` // explain: a field path without the kind
	APIVersion  string `json:"api_version,omitempty"`
	Recursive   bool   `json:"recursive,omitempty"`

	PromQL       string `json:"promql,omitempty"`
	RangeMinutes int    `json:"range_minutes,omitempty"` // 0: an instant
	LogQL        string `json:"logql,omitempty"`

	Replicas *int32 `json:"replicas,omitempty"`
	Revision int64  `json:"revision,omitempty"` // 0: the one before
	// NewName is the name of the object created by run_job or expose.
	NewName string `json:"new_name,omitempty"`
	// Images, Requests and Limits map containers to images, resources to amounts.
	Images   map[string]string `json:"images,omitempty"`
	Requests map[string]string `json:"requests,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
	// Set and Remove are the changes of set_env, label and annotate.
	Set       map[string]string `json:"set,omitempty"`
	Remove    []string          `json:"remove,omitempty"`
	Overwrite bool              `json:"overwrite,omitempty"`

	Port        int    `json:"port,omitempty"`
	TargetPort  string `json:"target_port,omitempty"`  // number or name
	Protocol    string `json:"protocol,omitempty"`     // TCP, UDP or SCTP
	ServiceType string `json:"service_type,omitempty"` // ClusterIP, NodePort or LoadBalancer
	Min         *int32 `json:"min,omitempty"`
	Max         int32  `json:"max,omitempty"`
	CPUPercent  int32  `json:"cpu_percent,omitempty"` // 0: the server's default

	// Patch is a JSON object, compact, keys sorted; for the type json a list of steps.
	Patch string `json:"patch,omitempty"`
	// PatchType is merge or json; empty is strategic if the kind supports it, else merge.
	PatchType string `json:"patch_type,omitempty"`
	// Manifest is YAML or JSON, several documents allowed, ending in a line feed.
	Manifest string `json:"manifest,omitempty"`
	// Prune deletes objects that were applied earlier and are no longer in the manifest.
	Prune bool `json:"prune,omitempty"`
	// Force deletes immediately (delete), deletes and creates (replace), takes fields over (apply) or evicts pods without
	// an owner (drain).
	Force              bool   `json:"force,omitempty"`
	GracePeriod        *int64 `json:"grace_period,omitempty"` // seconds
	Cascade            string `json:"cascade,omitempty"`      // foreground or orphan; empty is background
	IgnoreDaemonSets   bool   `json:"ignore_daemonsets,omitempty"`
	DeleteEmptyDirData bool   `json:"delete_emptydir_data,omitempty"`
	PodSelector        string `json:"pod_selector,omitempty"` // drain: these pods only
	// Taints and RemoveTaints are written key[=value]:Effect; a removal may omit value and effect.
	Taints       []string `json:"taints,omitempty"`
	RemoveTaints []string `json:"remove_taints,omitempty"`

	// Server and Tool name a tool of another server, and Arguments is its JSON object, compact, keys sorted.
	Server    string `json:"server,omitempty"`
	Tool      string `json:"tool,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

// Risk returns the risk of the verb alone. The objects of an operation may raise it; package guard judges that.
func (o Operation) Risk() Risk {
	s := specOf(o.Verb)
	switch {
	case s == nil:
		return High
	case o.DryRun:
		return Low
	}
	return s.risk
}

// Kinds returns the distinct kinds named, with comma-separated lists split.
func (o Operation) Kinds() []string {
	var kinds []string
	seen := map[string]bool{}
	for _, obj := range o.Objects() {
		if obj.Kind != "" && !seen[obj.Kind] {
			seen[obj.Kind] = true
			kinds = append(kinds, obj.Kind)
		}
	}
	return kinds
}

// Objects splits comma-separated lists: every kind with every name. Without names each kind is returned once, with an
// empty name.
func (o Operation) Objects() []Object {
	if o.Kind == "" {
		var objects []Object
		for _, n := range o.Names {
			kind, name, _ := strings.Cut(n, "/")
			objects = append(objects, Object{kind, name})
		}
		return objects
	}
	var objects []Object
	for kind := range strings.SplitSeq(o.Kind, ",") {
		if len(o.Names) == 0 {
			objects = append(objects, Object{Kind: kind})
		}
		for _, n := range o.Names {
			objects = append(objects, Object{kind, n})
		}
	}
	return objects
}
