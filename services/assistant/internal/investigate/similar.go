package investigate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
	"github.com/mlp-platform/platform/services/assistant/internal/spelling"
)

// similarNames returns existing names similar to an unknown one, nearest first.
func similarNames(s *engine.Snapshot, namespace string, m question.Mention) []operation.Ref {
	const most = 5
	type candidate struct {
		ref operation.Ref
		far int
	}
	var all []candidate
	for _, o := range nameableObjects(s) {
		if !withinNamespace(o.ref, namespace) || o.ref.Kind == "ReplicaSet" || m.Kind == "" && quiet[o.ref.Kind] || o.ref.Kind == "Pod" && m.Kind != "pod" {
			continue
		}
		far := spelling.Distance(m.Name, o.ref.Name)
		switch {
		case strings.HasPrefix(m.Name, o.ref.Name+"-"), strings.HasPrefix(o.ref.Name, m.Name):
			far = 1
		case o.ref.Name == m.Name:
			far = 0 // of another kind
		case far > max(1, len(m.Name)/3):
			if namespace == "" || !sharesPart(m.Name, o.ref.Name) {
				continue
			}
			far = farParts
		}
		if m.Kind != "" && far > 0 && !strings.EqualFold(m.Kind, o.ref.Kind) {
			far++
		}
		all = append(all, candidate{o.ref, far})
	}
	if slices.ContainsFunc(all, func(c candidate) bool { return c.far < farParts }) {
		all = slices.DeleteFunc(all, func(c candidate) bool { return c.far >= farParts })
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.far, b.far) })
	var found []operation.Ref
	for _, c := range all[:min(len(all), most)] {
		found = append(found, c.ref)
	}
	return found
}

// farParts is the distance of names that only share a part.
const farParts = 100

// ordinaryParts are parts of names that do not identify an object.
var ordinaryParts = strings.Fields("app api web svc service server worker job db the prod dev test main deployment pod")

// sharesPart reports whether two names share a distinctive part, or consist of the same parts.
func sharesPart(a, b string) bool {
	of, with := strings.FieldsFunc(a, isSeparator), strings.FieldsFunc(b, isSeparator)
	for _, x := range of {
		for _, y := range with {
			short, long := x, y
			if len(short) > len(long) {
				short, long = long, short
			}
			if len(short) >= 3 && strings.HasPrefix(long, short) && !slices.Contains(ordinaryParts, short) {
				return true
			}
		}
	}
	slices.Sort(of)
	slices.Sort(with)
	return slices.Equal(of, with)
}

func isSeparator(r rune) bool { return r == '-' || r == '.' }
