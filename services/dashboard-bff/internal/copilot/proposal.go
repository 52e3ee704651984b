package copilot

import (
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
)

// Limits of proposals.
const (
	maxProposals = 10
	maxCommand   = 1000 // bytes of one
)

// parseProposals finds the commands of an answer: lines of its code blocks and its code spans that are one whole mlp
// or kubectl command each. Nothing runs them; requiresApproval shows the reader whether they would change something.
func parseProposals(answer string) []api.Proposal {
	proposals, seen := []api.Proposal{}, map[string]bool{}
	for _, code := range findCode(answer) {
		command := strings.TrimSpace(code)
		command = strings.TrimSpace(strings.TrimPrefix(command, "$ ")) // a shell's prompt
		words, ok := splitCommand(command)
		if !ok || seen[command] {
			continue
		}
		seen[command] = true
		proposals = append(proposals, api.Proposal{Command: command, RequiresApproval: !isRead(words)})
		if len(proposals) == maxProposals {
			break
		}
	}
	return proposals
}

// findCode returns the lines of the code blocks and the code spans of a Markdown text, in order.
func findCode(answer string) []string {
	source := []byte(answer)
	var found []string
	_ = ast.Walk(goldmark.DefaultParser().Parse(text.NewReader(source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node.Kind() {
		case ast.KindCodeBlock, ast.KindFencedCodeBlock:
			lines := node.Lines()
			for i := range lines.Len() {
				line := lines.At(i)
				found = append(found, string(line.Value(source)))
			}
			return ast.WalkSkipChildren, nil
		case ast.KindCodeSpan:
			var span strings.Builder
			for child := node.FirstChild(); child != nil; child = child.NextSibling() {
				if t, ok := child.(*ast.Text); ok {
					span.Write(t.Segment.Value(source))
				}
			}
			found = append(found, span.String())
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	return found
}

// special are the characters by which a shell does more than start one program: pipes, redirections, lists,
// substitutions, patterns, escapes, comments.
const special = "|&;<>()$`\\*?[]{}#!~"

// splitCommand splits a line as a shell would, if it is one mlp or kubectl command without shell syntax. Characters
// that are invisible, or change the order of visible ones, are refused: the reader must see the actual command.
func splitCommand(line string) (words []string, ok bool) {
	if len(line) > maxCommand {
		return nil, false
	}
	var word strings.Builder
	inWord, quote := false, rune(0)
	for _, r := range line {
		switch {
		case r == unicode.ReplacementChar || r != '\t' && !unicode.IsPrint(r):
			return nil, false
		case quote == '\'' && r != '\'', quote == '"' && !strings.ContainsRune("\"$`\\!", r):
			word.WriteRune(r)
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0, strings.ContainsRune(special, r):
			return nil, false
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			if inWord {
				words, inWord = append(words, word.String()), false
				word.Reset()
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	ok = quote == 0 && len(words) > 1 && (words[0] == "mlp" || words[0] == "kubectl")
	return words, ok
}

// isRead reports whether a command is on the list of those that only read. Anything else, a new verb or an unknown
// option, counts as a change.
func isRead(words []string) bool {
	rules := readRules[words[0]]
	args, ok := dropOptions(words[1:], rules)
	if !ok {
		return false
	}
	for _, verb := range rules.verbs {
		if n := len(verb.words); len(args) >= n && slices.Equal(args[:n], verb.words) && (verb.most < 0 || len(args)-n <= verb.most) {
			return !namesSecret(args[n:])
		}
	}
	return false
}

// dropOptions leaves the words that are no options; false for an option that is not listed, or has a value that
// is not.
func dropOptions(words []string, rules commandRules) (args []string, ok bool) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		if !strings.HasPrefix(word, "-") {
			args = append(args, word)
			continue
		}
		name, value, inline := strings.Cut(word, "=")
		switch {
		case slices.Contains(rules.switches, name):
			if inline && value != "true" && value != "false" {
				return nil, false
			}
		case slices.Contains(rules.options, name):
			if !inline {
				if i++; i == len(words) {
					return nil, false
				}
				value = words[i]
			}
			if (name == "-o" || name == "--output") && !slices.Contains(rules.formats, value) {
				return nil, false // others read templates from files
			}
		default:
			return nil, false
		}
	}
	return args, true
}

// namesSecret reports whether arguments name the kind of objects whose reading shows credentials.
func namesSecret(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(strings.ToLower(arg), "secret") })
}
