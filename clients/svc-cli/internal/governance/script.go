package governance

import (
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// An expression in a script is put into it as text before the shell reads it: its author can inject shell commands.

// scopes are the mappings in which env and the matrix of an expression are defined, the innermost first.
type scopes []*canon.Object

// isStrangeScript reports whether strangers may decide some of a script's text.
func (s scopes) isStrangeScript(script string) bool {
	rest := expression.ReplaceAllStringFunc(script, func(e string) string {
		if s.isStrange(e, 0) {
			return "${{"
		}
		return ""
	})
	return strings.Contains(rest, "${{") // or one that nothing closes
}

func (s scopes) isStrange(e string, depth int) bool {
	return slices.ContainsFunc(findOrigins(e), func(o origin) bool { return o.path != nil && s.isStrangePath(o.path, depth) })
}

// isStrangePath reports whether outsiders may control the content of a context. In doubt they may.
func (s scopes) isStrangePath(path []string, depth int) bool {
	member := func(i int) string {
		if i < len(path) {
			return path[i]
		}
		return "*"
	}
	switch path[0] {
	case "secrets", "vars", "inputs", "runner", "job", "strategy":
		return false
	case "github":
		switch member(1) {
		case "event":
			return isStrangeEvent(path[2:])
		case "head_ref", "*":
			return true
		}
		return false
	case "steps": // a step's output may contain an outsider's text
		return member(2) != "outcome" && member(2) != "conclusion"
	case "needs":
		return member(2) != "result"
	case "matrix":
		return s.isStrangeMatrix(depth)
	case "env":
		return s.isStrangeVariable(member(1), depth)
	}
	return true
}

// maxVariables limits how many variables are followed from one to the next.
const maxVariables = 10

func (s scopes) isStrangeText(v canon.Value, depth int) bool {
	return depth > maxVariables || anyText(v, func(text string) bool {
		return slices.ContainsFunc(expression.FindAllString(text, -1), func(e string) bool { return s.isStrange(e, depth+1) })
	})
}

func (s scopes) isStrangeMatrix(depth int) bool {
	for _, where := range s {
		if strategy, there := where.Get("strategy"); there {
			return s.isStrangeText(strategy, depth)
		}
	}
	return false
}

// isStrangeVariable: one that the file does not define was set by a step, from whatever it read.
func (s scopes) isStrangeVariable(name string, depth int) bool {
	for _, where := range s {
		variables, ok := memberValue(where, "env").(*canon.Object)
		if !ok {
			continue
		}
		for key, v := range variables.All() {
			if strings.EqualFold(key, name) {
				return s.isStrangeText(v, depth)
			}
		}
	}
	return true
}

// The content of an event is controlled by outsiders, except for values that the repository's people decide or GitHub
// assigns: numbers, digests, times, states, and names without characters that a shell interprets.
var (
	ownEventParts = []string{"action", "inputs", "client_payload", "repository", "organization", "enterprise", "installation", "schedule", "ref", "before", "after"}
	plainMembers  = []string{"id", "node_id", "number", "sha", "head_sha", "merge_commit_sha", "login", "full_name", "type", "state", "state_reason", "status", "conclusion",
		"draft", "merged", "locked", "private", "fork", "created_at", "updated_at", "closed_at", "merged_at", "author_association", "run_number", "run_attempt", "workflow_id"}
)

func isStrangeEvent(path []string) bool {
	switch {
	case len(path) == 0:
		return true
	case slices.Contains(ownEventParts, path[0]), len(path) > 2 && path[0] == "pull_request" && path[1] == "base":
		return false
	case len(path) == 2 && path[1] == "html_url" && path[0] != "pages": // of numbers and names of repositories
		return false
	}
	return !slices.Contains(plainMembers, path[len(path)-1])
}

// addScripts notes whether a step, or the job around it, runs text that strangers may decide.
func (w *Workflow) addScripts(step *canon.Object, s scopes) {
	for _, key := range []string{"run", "shell"} {
		if text, ok := memberValue(step, key).(string); ok {
			w.UntrustedScript = w.UntrustedScript || s.isStrangeScript(text)
		}
	}
	// actions/github-script, and actions modelled on it, run their input.
	for _, v := range stepInputs(memberValue(step, "with"), "script") {
		text, ok := v.(string)
		w.UntrustedScript = w.UntrustedScript || !ok || s.isStrangeScript(text)
	}
}

// addJobInputs records outsiders' text that decides which image a job runs in, or that goes to a workflow which may put
// it into a script.
func (w *Workflow) addJobInputs(job *canon.Object, s scopes) {
	handed := []canon.Value{memberValue(job, "container"), memberValue(job, "services")}
	if _, calls := memberValue(job, "uses").(string); calls {
		handed = append(handed, memberValue(job, "with"))
	}
	for _, v := range handed {
		w.UntrustedScript = w.UntrustedScript || anyText(v, s.isStrangeScript)
	}
}
