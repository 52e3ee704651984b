package governance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/governance"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
)

const head = "on: push\npermissions: {contents: read}\n"

func parseWorkflow(t *testing.T, text string) governance.Workflow {
	t.Helper()
	w, err := governance.ParseWorkflow([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return w
}

func TestSampleWorkflows(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]governance.Workflow{
		"dispatch": {Permissions: "read", PersistCredentials: "disabled", Environments: []string{"dispatch"}, SecretsReferenced: true, Jobs: []string{"dispatch", "test"}},
		"risky": {Permissions: "write", PersistCredentials: "enabled", Pushes: true, UnpinnedActions: []string{"actions/checkout@v4"}, SecretsReferenced: true,
			UntrustedTrigger: true, UntrustedCheckout: true, Jobs: []string{"build"}},
	} {
		if got := parseWorkflow(t, string(samples.File("governance/"+name+".yml"))); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v; want reflect.DeepEqual(got, want)", name, got)
		}
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"on: push\njobs: {a: {}}":                                                                  "unset",
		"on: push\npermissions:\njobs: {a: {}}":                                                    "unset",
		"on: push\npermissions: {}\njobs: {a: {}}":                                                 "none",
		"on: push\npermissions: {issues: write}\njobs: {a: {}}":                                    "none",
		"on: push\npermissions: read-all\njobs: {a: {}}":                                           "read",
		"on: push\npermissions: write-all\njobs: {a: {}}":                                          "write",
		"on: push\npermissions: write-all\njobs: {a: {permissions: {contents: none}}}":             "none",
		"on: push\npermissions: {contents: none}\njobs: {a: {}, b: {permissions: read-all}}":       "read",
		"on: push\njobs: {a: {permissions: {contents: read}}, b: {}}":                              "unset",
		"on: push\njobs: {a: {permissions: {contents: write}}, b: {}, c: {permissions: read-all}}": "write",
	} {
		if w := parseWorkflow(t, text); w.Permissions != want || w.Pushes != (want == "write") {
			t.Errorf(`%s: %+v; want w.Permissions == want && w.Pushes == (want == "write")`, text, w)
		}
	}
}

// stepText is a workflow of one step, written in flow style.
func stepText(text string) string { return head + "jobs:\n  a:\n    steps:\n    - " + text + "\n" }

