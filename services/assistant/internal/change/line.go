package change

import (
	"maps"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// kubectlLine returns the equivalent kubectl command line, for people: values that may be secret are removed. Several
// operations run until one fails, as with && in a shell.
func kubectlLine(ops []operation.Expanded) string {
	lines := make([]string, len(ops))
	for i, e := range ops {
		o := e.Operation
		if o.Verb == operation.SetEnv || o.Verb == operation.Annotate {
			o.Set = maps.Clone(o.Set)
			for name, value := range o.Set {
				o.Set[name] = redact.Value(name, value)
			}
		}
		if o.Patch != "" {
			o.Patch = redact.Typed(redactSteps(o))
		}
		if o.Manifest != "" {
			o.Manifest = redact.Typed(o.Manifest)
		}
		lines[i] = kubectl.Render(o)
	}
	return strings.Join(lines, " && ")
}

// redactSteps returns the patch of an operation, redacted. In a JSON patch the name that marks a secret is in the path,
// away from the value.
func redactSteps(o operation.Operation) string {
	if o.PatchType != operation.JSONPatch {
		return o.Patch
	}
	steps, err := operation.PatchSteps(o.Patch)
	if err != nil {
		return o.Patch // it was never valid, so it is redacted as text
	}
	for i, step := range steps {
		if text, ok := step.Value.(string); ok {
			steps[i].Value = redact.Value(step.Name(), text)
		}
	}
	text, err := operation.EncodeSteps(steps)
	if err != nil {
		return o.Patch
	}
	return text
}
