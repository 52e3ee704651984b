package operation

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// validArguments checks each member and the few pairs that depend on each other. Which members a verb takes was checked
// before.
func (o Operation) validArguments() error {
	for _, check := range []func() error{o.validRead, o.validQuery, o.validNumbers, o.validChoices, o.validPairs, o.validTaints, o.validDocuments, o.validServerTool} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o Operation) validRead() error {
	if o.Limit < 0 || o.Limit > MaxLimit {
		return Refuse(InvalidArgument, "limit", "limit must be 1 to %d.", MaxLimit)
	}
	if o.Tail < 0 || o.Tail > MaxLimit {
		return Refuse(InvalidArgument, "tail", "tail must be 1 to %d.", MaxLimit)
	}
	if o.Container != "" && !validLabel(o.Container) {
		return Refuse(InvalidArgument, "container", "%s is no container name.", Quote(o.Container))
	}
	if err := validSince(o.Since); err != nil {
		return err
	}
	if o.Verb == Logs && (len(o.Names) > 0) == (o.LabelSelector != "") {
		return Refuse(MissingArgument, "names", "logs needs a pod, a workload or a label selector, and only one of these.")
	}
	if o.Action != "" && !actionExpr.MatchString(o.Action) {
		return Refuse(InvalidArgument, "action", "%s is no API verb.", Quote(o.Action))
	}
	if o.Verb == CanI && (o.Action == "") != (o.Kind == "") {
		return Refuse(MissingArgument, "action", "can_i needs an action and a kind, or neither to list all.")
	}
	if o.Subresource != "" && (o.Kind == "" || !validLabel(o.Subresource)) {
		return Refuse(InvalidArgument, "subresource", "%s is no subresource of a kind.", Quote(o.Subresource))
	}
	if err := o.validPaths(); err != nil {
		return err
	}
	return o.validExplain()
}

func (o Operation) validExplain() error {
	if o.Verb != Explain {
		return nil
	}
	if strings.Contains(o.Kind, ",") {
		return Refuse(InvalidArgument, "kind", "explain takes one kind at a time.")
	}
	// The line form is kind.path: a dot in the kind would be ambiguous.
	if strings.Contains(o.Kind, ".") {
		return Refuse(InvalidArgument, "kind", "explain takes the kind without its group; name the group in api_version.")
	}
	if o.Path != "" && (len(o.Path) > 512 || !pathExpr.MatchString(o.Path)) {
		return Refuse(InvalidArgument, "path", "%s is no field path.", Quote(o.Path))
	}
	if group, version, two := strings.Cut(o.APIVersion, "/"); o.APIVersion != "" && (!ValidName(group) || two && !ValidName(version)) {
		return Refuse(InvalidArgument, "api_version", "%s is no API version.", Quote(o.APIVersion))
	}
	return nil
}

func (o Operation) validQuery() error {
	for _, f := range []struct{ name, text string }{{"contains", o.Contains}, {"promql", o.PromQL}, {"logql", o.LogQL}} {
		if err := validText(f.name, f.text); err != nil {
			return err
		}
		if f.text != "" && strings.TrimSpace(f.text) == "" {
			return Refuse(MissingArgument, f.name, "%s is blank.", f.name)
		}
	}
	if o.RangeMinutes < 0 || o.RangeMinutes > 30*24*60 {
		return Refuse(InvalidArgument, "range_minutes", "range_minutes must be 0 to 43200.")
	}
	return nil
}

func (o Operation) validNumbers() error {
	const most = 100_000 // pods in one workload; far above what a cluster holds
	if o.Replicas != nil && (*o.Replicas < 0 || *o.Replicas > most) {
		return Refuse(InvalidArgument, "replicas", "replicas must be 0 to %d.", most)
	}
	if o.Revision < 0 || o.Revision > 1<<53 {
		return Refuse(InvalidArgument, "revision", "revision must be a positive number.")
	}
	if o.Max < 0 || o.Max > most || o.Min != nil && (*o.Min < 0 || *o.Min > o.Max) {
		return Refuse(InvalidArgument, "max", "max must be 1 to %d and no less than min.", most)
	}
	if o.CPUPercent < 0 || o.CPUPercent > 10_000 {
		return Refuse(InvalidArgument, "cpu_percent", "cpu_percent must be 1 to 10000.")
	}
	if o.Port < 0 || o.Port > 65535 {
		return Refuse(InvalidArgument, "port", "port must be 1 to 65535.")
	}
	if o.GracePeriod != nil && (*o.GracePeriod < 0 || *o.GracePeriod > 86_400) {
		return Refuse(InvalidArgument, "grace_period", "grace_period must be 0 to 86400 seconds.")
	}
	if o.TargetPort == "" {
		return nil
	}
	n, err := strconv.Atoi(o.TargetPort)
	if err == nil && (n < 1 || n > 65535 || strconv.Itoa(n) != o.TargetPort) || err != nil && len(validation.IsValidPortName(o.TargetPort)) > 0 {
		return Refuse(InvalidArgument, "target_port", "%s is no port number or name.", Quote(o.TargetPort))
	}
	return nil
}