func TestSteps(t *testing.T) {
	t.Parallel()
	sha, digest := strings.Repeat("a", 40), "sha256:"+strings.Repeat("b", 64)
	unpinned := func(use string) func(governance.Workflow) bool {
		return func(w governance.Workflow) bool { return slices.Equal(w.UnpinnedActions, []string{use}) }
	}
	pinned := func(w governance.Workflow) bool { return len(w.UnpinnedActions) == 0 }
	persists := func(want string) func(governance.Workflow) bool {
		return func(w governance.Workflow) bool { return w.PersistCredentials == want }
	}
	pushes := func(w governance.Workflow) bool { return w.Pushes }
	quiet := func(w governance.Workflow) bool { return !w.Pushes }
	strange := func(w governance.Workflow) bool { return w.UntrustedCheckout }
	own := func(w governance.Workflow) bool { return !w.UntrustedCheckout }
	secret := func(w governance.Workflow) bool { return w.SecretsReferenced }
	open := func(w governance.Workflow) bool { return !w.SecretsReferenced }
	for _, c := range []struct {
		step string
		want func(governance.Workflow) bool
	}{
		{"uses: a/b@v1", unpinned("a/b@v1")},
		{"uses: a/b@" + sha[:39], unpinned("a/b@" + sha[:39])},
		{"uses: a/b@" + strings.ToUpper(sha), unpinned("a/b@" + strings.ToUpper(sha))},
		{"uses: '@" + sha + "'", unpinned("@" + sha)},
		{"uses: a/b/c@" + sha, pinned},
		{"uses: ./local", pinned},
		{"uses: docker://image:1", unpinned("docker://image:1")},
		{"uses: docker://image@" + digest, pinned},
		{"uses: docker://image@" + sha, unpinned("docker://image@" + sha)},
		{"uses: actions/checkout@" + sha, persists("enabled")},
		{"uses: Actions/Checkout@" + sha, persists("enabled")},
		{"{uses: actions/checkout@" + sha + ", with: {persist-credentials: false}}", persists("disabled")},
		{"{uses: actions/checkout@" + sha + ", with: {persist-credentials: 'False'}}", persists("disabled")},
		{"{uses: actions/checkout@" + sha + ", with: {persist-credentials: '${{ inputs.x }}'}}", persists("enabled")},
		{"{uses: actions/checkout@" + sha + ", with: {persist-credentials: false}}\n    - uses: actions/checkout@" + sha, persists("enabled")},
		{"uses: actions/checkout@" + sha + "\n    - {uses: actions/checkout@" + sha + ", with: {persist-credentials: false}}", persists("enabled")},
		{"uses: other/checkout@" + sha, persists("absent")},
		{"run: git push", pushes},
		{"run: cd x && git -C dir -c a=b push origin", pushes},
		{`run: "git \\\n  push"`, pushes},
		{"run: git pull", quiet},
		{"run: gitpush", quiet},
		{"run: git log --grep push", quiet},
		{"{uses: actions/checkout@" + sha + ", with: {ref: '${{ github.event.pull_request.head.sha }}'}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {ref: '${{ github.head_ref }}'}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {ref: 'refs/pull/1/merge'}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {repository: '${{ github.event.workflow_run.head_repository.full_name }}'}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {ref: main}}", own},
		{"{uses: actions/checkout@" + sha + ", with: {ref: \"${{ github.event['pull_request'].head.sha }}\"}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {ref: '${{ github . event . pull_request . head . sha }}'}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {ref: '${{ github.event.pull_request.*.sha }}'}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {ref: '${{ env.R }}'}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {ref: 'x-${{ steps.x.outputs.sha }}'}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {ref: '${{ github.sha }}', repository: \"${{ github['Repository'] }}\"}}", own},
		{"{run: 'git checkout $H', env: {H: \"${{ github.event['pull_request']['head'].sha }}\"}}", strange},
		{"{run: 'git checkout $H', env: {H: '${{ toJSON(github.event) }}'}}", strange},
		{"run: 'git checkout $H'\n    env: {H: '${{ github.head_ref }}'}", strange}, // of the job
		{"{run: 'git checkout $H $I', env: {H: '${{ secrets.KEY }}', I: '${{ github.event.repository.default_branch }}'}}", own},
		{"{uses: actions/checkout@" + sha + ", with: {REF: '${{ github.head_ref }}'}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {ref: [x]}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: '${{ inputs.x }}'}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {ref: }}", own},
		{"{uses: actions/checkout@" + sha + ", with: {ref: '${{ github.sha'}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {ref: \"${{ github.base_ref || vars.BRANCH || 'main' }}\"}}", own},
		{"{uses: actions/checkout@" + sha + ", with: {ref: \"${{ github.base_ref || inputs.ref }}\"}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {ref: \"${{ 'refs/pull/1/head' }}\"}}", strange},
		{"{uses: actions/checkout@" + sha + ", with: {PERSIST-CREDENTIALS: false}}", persists("disabled")},
		{"{uses: actions/checkout@" + sha + ", with: {PERSIST-CREDENTIALS: true, persist-credentials: false}}", persists("enabled")},
		{"{uses: other/checkout@" + sha + ", with: {ref: '${{ env.R }}'}}", strange},
		{"{run: 'git checkout $H', env: {H: '${{ steps.x.outputs.sha }}'}}", strange},
		{"{run: 'git checkout ${{ steps.x.outputs.sha }}'}", strange},
		{"run: 'git checkout $H'", strange}, // an earlier step may have set it
		{`run: "git \\\n  checkout $H"`, strange},
		{"run: git checkout $(cat head)", strange},
		{"run: git checkout `cat head`", strange},
		{"run: xargs git checkout <head", strange},
		{"run: git checkout %H%", strange},
		{"run: git checkout $env:H", strange},
		{"{shell: python, run: 'subprocess.run([\"git\", \"checkout\", os.environ[\"H\"]])'}", strange},
		{"run: gh repo clone $R", strange},
		{"run: gh -R a/b pr checkout 1", strange},
		{"{run: 'read H <head; git checkout $H', env: {H: main}}", strange},
		{"{run: 'H=main; git checkout ${H}', env: {H: main}}", strange},
		{"{run: '$env:H = Get-Content head; git checkout $env:H', env: {H: main}}", strange},
		{"{run: '. ./head; git checkout main'}", strange},
		{"{run: 'git checkout ${H:-$I}', env: {H: main}}", strange},
		{"{run: 'git checkout ${H:-main}', env: {H: main}}", own},
		{"run: 'git fetch origin \"$GITHUB_BASE_REF\" && git merge-base \"$GITHUB_SHA\" main >>\"$GITHUB_OUTPUT\"'", own},
		{"run: 'git fetch origin ${{ github.base_ref }}'", own},
		{"run: 'git commit -am \"$MESSAGE\" && git push'", own},
		{"run: 'gh pr comment $N'", own},
		{"run: gh pr checkout 1", strange},
		{"{run: 'git fetch origin $H', env: {H: '${{ github.event.pull_request.head.sha }}'}}", strange},
		{"run: git fetch origin pull/7/head", strange},
		{"run: 'echo ${{ github.event.pull_request.head.sha }}'", own},
		{"{run: x, env: {A: '${{ secrets.KEY }}'}}", secret},
		{"{run: x, env: {A: '${{ secrets . KEY }}'}}", secret},
		{"{run: x, env: {A: \"${{ secrets['KEY'] }}\"}}", secret},
		{"{run: x, env: {A: '${{ toJSON(secrets) }}'}}", secret},
		{"{run: x, env: {A: '${{ secrets.GITHUB_TOKEN_2 }}'}}", secret},
		{"{run: x, env: {A: '${{ secrets.GITHUB_TOKEN }}'}}", open},
		{"{run: x, env: {A: '${{ secrets.github_token }}'}}", open},
		{"run: echo no secrets here", open},
		{"run: x # ${{ secrets.KEY }}", open},
	} {
		if w := parseWorkflow(t, stepText(c.step)); !c.want(w) {
			t.Errorf("%s: %+v; want c.want(w)", c.step, w)
		}
	}
}

