package kubectl

import (
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// readRefs parses KIND NAME… or KIND/NAME…; the two forms do not mix.
func readRefs(o *operation.Operation, words []string) error {
	if len(words) == 0 {
		return nil // Validate reports the missing words
	}
	slashes := 0
	for _, w := range words {
		if strings.Contains(w, "/") {
			slashes++
		}
	}
	switch slashes {
	case 0:
		o.Kind, o.Names = words[0], words[1:]
	case len(words):
		o.Names = words
	default:
		return operation.Refuse(operation.InvalidArgument, "names", "Write either kind name or kind/name, not both.")
	}
	return nil
}

// readPod parses the object of logs, a pod unless a kind is given.
func readPod(o *operation.Operation, words []string) error {
	if len(words) == 0 {
		return nil
	}
	return useOneWord(words, "pod", func(w string) {
		o.Kind, o.Names = "pod", []string{w}
		if strings.Contains(w, "/") {
			o.Kind = ""
		}
	})
}

// readNodes parses NAME… or node/NAME….
func readNodes(o *operation.Operation, words []string) error {
	for _, w := range words {
		kind, name, slash := strings.Cut(w, "/")
		if !slash {
			o.Names = append(o.Names, w)
			continue
		}
		if kind != "node" && kind != "nodes" && kind != "no" {
			return operation.Refuse(operation.InvalidArgument, "names", "%s is no node.", operation.Quote(w))
		}
		o.Names = append(o.Names, name)
	}
	o.Kind = "node"
	return nil
}

// readTaints parses node NAME… TAINT…, or node/NAME… TAINT….
func readTaints(o *operation.Operation, words []string) error {
	names, rest := untilPair(words, ":")
	if len(names) > 0 && !strings.Contains(names[0], "/") {
		if names[0] != "node" && names[0] != "nodes" && names[0] != "no" {
			return operation.Refuse(operation.InvalidArgument, "kind", "Only nodes have taints: kubectl taint node NAME key=value:Effect.")
		}
		names = names[1:]
	}
	for _, w := range rest {
		if key, ok := strings.CutSuffix(w, "-"); ok {
			o.RemoveTaints = append(o.RemoveTaints, key)
		} else {
			o.Taints = append(o.Taints, w)
		}
	}
	return readNodes(o, names)
}

// readPairs parses one ref followed by name=value or name- words.
func readPairs(o *operation.Operation, words []string) error {
	names, rest := untilPair(words, "")
	if err := readRefs(o, names); err != nil {
		return err
	}
	var set []string
	for _, w := range rest {
		key, removes := strings.CutSuffix(w, "-")
		switch {
		case strings.Contains(w, "="):
			set = append(set, w)
		case removes:
			o.Remove = append(o.Remove, key)
		default:
			return operation.Refuse(operation.InvalidArgument, "set", "%s is neither name=value nor name-.", operation.Quote(w))
		}
	}
	if len(set) == 0 {
		return nil
	}
	m, err := parseAssignments(set)
	if err != nil {
		return err
	}
	if o.Verb == operation.SetImage {
		o.Images = m
	} else {
		o.Set = m
	}
	return nil
}

// untilPair separates objects from assignments: no kind or name contains an equals sign or ends in a dash. more lists
// further characters that no object contains.
func untilPair(words []string, more string) (names, rest []string) {
	for i, w := range words {
		if strings.ContainsAny(w, "="+more) || strings.HasSuffix(w, "-") {
			return words[:i], words[i:]
		}
	}
	return words, nil
}

// readRight parses ACTION KIND[/NAME], or nothing with --list.
func readRight(o *operation.Operation, words []string, list bool) error {
	if list != (len(words) == 0) || len(words) == 1 || len(words) > 2 {
		return operation.Refuse(operation.MissingArgument, "action", "Write kubectl auth can-i VERB KIND, or --list.")
	}
	if list {
		return nil
	}
	o.Action, o.Kind = words[0], words[1]
	if strings.Contains(words[1], "/") {
		o.Kind, o.Names = "", words[1:]
	}
	return nil
}
