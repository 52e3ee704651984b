package telemetry

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// namespaceLabels are the labels in which scrapers and log agents put a namespace.
var namespaceLabels = []string{"namespace", "exported_namespace", "kubernetes_namespace", "kubernetes_namespace_name", "k8s_namespace_name", "namespace_name", "kube_namespace"}

// matchers leave hidden namespaces out of a selector. A label that is not there is the
// empty text, which none of them is.
func (h Hidden) matchers() string {
	names := make([]string, len(h))
	for i, n := range h {
		names[i] = regexp.QuoteMeta(n)
	}
	none := "!~" + strconv.Quote(strings.Join(names, "|"))
	return strings.Join(namespaceLabels, none+",") + none
}

// close puts matchers against the hidden namespaces into every selector of a query, so
// that no function which renames or adds up what was selected can show it. metrics
// tells PromQL, where a name alone selects, from LogQL. What it does not understand it
// closes too: the store then refuses a query, and shows nothing more.
func (h Hidden) close(query string, metrics bool) (string, error) {
	if len(h) == 0 {
		return query, nil
	}
	matchers := h.matchers()
	var b strings.Builder
	operand := false  // the last token ends an operand
	compares := false // the last token compares
	for rest := query; rest != ""; {
		token := rest[:tokenLength(rest)]
		rest = rest[len(token):]
		next := strings.TrimLeft(skipComments(rest), " \t\r\n")
		switch c := token[0]; {
		case c == '#' || strings.IndexByte(" \t\r\n", c) >= 0:
			b.WriteString(token)
			continue
		case c == '{':
			end := indexOutside(rest, '}')
			if end < 0 {
				return "", operation.Refuse(operation.InvalidArgument, "query", "A selector is not closed.")
			}
			inside := rest[:end]
			if hasAlternatives(inside) {
				return "", operation.Refuse(operation.InvalidArgument, "query", "A selector with alternatives cannot be asked here: some namespaces are closed. Write one selector for each.")
			}
			b.WriteString("{" + matchers)
			if strings.TrimSpace(skipComments(inside)) != "" {
				b.WriteString(",")
			}
			b.WriteString(inside + "}")
			rest, operand = rest[end+1:], true
		case !metrics:
			b.WriteString(token)
		case c == '[':
			end := indexOutside(rest, ']')
			if end < 0 {
				return "", operation.Refuse(operation.InvalidArgument, "query", "A range is not closed.")
			}
			b.WriteString(token + rest[:end+1])
			rest, operand = rest[end+1:], true
		case isWord(c):
			b.WriteString(token)
			word := strings.ToLower(token)
			switch {
			case labelLists[word] && strings.HasPrefix(next, "("):
				// Labels, which are no selectors; whether an operand has ended stays.
				end := indexOutside(rest, ')')
				if end < 0 {
					return "", operation.Refuse(operation.InvalidArgument, "query", "A list of labels is not closed.")
				}
				b.WriteString(rest[:end+1])
				rest = rest[end+1:]
			case operand:
				operand = false // and, offset etc.
			case strings.HasPrefix(next, "("), strings.HasPrefix(next, "{"):
				// A function, or a name whose braces come next.
			case isAggregationNext(next):
				// sum by (…) (…)
			case word == "inf" || word == "nan":
				operand = true
			case word == "bool" && compares && next != "" && (isWord(next[0]) || strings.IndexByte("({.0123456789+-", next[0]) >= 0):
			default:
				b.WriteString("{" + matchers + "}")
				operand = true
			}
		default:
			b.WriteString(token)
			operand = c == ')' || c == '"' || c == '\'' || c == '`' || c >= '0' && c <= '9' || c == '.' && len(token) > 1
		}
		compares = strings.IndexByte("=!<>", token[0]) >= 0
	}
	return b.String(), nil
}

// labelLists are the words of PromQL that lists of labels follow.
var labelLists = map[string]bool{"by": true, "without": true, "on": true, "ignoring": true, "group_left": true, "group_right": true}

var aggregation = regexp.MustCompile(`^(?i:by|without)[ \t\r\n]*\(`)

// isAggregationNext reports whether the labels of an aggregation come next, so that the word
// before them is its name.
func isAggregationNext(next string) bool { return aggregation.MatchString(next) }

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == ':'
}

// tokenLength is the length of the token that a text begins with: a string, comment,
// word, number, run of blanks or single byte.
func tokenLength(s string) int {
	while := func(in func(c byte) bool) int {
		for i := range len(s) {
			if !in(s[i]) {
				return i
			}
		}
		return len(s)
	}
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	switch c := s[0]; {
	case c == '"' || c == '\'' || c == '`':
		return stringLength(s)
	case c == '#':
		return while(func(c byte) bool { return c != '\n' })
	case isWord(c):
		return while(func(c byte) bool { return isWord(c) || digit(c) })
	case digit(c) || c == '.':
		return while(func(c byte) bool { return isWord(c) && c != ':' || digit(c) || c == '.' })
	}
	return 1
}

// stringLength is the length of a string with its quotes; one without an end takes the
// rest, as the store refuses it.
func stringLength(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return i + 1
		case s[i] == '\\' && s[0] != '`':
			i++
		}
	}
	return len(s)
}

// indexOutside is where the first such byte is that stands outside of strings and comments; -1
// if it is not there, or a brace opens before it.
func indexOutside(s string, closes byte) int {
	for i := 0; i < len(s); i += tokenLength(s[i:]) {
		switch s[i] {
		case closes:
			return i
		case '{':
			return -1
		}
	}
	return -1
}

// hasAlternatives finds the or between matchers, which some stores have beyond PromQL.
func hasAlternatives(inside string) bool {
	for i := 0; i < len(inside); {
		n := tokenLength(inside[i:])
		next := strings.TrimLeft(skipComments(inside[i+n:]), " \t\r\n")
		if strings.EqualFold(inside[i:i+n], "or") && !strings.HasPrefix(next, "=") && !strings.HasPrefix(next, "!") {
			return true
		}
		i += n
	}
	return false
}

// skipComments leaves out the comments and blanks that a text begins with.
func skipComments(s string) string {
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		if !strings.HasPrefix(s, "#") {
			return s
		}
		s = s[tokenLength(s):]
	}
}

// reveals reports whether one of the label values is a hidden namespace.
func (h Hidden) reveals(values []string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return slices.Contains(h, v) })
}