func TestTriggersJobsAndEnvironments(t *testing.T) {
	t.Parallel()
	for on, want := range map[string]bool{
		"push": false, "pull_request": false, "[push, pull_request]": false, "{push: {branches: [main]}}": false,
		"pull_request_target": true, "[push, issue_comment]": true, "{workflow_run: {workflows: [x]}}": true,
	} {
		if w := parseWorkflow(t, "on: "+on+"\njobs: {a: {}}"); w.UntrustedTrigger != want {
			t.Errorf("%s: %v; want w.UntrustedTrigger == %v", on, w.UntrustedTrigger, want)
		}
	}
	for input, want := range map[string]bool{"${{ github.head_ref }}": true, "${{ github.sha }}": false} {
		if w := parseWorkflow(t, head+"jobs: {a: {uses: ./.github/workflows/x.yml, with: {ref: '"+input+"'}}}"); w.UntrustedCheckout != want {
			t.Errorf("%s to a workflow: %+v; want w.UntrustedCheckout == %v", input, w, want)
		}
	}
	w := parseWorkflow(t, head+`jobs:
  b: {name: Build it, environment: prod}
  a: {environment: {name: stage, url: x}}
  c: {uses: a/b/.github/workflows/x.yml@v1, secrets: inherit}
  d: {uses: ./.github/workflows/x.yml, environment: prod}
`)
	if !slices.Equal(w.Jobs, []string{"Build it", "a", "c", "d"}) || !slices.Equal(w.Environments, []string{"prod", "stage"}) ||
		!slices.Equal(w.UnpinnedActions, []string{"a/b/.github/workflows/x.yml@v1"}) || !w.SecretsReferenced {
		t.Errorf(`%+v; want slices.Equal(w.Jobs, []string{"Build it", "a", "c", "d"}) && slices.Equal(w.Environments, []string{"prod", "stage"}) && …`, w)
	}
}

