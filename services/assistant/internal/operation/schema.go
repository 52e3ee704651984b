package operation

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
)

// property is the JSON Schema of one member.
type property map[string]any

func textProperty(about string) property { return property{"type": "string", "description": about} }

func flagProperty(about string) property { return property{"type": "boolean", "description": about} }

func numberProperty(least, most int, about string) property {
	return property{"type": "integer", "minimum": least, "maximum": most, "description": about}
}

func choiceProperty(about string, values ...string) property {
	return property{"type": "string", "enum": values, "description": about}
}

func pairsProperty(about string) property {
	return property{"type": "object", "additionalProperties": property{"type": "string"}, "minProperties": 1, "maxProperties": MaxPairs, "description": about}
}

func textsProperty(most int, about string) property {
	return property{"type": "array", "items": property{"type": "string"}, "minItems": 1, "maxItems": most, "description": about}
}

var properties = map[string]property{
	"kind":                 textProperty("Kind: plural, singular, short name or kind.group."),
	"name":                 {"type": "string", "pattern": NamePattern, "maxLength": 253, "description": "Name of the object."},
	"pod":                  {"type": "string", "pattern": NamePattern, "maxLength": 253, "description": "Name of the pod; for the pods of a workload give kind and name instead."},
	"names":                {"type": "array", "items": property{"type": "string", "pattern": NamePattern, "maxLength": 253}, "minItems": 1, "maxItems": MaxNames, "description": "Names of the objects."},
	"namespace":            {"type": "string", "pattern": `^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`, "maxLength": 63, "description": "Namespace; left out: that of the session."},
	"all_namespaces":       flagProperty("Every namespace."),
	"all":                  flagProperty("Every object of the kind in the namespace."),
	"label_selector":       textProperty("Label selector, such as app=api."),
	"field_selector":       textProperty("Field selector, such as status.phase=Running."),
	"limit":                numberProperty(1, MaxLimit, "Most entries to return."),
	"output":               textProperty("Form of the answer: wide, yaml, json, name, jsonpath={...} or custom-columns=HEAD:.path,..."),
	"sort_by":              textProperty("Path of the field to sort by, such as .metadata.creationTimestamp."),
	"dry_run":              flagProperty("Rehearse on the server, change nothing."),
	"container":            textProperty("Container; left out: the only one, or all."),
	"previous":             flagProperty("The container before its last restart."),
	"since":                textProperty("How far back, such as 15m; at most 24h."),
	"tail":                 numberProperty(1, MaxLimit, "Last lines to return."),
	"contains":             textProperty("Only lines with this text."),
	"action":               textProperty("API verb, such as get."),
	"subresource":          textProperty("Subresource, such as log."),
	"path":                 textProperty("Field path below the kind, such as spec.template."),
	"api_version":          textProperty("API version, such as apps/v1."),
	"recursive":            flagProperty("All fields below."),
	"promql":               textProperty("PromQL expression."),
	"range_minutes":        numberProperty(0, 30*24*60, "Minutes back from now; 0 is an instant."),
	"logql":                textProperty("LogQL expression."),
	"replicas":             numberProperty(0, 100_000, "Wanted replicas."),
	"revision":             numberProperty(1, 1<<31-1, "Revision; left out: the one before."),
	"new_name":             textProperty("Name of the new object."),
	"images":               pairsProperty("Container to image; * is every container."),
	"requests":             pairsProperty("Resource to amount, such as memory to 128Mi."),
	"limits":               pairsProperty("Resource to amount, such as memory to 256Mi."),
	"set":                  pairsProperty("Name to value."),
	"remove":               textsProperty(MaxPairs, "Names to remove."),
	"overwrite":            flagProperty("Replace values that exist."),
	"port":                 numberProperty(1, 65535, "Port of the service."),
	"target_port":          textProperty("Port number or name in the pods."),
	"protocol":             choiceProperty("Protocol.", "TCP", "UDP", "SCTP"),
	"service_type":         choiceProperty("Type of the service.", "ClusterIP", "NodePort", "LoadBalancer"),
	"min":                  numberProperty(0, 100_000, "Fewest replicas."),
	"max":                  numberProperty(1, 100_000, "Most replicas."),
	"cpu_percent":          numberProperty(1, 10_000, "Wanted CPU use in percent of the request."),
	"patch":                textProperty("The patch, a JSON object as text."),
	"patch_type":           choiceProperty("strategic falls back to merge where the kind has no strategic patch.", "strategic", "merge"),
	"manifest":             textProperty("YAML or JSON, one or several documents."),
	"prune":                flagProperty("Delete selected objects that the manifest no longer has."),
	"force":                flagProperty("Delete at once, replace by deleting, take over fields, or drop pods without an owner."),
	"grace_period":         numberProperty(0, 86_400, "Seconds to stop in."),
	"cascade":              choiceProperty("What becomes of dependents.", "background", "foreground", "orphan"),
	"ignore_daemonsets":    flagProperty("Leave pods of daemon sets."),
	"delete_emptydir_data": flagProperty("Also pods whose local data is lost."),
	"pod_selector":         textProperty("Only these pods."),
	"taints":               textsProperty(MaxPairs, "Taints to set, key=value:Effect."),
	"remove_taints":        textsProperty(MaxPairs, "Taints to remove, key, key:Effect or key=value:Effect."),
}

