package governance_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/governance"
)

// scriptText is a workflow that strangers trigger, whose one step runs a script.
func scriptText(script string) string {
	return "on: issues\njobs:\n  a:\n    strategy: {matrix: {os: [linux, mac]}}\n    env: {TITLE: '${{ github.event.issue.title }}', NUMBER: '${{ github.event.issue.number }}', AGAIN: '${{ env.TITLE }}', LOOP: '${{ env.LOOP }}'}\n" +
		"    steps:\n    - run: |\n        " + script + "\n"
}

func TestScriptsOfStrangers(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]bool{
		"github.event.issue.title": true, "github.event.issue.body": true, "github.event.comment.body": true, "github.head_ref": true,
		"github.event.pull_request.head.ref": true, "github.event.pull_request.head.label": true, "github.event.pull_request.head.repo.default_branch": true,
		"github.event.commits[0].message": true, "github.event.head_commit.author.email": true, "github.event.pages.*.page_name": true, "github.event.pages[0].html_url": true,
		"github.event.workflow_run.head_branch": true, "github.event.workflow_run.display_title": true, "github.event.discussion.title": true, "github.event.review.body": true,
		"github.event.something.new": true, "GitHub.Event.Issue.Title": true, "github['event']['issue']['title']": true, "github.event[format('{0}', 'issue')].title": true,
		"github . event . issue . title": true, "toJSON(github.event)": true, "toJSON(github)": true, "github.event": true, "github.*": true, "format('{0}', github.event.issue.title)": true,
		"fromJSON(github.event.issue.body).sha": true, "(fromJSON(github.event.issue.body)).sha": true, "github.event.issue.title || 'x'": true, "github.event.issue && github.event.issue.title": true,
		"steps.a.outputs.title": true, "needs.b.outputs.x": true, "env.TITLE": true, "env.AGAIN": true, "env.UNKNOWN": true, "env.LOOP": true, "join(github.event.issue.labels.*.name, ',')": true,
		"(": true, "'": true, "github.event.issue.title ~ 1": true, "github.sha github.ref": true, "format(": true, strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000): true,

		"github.event.issue.number": false, "github.event.pull_request.head.sha": false, "github.event.pull_request.base.ref": false, "github.sha": false, "github.actor": false,
		"github.event.sender.login": false, "github.event.comment.html_url": false, "github.event.repository.default_branch": false, "github.event.workflow_run.id": false,
		"github.event.workflow_run.pull_requests[0].number": false, "github.event.inputs.name": false, "inputs.name": false, "secrets.TOKEN": false, "vars.X": false, "matrix.os": false,
		"runner.temp": false, "env.NUMBER": false, "steps.a.outcome": false, "needs.b.result": false, "github.event.issue.title == 'x'": false,
		"contains(github.event.issue.title, 'x') && 'yes' || 'no'": false, "!github.event.issue.title": false, "hashFiles('**/go.sum')": false, "1.5e3": false, "-1": false, "0xff": false,
		"'it''s'": false, "true": false, "null": false, "startsWith(github.head_ref, 'a')": false, "success() && always()": false, "github.event.label && 'x'": false,
	} {
		if w := parseWorkflow(t, scriptText("echo ${{ "+expr+" }}")); w.UntrustedScript != want {
			t.Errorf("%.100s: got %v, want %v", expr, w.UntrustedScript, want)
		}
	}
}

// Where text becomes a script, or decides what runs.
func TestPlacesOfScripts(t *testing.T) {
	t.Parallel()
	const title = "'${{ github.event.issue.title }}'"
	for text, want := range map[string]bool{
		"{steps: [{run: " + title + "}]}":                                                             true,
		"{steps: [{run: 'echo ${{ github.event.issue.title'}]}":                                       true,
		"{steps: [{uses: actions/github-script@v7, with: {script: " + title + "}}]}":                  true,
		"{steps: [{uses: actions/github-script@v7, with: {SCRIPT: " + title + "}}]}":                  true,
		"{container: {image: " + title + "}}":                                                         true,
		"{services: {db: {image: " + title + "}}}":                                                    true,
		"{uses: ./.github/workflows/x.yml, with: {title: " + title + "}}":                             true,
		"{strategy: {matrix: {x: [" + title + "]}}, steps: [{run: 'echo ${{ matrix.x }}'}]}":          true,
		"{steps: [{env: {T: " + title + "}, run: 'echo \"$T\"'}]}":                                    false,
		"{steps: [{env: {T: " + title + "}, run: 'echo ${{ env.t }}'}]}":                              true,
		"{env: {T: " + title + "}, steps: [{env: {T: plain}, run: 'echo ${{ env.T }}'}]}":             false,
		"{steps: [{uses: a/b@v1, with: {title: " + title + "}}]}":                                     false,
		"{steps: [{if: \"contains(github.event.issue.title, 'x')\", run: make}]}":                     false,
		"{uses: ./.github/workflows/x.yml, with: {number: '${{ github.event.issue.number }}'}}":       false,
		"{strategy: {matrix: {x: [a]}}, steps: [{run: 'echo ${{ matrix.x }} ${{ github.sha }}'}]}":    false,
		"{steps: [{uses: actions/github-script@v7, with: {script: 'console.log(context.payload)'}}]}": false,
	} {
		if w := parseWorkflow(t, "on: issues\njobs: {a: "+text+"}"); w.UntrustedScript != want {
			t.Errorf("%s: got %v, want %v", text, w.UntrustedScript, want)
		}
	}
}

// Whatever strangers cause with the repository's rights is an untrusted trigger, new events too.
func TestTriggersOfStrangers(t *testing.T) {
	t.Parallel()
	for on, want := range map[string]bool{
		"issues": true, "issue_comment": true, "discussion": true, "discussion_comment": true, "fork": true, "watch": true, "gollum": true, "pull_request_target": true,
		"workflow_run": true, "check_run": true, "check_suite": true, "some_new_event": true, "[push, issues]": true, "{issues: {types: [opened]}}": true,
		"push": false, "schedule": false, "workflow_dispatch": false, "repository_dispatch": false, "workflow_call": false, "release": false, "merge_group": false,
		"pull_request": false, "pull_request_review": false, "pull_request_review_comment": false, "[push, pull_request]": false,
	} {
		if w := parseWorkflow(t, "on: "+on+"\njobs: {a: {}}"); w.UntrustedTrigger != want {
			t.Errorf("%s: got %v, want %v", on, w.UntrustedTrigger, want)
		}
	}
}

// The guard finds the script even where there are no secrets: it runs with the token of the repository.
func TestScriptsOfStrangersFail(t *testing.T) {
	t.Parallel()
	o := readObservation(t, nil)
	w := parseWorkflow(t, scriptText("echo ${{ github.event.issue.title }}"))
	o.WorkflowSource = &w
	if got := guardOutcome(governance.Judge(o, "secret_bearing_dispatch"), "untrusted-pr-secret-isolation"); got != fail {
		t.Errorf("got %s, want %s", got, fail)
	}
}

// Whatever an expression is, it parses or counts as strangers' text.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{"github.event.issue.title", "a.b['c'].*[0] && !f(x, 'y''z') || 1e5 == (2)", "''''", "[[[", "f(,", "a..b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		script := "${{ github.event.issue.title || (" + expr + ") }}"
		w, err := governance.ParseWorkflow([]byte("on: issues\njobs: {a: {steps: [{run: " + strings.ReplaceAll(strconv.QuoteToASCII(script), `\x`, `\u00`) + "}]}}"))
		if err == nil && !w.UntrustedScript {
			t.Errorf("%q: got no text of strangers", script)
		}
	})
}