// aliasBomb returns a document of few lines whose aliases expand to 10^9 values.
func aliasBomb() string {
	var b strings.Builder
	b.WriteString("on: push\na0: &a0 [x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String() + "jobs: {a: {}}\n"
}

func TestWorkflowFaults(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "comment": "# nothing", "scalar": "x", "list": "[a]", "syntax": "a: [", "tab": "a:\n\t- b",
		"two documents": "a: 1\n---\nb: 2", "twice": "on: push\non: pull\njobs: {a: {}}", "merge key": "on: push\nx: &x {a: 1}\njobs: {a: {<<: *x}}",
		"key": "? [a]\n: b", "null key": "~: b", "no jobs": "on: push", "empty jobs": "on: push\njobs: {}", "jobs": "on: push\njobs: [a]",
		"job": "on: push\njobs: {a: x}", "no trigger": "jobs: {a: {}}", "trigger": "on: [{push: x}]\njobs: {a: {}}",
		"permissions": "on: push\npermissions: all\njobs: {a: {}}", "permission": "on: push\npermissions: {contents: admin}\njobs: {a: {}}",
		"permission list": "on: push\npermissions: [read]\njobs: {a: {}}",
		"steps":           "on: push\njobs: {a: {steps: x}}", "step": "on: push\njobs: {a: {steps: [x]}}", "environment": "on: push\njobs: {a: {environment: {url: x}}}",
		"unknown alias": "on: *x", "laughs": aliasBomb(), "itself": "on: push\nx: &x [*x]\njobs: {a: {}}",
		"deep": "on: push\nx: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\njobs: {a: {}}", "deeper": strings.Repeat("[", 1<<20),
	} {
		_, err := governance.ParseWorkflow([]byte(text))
		if err == nil || command.FaultOf(err).Code != governance.InvalidWorkflow {
			t.Errorf("%s: %v; want an error && command.FaultOf(err).Code == governance.InvalidWorkflow", name, err)
		}
	}
	if _, err := governance.ParseWorkflow([]byte("on: \xff")); command.FaultOf(err).Code != governance.InvalidUTF8 {
		t.Error(err, "want command.FaultOf(err).Code ==", governance.InvalidUTF8)
	}
}

func TestLoadWorkflow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "w.yml")
	for size, ok := range map[int]bool{2 << 20: true, 2<<20 + 1: false} {
		text := head + "jobs: {a: {}}\n#"
		if err := os.WriteFile(path, []byte(text+strings.Repeat("x", size-len(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := governance.LoadWorkflow(path); (err == nil) != ok || err != nil && command.FaultOf(err).Code != command.InputReadError {
			t.Errorf("%d bytes: %v; want (err == nil) == ok && (err == nil || command.FaultOf(err).Code == command.InputReadError)", size, err)
		}
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := governance.LoadWorkflow(path); err == nil || command.FaultOf(err).Code != governance.InvalidWorkflow || !strings.Contains(err.Error(), path) {
		t.Error(err, "want an error && command.FaultOf(err).Code == governance.InvalidWorkflow && strings.Contains(err.Error(), path)")
	}
}

// Whatever the bytes are, the answer is a fault or a workflow with sorted lists,
// without repeats, whose values are from the closed lists.
func FuzzWorkflow(f *testing.F) {
	for _, name := range []string{"dispatch", "risky"} {
		f.Add(samples.File("governance/" + name + ".yml"))
	}
	f.Add([]byte(aliasBomb()))
	f.Add([]byte(head + "jobs:\n  a: &a {steps: [{run: git push}]}\n  b: *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := governance.ParseWorkflow(data)
		if err != nil {
			if code := command.FaultOf(err).Code; code != governance.InvalidWorkflow && code != governance.InvalidUTF8 {
				t.Fatalf("%v; want (code == governance.InvalidWorkflow || code == governance.InvalidUTF8)", err)
			}
			return
		}
		for _, list := range [][]string{w.Jobs, w.Environments, w.UnpinnedActions} {
			if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
				t.Fatalf("%q; want slices.IsSorted(list) && len(slices.Compact(slices.Clone(list))) == len(list)", list)
			}
		}
		if !slices.Contains([]string{"none", "read", "unset", "write"}, w.Permissions) || !slices.Contains([]string{"absent", "disabled", "enabled"}, w.PersistCredentials) || len(w.Jobs) == 0 {
			t.Fatalf(`%+v; want slices.Contains([]string{"none", "read", "unset", "write"}, w.Permissions) && slices.Contains([]string{"absent", "disabled", "enabled"}, w.PersistCredentials) && …`, w)
		}
	})
}
