package question

import (
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// describable are the changes whose object may be described instead of named: "restart what keeps crashing". None is
// permanent, so a description that fits the wrong object does no harm before a person sees its name.
var describable = map[operation.Verb]bool{operation.Restart: true, operation.Undo: true, "roll": true}

var (
	// describers are words of a description that name no state themselves.
	describers = Words("that which who is are was has have been keeps keep kept being always constantly still again often repeatedly over and all the time so much now currently continuously randomly forever")
	// placeholders are the words for the described object.
	placeholders = Words("thing things one ones stuff whatever what anything something everything guy guys app apps workload workloads pod pods deployment deployments service services container containers")
	// descriptions are words for bad states that name no symptom.
	descriptions = Words("broken failing failed fails fail unhealthy stuck dead down flaky hanging hangs unready sick")
)

// takeDescription removes the description of an object from a request: "the thing that keeps crashing in shop" becomes
// "the in shop", with the symptoms it describes. Without a description, or with a name beside it, the words stay
// unchanged.
func takeDescription(rest []word) (kept []word, described string, several, is bool) {
	if !beginsDescription(rest) {
		return rest, "", false, false
	}
	var telling []string
	states, objects := 0, 0
	for i := 0; i < len(rest); i++ {
		w := rest[i]
		switch {
		case w.quoted:
			return rest, "", false, false
		case isDescribing(w.low):
			states++
			telling = append(telling, w.low)
		case describers[w.low], placeholders[w.low]:
			several = several || w.low == "everything"
			if placeholders[w.low] || w.low == "which" || w.low == "that" {
				objects++
			}
			if kindOf(w.low) != "" {
				kept = append(kept, w)
			}
		default:
			kept = append(kept, w)
		}
	}
	if states == 0 || objects == 0 {
		return rest, "", false, false
	}
	return kept, strings.Join(telling, " "), several, true
}

// beginsDescription reports whether the words after a verb of change may describe its object: "restart failed" reports
// a result, "restart failing pods" is a request.
func beginsDescription(rest []word) bool {
	for len(rest) > 0 && (rest[0].low == "back" || rest[0].low == "out") {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return false
	}
	first := rest[0].low
	return articles[first] && first != "not" || placeholders[first] || severals[first] || kindOf(first) != "" || first == "any" || isDescribing(first) && strings.HasSuffix(first, "ing")
}

// isDescribing reports whether a word describes the state of an object, such as crashing.
func isDescribing(low string) bool {
	if kindOf(low) != "" || fillers[low] && low != "down" && low != "restarting" {
		return false
	}
	for _, s := range symptomsOf(low) {
		switch s {
		case Crash, Memory, Pending, NotStarting:
			return true
		}
	}
	return descriptions[low]
}
