package operation

import (
	"reflect"
	"slices"
	"strings"
)

// Limits on one operation.
const (
	MaxNames    = 100
	MaxPairs    = 100
	MaxLimit    = 500
	MaxText     = 8 << 10  // a selector, query or value
	MaxValues   = 64 << 10 // all values of one operation together
	MaxManifest = 256 << 10
)

// Validate reports whether the operation is complete, in range, in normal form and without members of another verb. The
// error is a *Fault. No value that passes can be taken for a flag, a path or more than one word.
func (o Operation) Validate() error {
	s := specOf(o.Verb)
	if s == nil {
		return Refuse(UnknownVerb, "verb", "There is no operation %s.", Quote(string(o.Verb)))
	}
	present, err := o.present()
	if err != nil {
		return err
	}
	members := s.members()
	for _, name := range present {
		if name != "verb" && !slices.Contains(members, name) {
			return Refuse(UnknownFlag, name, "%s takes no %s.", o.Verb, name)
		}
	}
	for _, name := range s.required {
		if !slices.Contains(present, name) {
			return Refuse(MissingArgument, name, "%s needs %s.", o.Verb, name)
		}
	}
	if err := o.validRefs(s); err != nil {
		return err
	}
	if err := o.validScope(); err != nil {
		return err
	}
	if err := o.validArguments(); err != nil {
		return err
	}
	if n := Normalize(o); !reflect.DeepEqual(n, o) {
		return Refuse(InvalidArgument, "", "The operation is not in normal form.")
	}
	return nil
}

// present lists the JSON names of the members that are not zero.
func (o Operation) present() ([]string, error) {
	v := reflect.ValueOf(o)
	var names []string
	for i := range v.NumField() {
		f := v.Field(i)
		// An empty list or map would not survive the JSON form.
		if (f.Kind() == reflect.Slice || f.Kind() == reflect.Map) && f.Len() == 0 && !f.IsNil() {
			return nil, Refuse(InvalidArgument, "", "An empty list has no meaning; leave it out.")
		}
		if f.IsZero() {
			continue
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names, nil
}

func (o Operation) validRefs(s *spec) error {
	if s.refs == noRef {
		return nil
	}
	if len(o.Names) > MaxNames {
		return Refuse(TooLarge, "names", "At most %d names in one operation.", MaxNames)
	}
	if o.Kind == "" && len(o.Names) == 0 {
		if s.refs == maybeRef {
			return nil
		}
		return Refuse(MissingArgument, "kind", "%s needs a kind.", o.Verb)
	}
	if strings.Count(o.Kind, ",") >= MaxNames {
		return Refuse(TooLarge, "kind", "At most %d kinds in one operation.", MaxNames)
	}
	for _, n := range o.Names {
		if kind, name, slash := strings.Cut(n, "/"); o.Kind == "" && (!slash || kind == "" || name == "" || strings.Contains(kind, ",")) {
			return Refuse(InvalidArgument, "names", "%s must be kind/name.", Quote(n))
		}
	}
	for _, obj := range o.Objects() {
		if !validKind(obj.Kind) {
			return Refuse(InvalidArgument, "kind", "%s is no kind.", Quote(obj.Kind))
		}
		if obj.Name != "" && !ValidName(obj.Name) {
			return Refuse(InvalidArgument, "names", "%s is no object name.", Quote(obj.Name))
		}
	}
	if slices.Contains(o.Names, "") {
		return Refuse(InvalidArgument, "names", "A name is empty.")
	}
	return o.validCount(s)
}

func (o Operation) validCount(s *spec) error {
	if s.single() && (len(o.Names) > 1 || o.Kind == "" || strings.Contains(o.Kind, ",")) {
		return Refuse(InvalidArgument, "names", "%s takes one object at a time.", o.Verb)
	}
	selected := o.All || o.LabelSelector != "" || o.FieldSelector != ""
	switch s.refs {
	case oneRef, namedRefs:
		if len(o.Names) == 0 {
			return Refuse(MissingArgument, "names", "%s needs the name of an object.", o.Verb)
		}
	case maybeRef:
		if len(o.Names) == 0 && o.Verb != CanI {
			return Refuse(MissingArgument, "names", "%s needs a name with the kind.", o.Verb)
		}
	case oneNode:
		if !oneOf(o.Kind, podKinds) && !oneOf(o.Kind, nodeKinds) {
			return Refuse(InvalidArgument, "kind", "%s knows pods and nodes only.", o.Verb)
		}
		if selected && len(o.Names) > 0 {
			return Refuse(InvalidArgument, "names", "Give a name or a selector, not both.")
		}
	case anyRefs:
		if selected && len(o.Names) > 0 {
			return Refuse(InvalidArgument, "names", "Give names or a selector, not both.")
		}
	case chosenRefs, chosenNodes:
		if s.refs == chosenNodes && o.Kind != "node" {
			return Refuse(InvalidArgument, "kind", "%s works on kind node.", o.Verb)
		}
		if s.refs == chosenNodes && slices.ContainsFunc(o.Names, func(n string) bool { return strings.Contains(n, ":") }) {
			// In a taint line a colon distinguishes a taint from a node.
			return Refuse(InvalidArgument, "names", "A node name has no colon.")
		}
		if o.Verb == Evict && !oneOf(o.Kind, podKinds) {
			return Refuse(InvalidArgument, "kind", "Only pods can be evicted.")
		}
		if selected == (len(o.Names) > 0) {
			return Refuse(MissingArgument, "names", "%s needs names, a selector or all, and only one of these.", o.Verb)
		}
		if o.All && (o.LabelSelector != "" || o.FieldSelector != "") {
			return Refuse(InvalidArgument, "all", "Give a selector or all, not both.")
		}
	}
	return nil
}

func (o Operation) validScope() error {
	if o.Namespace != "" && !validLabel(o.Namespace) {
		return Refuse(InvalidArgument, "namespace", "%s is no namespace name.", Quote(o.Namespace))
	}
	if o.Namespace != "" && o.AllNamespaces {
		return Refuse(InvalidArgument, "all_namespaces", "Give a namespace or all of them, not both.")
	}
	if o.AllNamespaces && len(o.Names) > 0 && o.Verb != CanI {
		return Refuse(InvalidArgument, "all_namespaces", "An object by name is in one namespace.")
	}
	if err := validLabelSelector("label_selector", o.LabelSelector); err != nil {
		return err
	}
	if err := validLabelSelector("pod_selector", o.PodSelector); err != nil {
		return err
	}
	return validFieldSelector(o.FieldSelector)
}
