package governance

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// The value of an expression or a variable is known only when the workflow runs. So a checkout counts as one of an
// outsider's head unless it names only literals of the file and values that the repository itself controls.

// ownValues are the expressions that no stranger decides, whatever the event.
var ownValues = []string{
	"github.sha", "github.ref", "github.ref_name", "github.base_ref", "github.workflow_sha", "github.repository",
	"github.event.repository.default_branch", "github.event.repository.full_name",
	"github.event.pull_request.base.sha", "github.event.pull_request.base.ref", "github.event.pull_request.base.repo.full_name",
	"github.server_url", "github.token", "github.workspace", "runner.temp",
}

var (
	expression = regexp.MustCompile(`\$\{\{(?s:.*?)\}\}`)
	setByOwner = regexp.MustCompile(`^(?:secrets|vars)\.[a-z0-9_-]+$`)
	plainText  = regexp.MustCompile(`^[A-Za-z0-9._/-]*$`)
	pullsHead  = regexp.MustCompile(`(?i)\brefs/pull/|\bpull/[^\s/]+/(?:head|merge)\b`)
)

// isOwn reports whether an expression consists only of ownValues, secrets, variables of the repository's settings and
// plain texts.
func isOwn(e string) bool {
	return !slices.ContainsFunc(findOrigins(e), func(o origin) bool {
		if o.path == nil {
			return !plainText.MatchString(o.text)
		}
		name := strings.Join(o.path, ".")
		return !slices.Contains(ownValues, name) && !setByOwner.MatchString(name)
	})
}

// stripExpressions removes the expressions from a text. own reports that no outsider controls any of them, and that the
// text itself does not name a pull request's head.
func stripExpressions(text string) (rest string, own bool) {
	own = !pullsHead.MatchString(text)
	rest = expression.ReplaceAllStringFunc(text, func(e string) string {
		own = own && isOwn(e)
		return ""
	})
	return rest, own && !strings.Contains(rest, "${{") // one that nothing closes
}

// mayBeHead reports whether an input of a checkout may evaluate to an outsider's head.
func mayBeHead(v canon.Value) bool {
	text, ok := v.(string)
	_, own := stripExpressions(text)
	return v != nil && !(ok && own)
}

// stepInputs returns the values in with under a name, which an action reads in any case.
func stepInputs(with canon.Value, name string) []canon.Value {
	var out []canon.Value
	switch with := with.(type) {
	case nil:
	case *canon.Object:
		for key, v := range with.All() {
			if strings.EqualFold(key, name) {
				out = append(out, v)
			}
		}
	default:
		out = append(out, with) // no mapping: it may hold anything
	}
	return out
}

var (
	continued = regexp.MustCompile("[\\\\`]\r?\n[ \t]*")
	pullFetch = regexp.MustCompile(`(?i)\bgh\b[^\n]*\bpr\s+(?:checkout|co)\b`)
	// Commands that bring commits into the working tree, or define where they come from.
	anyFetch = regexp.MustCompile(`(?i)\bgit\b[^\n]*[\s"',](?:clone|fetch|pull|checkout|checkout-index|switch|restore|worktree|reset|merge|rebase|cherry-pick|am|apply|archive|read-tree|remote|submodule)\b` +
		`|\bgh\b[^\n]*\brepo\s+(?:clone|sync|fork)\b`)
	// Variables that the runner sets, and no step otherwise.
	ownVariable = regexp.MustCompile(`^(?:GITHUB_(?:SHA|REF|REF_NAME|BASE_REF|REPOSITORY|SERVER_URL|WORKSPACE|ENV|OUTPUT|PATH|STEP_SUMMARY)|RUNNER_TEMP)$`)
	variable    = regexp.MustCompile(`\$(?:env:|\{)?([A-Za-z_][A-Za-z0-9_]*)\}?(\s*\+?=)?`)
	words       = regexp.MustCompile(`\w+`)
	// Ways for a value to come into a script that does not name it.
	fromOutside = regexp.MustCompile("(?m)[$`]|%[A-Za-z_][A-Za-z0-9_]*%|\\b(?:xargs|parallel|eval|source|environ|getenv|argv|process\\.env|ENV\\[)|--stdin\\b|--pathspec-from-file\\b|(?:^|[;&|])\\s*\\.\\s")
)

// mayFetchHead reports whether a script may fetch or check out an outsider's head by git or gh: it does so, and some of
// its external input is not controlled by the repository. Of the variables only those of the step itself are known: an
// earlier step may set the others.
func mayFetchHead(script string, env canon.Value) bool {
	script = continued.ReplaceAllString(script, " ")
	if pullFetch.MatchString(script) {
		return true
	}
	if !anyFetch.MatchString(script) {
		return false
	}
	rest, own := stripExpressions(script)
	variables, _ := env.(*canon.Object)
	names := map[string]bool{}
	rest = variable.ReplaceAllStringFunc(rest, func(reference string) string {
		m := variable.FindStringSubmatch(reference)
		value := memberValue(variables, m[1])
		if m[2] != "" || !ownVariable.MatchString(m[1]) && (value == nil || mayBeHead(value)) {
			return "$"
		}
		names[strings.ToLower(m[1])] = true
		return ""
	})
	changed := func(word string) bool { return names[strings.ToLower(word)] } // read H, for H in x
	return !own || fromOutside.MatchString(rest) || slices.ContainsFunc(words.FindAllString(rest, -1), changed)
}
