package chat

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Context is the context that a client sent in groups before the query.
type Context struct {
	Namespace   string // "" or a name that a namespace can have
	KubeContext string // "" or the client's name for its cluster
	// Unusable lists the keys whose values are invalid.
	Unusable []string
}

const (
	groupOpen = "[context:"
	// maxContextValue limits a value, in bytes; it exceeds the longest namespace name and the cluster names of cloud
	// providers.
	maxContextValue = 512
)

// CutContext removes leading groups like [context: namespace=shop] from a query and returns the rest, trimmed. A group
// has one or more key=value entries, separated by blanks or commas; for a repeated key the last value counts, and
// unknown keys are dropped. Anything that is not entirely such a group belongs to the query.
func CutContext(text string) (Context, string) {
	var c Context
	rest := strings.TrimSpace(text)
	for {
		group, after, ok := cutGroup(rest)
		if !ok {
			return c, rest
		}
		for _, pair := range group {
			c.set(pair[0], pair[1])
		}
		rest = strings.TrimSpace(after)
	}
}

func cutGroup(s string) (pairs [][2]string, after string, ok bool) {
	if len(s) < len(groupOpen) || !strings.EqualFold(s[:len(groupOpen)], groupOpen) {
		return nil, s, false
	}
	inner, after, ok := strings.Cut(s[len(groupOpen):], "]")
	if !ok || strings.ContainsAny(inner, "\r\n") {
		return nil, s, false
	}
	for word := range strings.FieldsFuncSeq(inner, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' }) {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, s, false
		}
		pairs = append(pairs, [2]string{strings.ToLower(key), value})
	}
	return pairs, after, len(pairs) > 0
}

func (c *Context) set(key, value string) {
	switch key {
	case "namespace":
		if len(validation.IsDNS1123Label(value)) == 0 {
			c.Namespace = value
			return
		}
	case "kube_context":
		if value != "" && len(value) <= maxContextValue {
			c.KubeContext = value
			return
		}
	default:
		return
	}
	if value != "" && !slices.Contains(c.Unusable, key) {
		c.Unusable = append(c.Unusable, key)
	}
}