func (o Operation) validChoices() error {
	for _, c := range []struct {
		name, value string
		allowed     []string
	}{
		{"output", o.outputWord(), []string{"wide", "yaml", "json", "name"}},
		{"protocol", o.Protocol, []string{"TCP", "UDP", "SCTP"}},
		{"service_type", o.ServiceType, []string{"ClusterIP", "NodePort", "LoadBalancer"}},
		{"patch_type", o.PatchType, []string{"strategic", "merge", JSONPatch}},
		{"cascade", o.Cascade, []string{"background", "foreground", "orphan"}},
	} {
		if c.value != "" && !slices.Contains(c.allowed, c.value) {
			return Refuse(InvalidArgument, c.name, "%s must be one of %s.", c.name, strings.Join(c.allowed, ", "))
		}
	}
	if o.NewName != "" && len(validation.IsDNS1123Subdomain(o.NewName)) > 0 {
		return Refuse(InvalidArgument, "new_name", "%s is no object name.", Quote(o.NewName))
	}
	if o.Verb == Suspend && !oneOf(o.Kind, jobKinds) {
		return Refuse(InvalidArgument, "kind", "Only a CronJob or Job can be suspended; a rollout is paused.")
	}
	if o.Verb == RunJob && (!oneOf(o.Kind, jobKinds) || strings.HasPrefix(strings.ToLower(o.Kind), "job")) {
		return Refuse(InvalidArgument, "kind", "run_job needs a CronJob.")
	}
	return nil
}

func (o Operation) validPairs() error {
	if len(o.Images)+len(o.Requests)+len(o.Limits)+len(o.Set)+len(o.Remove) > MaxPairs {
		return Refuse(TooLarge, "set", "At most %d assignments in one operation.", MaxPairs)
	}
	for container, image := range o.Images {
		if container != "*" && !validLabel(container) {
			return Refuse(InvalidArgument, "images", "%s is no container name.", Quote(container))
		}
		if !validImage(image) {
			return Refuse(InvalidArgument, "images", "%s is no image.", Quote(image))
		}
	}
	if o.Verb == SetResources && len(o.Requests)+len(o.Limits) == 0 {
		return Refuse(MissingArgument, "limits", "set_resources needs requests or limits.")
	}
	for _, amounts := range []map[string]string{o.Requests, o.Limits} {
		for name, amount := range amounts {
			if !validQualifiedName(name) || !validQuantity(amount) {
				return Refuse(InvalidArgument, "limits", "%s is no amount of %s.", Quote(amount), Quote(name))
			}
		}
	}
	return o.validAssignments()
}

func (o Operation) validAssignments() error {
	switch o.Verb {
	case SetEnv, Label, Annotate:
	default:
		return nil
	}
	if len(o.Set)+len(o.Remove) == 0 {
		return Refuse(MissingArgument, "set", "%s needs something to set or remove.", o.Verb)
	}
	validKey := validQualifiedName
	if o.Verb == SetEnv {
		validKey = validEnvName
	}
	size := 0
	for key, value := range o.Set {
		if size += len(value); size > MaxValues {
			return Refuse(TooLarge, "set", "The values together are over %d bytes.", MaxValues)
		}
		if !validKey(key) || o.Verb == Label && !validLabelValue(value) {
			return Refuse(InvalidArgument, "set", "%s cannot be set to %s.", Quote(key), Quote(value))
		}
		if err := validText("set", value); err != nil {
			return err
		}
	}
	for _, key := range o.Remove {
		_, set := o.Set[key]
		if !validKey(key) || set {
			return Refuse(InvalidArgument, "remove", "%s cannot be removed.", Quote(key))
		}
	}
	return nil
}

func (o Operation) validTaints() error {
	if o.Verb != Taint {
		return nil
	}
	if n := len(o.Taints) + len(o.RemoveTaints); n == 0 || n > MaxPairs {
		return Refuse(MissingArgument, "taints", "taint needs 1 to %d taints to set or remove.", MaxPairs)
	}
	for _, t := range o.Taints {
		if _, err := ParseTaint(t, false); err != nil {
			return err
		}
	}
	for _, t := range o.RemoveTaints {
		if _, err := ParseTaint(t, true); err != nil {
			return err
		}
	}
	return nil
}

func (o Operation) validDocuments() error {
	if o.Patch != "" {
		if _, err := canonicalPatch(o.PatchType, o.Patch); err != nil {
			return err
		}
	}
	if o.Manifest != "" {
		if _, err := Documents(o.Manifest); err != nil {
			return err
		}
	}
	if o.Verb == Apply && o.Prune != (o.All || o.LabelSelector != "") {
		return Refuse(InvalidArgument, "prune", "apply takes a selector or all together with prune only, and prune needs one.")
	}
	if o.Verb == Apply && o.All && o.LabelSelector != "" {
		return Refuse(InvalidArgument, "all", "Give a selector or all, not both.")
	}
	if o.Verb == Replace && o.GracePeriod != nil && !o.Force {
		return Refuse(InvalidArgument, "grace_period", "replace takes grace_period together with force only.")
	}
	return nil
}
