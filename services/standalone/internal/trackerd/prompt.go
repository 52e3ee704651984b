package trackerd

import (
	"maps"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

// A prompt is a registered model with this tag, whose versions hold a text in a tag in place of files. Searches leave
// prompts out unless the filter includes them, and no model webhook receives their events. So the tag is set when the
// name is made and never changes: otherwise a client that sets a tag could hide a model.
const promptTag = store.PromptTag

// promptSources replace the source of a prompt's version, which has no files.
var promptSources = []string{"dummy-source", "prompt-template"}

func isPrompt(tags store.Tags) bool { return strings.EqualFold(tags[promptTag], "true") }

func kindOf(prompt bool) string {
	if prompt {
		return "prompt"
	}
	return "registered model"
}

// keepsKind refuses a change of tags that would turn a prompt into a model or the reverse.
func keepsKind(before, after store.Tags) error {
	if was := isPrompt(before); was != isPrompt(after) {
		return invalidParameter("The tag '%s' is given when a name is made and cannot be changed afterwards: this is a %s.", promptTag, kindOf(was))
	}
	return nil
}

// withoutTag is a copy of tags without one of them, which need not be there.
func withoutTag(tags store.Tags, key string) (store.Tags, error) {
	left := orEmptyTags(maps.Clone(tags))
	delete(left, key)
	return left, keepsKind(tags, left)
}

// promptOrigin is the origin of a version of the prompt name.
func promptOrigin(o origin) (origin, error) {
	if !slices.Contains(promptSources, o.source) {
		return o, invalidParameter("Invalid prompt source: '%s'. Prompt sources must use an MLflow placeholder.", clipValue(o.source))
	}
	o.download = o.source
	return o, nil
}
