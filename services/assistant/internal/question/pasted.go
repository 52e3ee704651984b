package question

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Members of log lines, events and alerts as people paste them: what happened, to what, and where. The cluster has no
// answer about their other members.
var (
	pastedTexts  = setOf("message msg error err reason detail description summary title exception")
	pastedNames  = setOf("pod pod_name podname app service svc deployment workload container container_name host upstream target statefulset daemonset job cronjob node name")
	pastedPlaces = setOf("namespace ns namespace_name")
	pastedParts  = setOf("involvedobject regarding metadata labels kubernetes")
)

// readPasted turns a JSON object at the beginning of a message into the words of a question; ok: there was one. The
// question is why, so that text in the object is never a request.
func readPasted(message string) (words string, ok bool) {
	text := strings.TrimSpace(message)
	if !strings.HasPrefix(text, "{") {
		return "", false
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var object map[string]any
	if d.Decode(&object) != nil || len(object) == 0 {
		return "", false
	}
	rest := text[d.InputOffset():]
	if changeWordExpr.MatchString(strings.ToLower(rest)) {
		return "", false // a user's words about it may be a request
	}
	said, place := flattenPasted(object, 0)
	words = "why " + strings.Join(said, " ")
	if place != "" {
		words += " in namespace " + place
	}
	return words + " " + strings.TrimSpace(rest), true
}

// flattenPasted collects the texts of an object, and the last namespace that it names.
func flattenPasted(object map[string]any, depth int) (said []string, place string) {
	const deepest = 3
	for _, key := range slices.Sorted(maps.Keys(object)) {
		low := strings.ToLower(key)
		switch value := object[key].(type) {
		case string:
			switch {
			case pastedPlaces[low]:
				place = value
			case pastedTexts[low], pastedNames[low]:
				said = append(said, value)
			}
		case json.Number:
			if n, err := value.Int64(); err == nil && n >= 400 && n < 600 && strings.HasPrefix(low, "status") {
				said = append(said, fmt.Sprintf("status %d", n))
			}
		case map[string]any:
			if pastedParts[low] && depth < deepest {
				more, at := flattenPasted(value, depth+1)
				said = append(said, more...)
				if at != "" {
					place = at
				}
			}
		}
	}
	return said, place
}
