package change

import (
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// setUnschedulable cordons or uncordons a node.
func setUnschedulable(c *call, closed bool) {
	c.done = "uncordoned"
	var value any // null removes it; the server omits false anyway
	if closed {
		c.done, value = "cordoned", true
	}
	c.body = nestValue(value, "spec", "unschedulable")
}

// setTaints computes the whole list, since the server merges taints by key only.
func setTaints(c *call, op operation.Operation) error {
	taints := slices.Clone(objectsAt(c.live.Object, "spec", "taints"))
	for _, text := range op.RemoveTaints {
		gone, err := operation.ParseTaint(text, true)
		if err != nil {
			return err
		}
		kept := slices.DeleteFunc(slices.Clone(taints), func(t object) bool {
			return t["key"] == gone.Key && (gone.Effect == "" || t["effect"] == gone.Effect)
		})
		if len(kept) == len(taints) {
			return operation.Refuse(operation.NotFound, "remove_taints", "%s has no taint %s.", c.ref, operation.Quote(text))
		}
		taints = kept
	}
	for _, text := range op.Taints {
		t, err := operation.ParseTaint(text, false)
		if err != nil {
			return err
		}
		fresh := object{"key": t.Key, "effect": t.Effect}
		if t.Value != "" {
			fresh["value"] = t.Value
		}
		i := slices.IndexFunc(taints, func(old object) bool { return old["key"] == t.Key && old["effect"] == t.Effect })
		switch {
		case i < 0:
			taints = append(taints, fresh)
		case textAt(taints[i], "value") == t.Value:
		case !op.Overwrite:
			return operation.Refuse(operation.InvalidArgument, "overwrite", "%s already has a taint %s with effect %s; request an overwrite to replace it.", c.ref, operation.Quote(t.Key), t.Effect)
		default:
			taints[i] = fresh
		}
	}
	list := make([]any, len(taints))
	for i, t := range taints {
		list[i] = t
	}
	c.body, c.done = nestValue(list, "spec", "taints"), "tainted"
	return nil
}

// toleratesTaint reports whether a pod stays on a node with this NoExecute taint.
func toleratesTaint(pod object, t operation.ParsedTaint) bool {
	return slices.ContainsFunc(objectsAt(pod, "spec", "tolerations"), func(o object) bool {
		if effect := textAt(o, "effect"); effect != "" && effect != t.Effect {
			return false
		}
		key := textAt(o, "key")
		if strings.EqualFold(textAt(o, "operator"), "Exists") {
			return key == "" || key == t.Key
		}
		return key == t.Key && textAt(o, "value") == t.Value
	})
}