// Schema returns the JSON Schema of a verb's tool arguments, compact, keys sorted; nil for an unknown verb.
func Schema(v Verb) json.RawMessage {
	s := clusterSpecOf(v)
	if s == nil {
		return nil
	}
	props := map[string]property{}
	for _, m := range s.arguments() {
		props[m] = properties[m]
	}
	required := slices.Clone(s.required)
	switch s.refs {
	case kindOnly, anyRefs, chosenRefs:
		required = append(required, "kind")
	case oneRef:
		required = append(required, "kind", "name")
	case namedRefs:
		required = append(required, "kind") // and name or names
	case noRef, maybeRef, oneNode, chosenNodes:
	}
	slices.Sort(required)
	schema := property{"type": "object", "properties": props, "additionalProperties": false}
	if required = slices.Compact(required); len(required) > 0 {
		schema["required"] = required
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil // plain maps and strings always encode; a test reads every schema
	}
	return raw
}

// About describes the verb in one sentence, for tool lists.
func About(v Verb) string {
	if s := clusterSpecOf(v); s != nil {
		return s.about
	}
	return ""
}

// arguments returns the members of the tool: those of the operation, with name in addition to or instead of names, and
// no kind if only one is possible.
func (s *spec) arguments() []string {
	args := slices.Clone(s.members())
	if i := slices.Index(args, "names"); i >= 0 {
		args = slices.Insert(args, i, "name")
		if s.single() {
			args = slices.Delete(args, i+1, i+2)
		}
	}
	if s.verb == Logs {
		args = append([]string{"pod"}, args...)
	}
	if i := slices.Index(args, "kind"); i >= 0 && s.refs == chosenNodes {
		args = slices.Delete(args, i, i+1)
	}
	return args
}

// Decode converts a tool call to an operation and validates it. Member names are exact; null counts as absent, since
// models send it. The error is a *Fault.
func Decode(v Verb, arguments []byte) (Operation, error) {
	s := clusterSpecOf(v)
	if s == nil {
		return Operation{}, Refuse(UnknownVerb, "verb", "There is no tool %s.", Quote(string(v)))
	}
	if len(arguments) > 2*MaxManifest {
		return Operation{}, Refuse(TooLarge, "", "The arguments are over %d bytes.", 2*MaxManifest)
	}
	members, err := objectMembers(arguments)
	if err != nil {
		return Operation{}, err
	}
	allowed := s.arguments()
	for name := range members {
		if !slices.Contains(allowed, name) {
			return Operation{}, Refuse(UnknownFlag, name, "%s takes no %s; it takes %s.", v, Quote(name), strings.Join(allowed, ", "))
		}
	}
	maps.DeleteFunc(members, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	if pod, ok := members["pod"]; ok {
		if members["kind"] != nil || members["name"] != nil {
			return Operation{}, Refuse(InvalidArgument, "pod", "Give pod, or kind and name, not both.")
		}
		delete(members, "pod")
		members["kind"], members["name"] = json.RawMessage(`"pod"`), pod
	}
	if name, ok := members["name"]; ok {
		if members["names"] != nil {
			return Operation{}, Refuse(InvalidArgument, "names", "Give name or names, not both.")
		}
		delete(members, "name")
		members["names"] = slices.Concat([]byte("["), name, []byte("]"))
	}
	plain, err := json.Marshal(members)
	if err != nil {
		return Operation{}, Refuse(InvalidArgument, "", "The arguments are no JSON object.")
	}
	var o Operation
	if err := json.Unmarshal(plain, &o); err != nil {
		return Operation{}, Refuse(InvalidArgument, "", "An argument has the wrong type: %s.", strings.TrimPrefix(err.Error(), "json: "))
	}
	o.Verb = v
	if o.PatchType == JSONPatch {
		return Operation{}, Refuse(InvalidArgument, "patch_type", "patch_type must be one of strategic, merge; a JSON patch is for people, who see which entry of a list a number means.")
	}
	o = Normalize(o)
	return o, o.Validate()
}

// objectMembers parses a JSON object and refuses duplicate members: parsers disagree on which one counts.
func objectMembers(raw []byte) (map[string]json.RawMessage, error) {
	bad := Refuse(InvalidArgument, "", "The arguments are no JSON object.")
	members := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) == 0 {
		return members, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, bad
	}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, bad
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, bad
		}
		if _, twice := members[name]; twice {
			return nil, Refuse(InvalidArgument, name, "The argument %s comes twice.", Quote(name))
		}
		members[name] = value
	}
	if t, err := dec.Token(); err != nil || t != json.Delim('}') {
		return nil, bad
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, bad
	}
	return members, nil
}
