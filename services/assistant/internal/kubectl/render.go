package kubectl

import (
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Render returns the line that [Parse] parses back into the same operation, quoted for a POSIX shell. The operation
// must be valid; for an unknown verb it returns the bare verb.
func Render(o operation.Operation) string {
	o = o.AsPatch()
	c := commandOf(o.Verb)
	if c == nil {
		return string(o.Verb)
	}
	words := append([]string{}, c.words...)
	for _, w := range c.objects(o) {
		words = append(words, quoteWord(w))
	}
	words = append(words, c.fixed...)
	for _, f := range c.flags {
		words = append(words, f.write(&o)...)
	}
	if o.Verb == operation.CanI && o.Action == "" {
		words = append(words, "--list")
	}
	if c.args == expression {
		// Last, after --: a query may begin with a dash.
		words = append(words, "--", quoteWord(o.PromQL+o.LogQL))
	}
	line := strings.Join(words, " ")
	if o.Manifest != "" {
		line += " " + writeHeredoc(o.Manifest)
	}
	return line
}

func commandOf(v operation.Verb) *command {
	if v == operation.Get {
		v = operation.List
	}
	for i := range grammar {
		if grammar[i].verb == v {
			return &grammar[i]
		}
	}
	return nil
}

// objects returns the words besides the flags.
func (c *command) objects(o operation.Operation) []string {
	switch c.args {
	case refs:
		return refWords(o)
	case pod:
		if o.Kind == "pod" {
			return o.Names
		}
		return refWords(o)
	case nodes:
		return o.Names
	case nodesPairs:
		return append(append([]string{"node"}, o.Names...), formatChanges(nil, o.Taints, o.RemoveTaints)...)
	case pairs:
		set := o.Set
		if o.Verb == operation.SetImage {
			set = o.Images
		}
		return append(refWords(o), formatChanges(set, nil, o.Remove)...)
	case fieldPath:
		if o.Path == "" {
			return []string{o.Kind}
		}
		return []string{o.Kind + "." + o.Path}
	case right:
		if o.Action == "" {
			return nil
		}
		return append([]string{o.Action}, refWords(o)...)
	case jobName:
		return []string{o.NewName}
	case none, expression:
	}
	return nil
}

func refWords(o operation.Operation) []string {
	switch {
	case o.Kind == "":
		return o.Names
	case len(o.Names) == 0:
		return []string{o.Kind}
	case strings.Contains(o.Kind, ","):
		return append([]string{o.Kind}, o.Names...)
	}
	words := make([]string, 0, len(o.Names))
	for _, n := range o.Names {
		words = append(words, o.Kind+"/"+n)
	}
	return words
}

// formatChanges returns name=value words, then words as they are, then removals.
func formatChanges(set map[string]string, as, remove []string) []string {
	words := append(formatAssignments(set), as...)
	for _, r := range remove {
		words = append(words, r+"-")
	}
	return words
}
