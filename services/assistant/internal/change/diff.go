package change

import (
	"fmt"
	"maps"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

const (
	// maxDiff limits the diff stored with an action.
	maxDiff = 64 << 10
	// maxGone limits the deleted objects that are shown in full; more are only named.
	maxGone = 3
)

// diffChanges shows the change of each object as a unified diff of YAML. Possibly secret values
// are redacted first.
func diffChanges(changes []guard.Change) string {
	gone := 0
	for _, c := range changes {
		if c.After == nil {
			gone++
		}
	}
	var b strings.Builder
	for _, c := range changes {
		if b.Len() > maxDiff {
			fmt.Fprintf(&b, "# the diff is cut at %d bytes\n", maxDiff)
			break
		}
		if c.After == nil && gone > maxGone {
			fmt.Fprintf(&b, "- %s\n", c.Ref)
			continue
		}
		b.WriteString(diffObject(c))
	}
	if b.Len() > maxDiff+1<<10 {
		return strings.ToValidUTF8(b.String()[:maxDiff], "") + fmt.Sprintf("\n# the diff is cut at %d bytes\n", maxDiff)
	}
	return b.String()
}

func diffObject(c guard.Change) string {
	from, to := "live "+c.Ref.String(), "result"
	switch {
	case c.Before == nil:
		from = "nothing yet"
		to = "new " + c.Ref.String()
	case c.After == nil:
		to = "deleted"
	}
	text := udiff.Unified(from, to, renderObject(c.Before), renderObject(c.After))
	if text == "" && c.Before != nil && c.After != nil && !sameWanted(c.Before, c.After) {
		return fmt.Sprintf("--- %s\n+++ %s\n# only values differ that are not shown\n", from, to)
	}
	return text
}

// renderObject renders an object as YAML, without server-managed fields and secrets.
func renderObject(o object) string {
	if o == nil {
		return ""
	}
	o = runtime.DeepCopyJSON(withoutServerFields(o))
	if meta, ok := o["metadata"].(object); ok {
		if annotations, ok := meta["annotations"].(object); ok {
			// It repeats the object in one line.
			maps.DeleteFunc(annotations, func(name string, _ any) bool { return name == corev1.LastAppliedConfigAnnotation })
			if len(annotations) == 0 {
				delete(meta, "annotations")
			}
		}
	}
	redact.Object(o)
	text, err := yaml.Marshal(o)
	if err != nil {
		return "# cannot be shown\n" // cannot be: it came from JSON
	}
	return string(text)
}
