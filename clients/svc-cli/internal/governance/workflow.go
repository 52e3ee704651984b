package governance

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// permissionLevels are the answers about the token's contents permission, the worst last:
// unset leaves it to a setting that the file does not show, write is known.
var permissionLevels = []string{"none", "read", "unset", "write"}

// ParseWorkflow reads a workflow file and returns the properties that the guards need. In doubt it
// assumes the worse: an expression may evaluate to anything.
func ParseWorkflow(data []byte) (Workflow, error) {
	tree, err := parseYAML(data)
	if err != nil {
		return Workflow{}, err
	}
	root, ok := tree.(*canon.Object)
	if !ok {
		return Workflow{}, workflowFault("is no mapping")
	}
	events, err := readTriggers(root)
	if err != nil {
		return Workflow{}, err
	}
	jobs, _ := memberValue(root, "jobs").(*canon.Object)
	if jobs.Len() == 0 {
		return Workflow{}, workflowFault("has no jobs")
	}
	w := Workflow{Permissions: permissionLevels[0], PersistCredentials: "absent"}
	w.SecretsReferenced = refersToSecrets(root)
	for _, e := range events {
		w.UntrustedTrigger = w.UntrustedTrigger || !slices.Contains(ownTriggers, e) && !slices.Contains(bareTriggers, e)
	}
	for name, v := range jobs.All() {
		job, ok := v.(*canon.Object)
		if !ok {
			return Workflow{}, workflowFault("has a job that is no mapping: %.100q", name)
		}
		if err := w.addJob(root, name, job); err != nil {
			return Workflow{}, err
		}
	}
	for _, list := range []*[]string{&w.UnpinnedActions, &w.Environments, &w.Jobs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return w, nil
}

// Every event is one that strangers cause, such as issues, unless it is listed here.
var (
	// Only people with write access cause these, or the repository's own settings and programs.
	ownTriggers = []string{"branch_protection_rule", "create", "delete", "deployment", "deployment_status", "image_version", "label", "member", "merge_group", "milestone",
		"page_build", "project", "project_card", "project_column", "public", "push", "registry_package", "release", "repository_dispatch", "schedule", "status",
		"workflow_call", "workflow_dispatch"}
	// What strangers cause by these runs without secrets, with a token that only reads.
	bareTriggers = []string{"pull_request", "pull_request_review", "pull_request_review_comment"}
)

func readTriggers(root *canon.Object) ([]string, error) {
	switch on := memberValue(root, "on").(type) {
	case string:
		return []string{on}, nil
	case *canon.Object:
		return on.Keys(), nil
	case canon.Array:
		var out []string
		for _, e := range on {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		if len(out) == len(on) {
			return out, nil
		}
	}
	return nil, workflowFault("does not say with on: when it runs")
}

func (w *Workflow) addJob(root *canon.Object, id string, job *canon.Object) error {
	where := job
	if _, own := job.Get("permissions"); !own {
		where = root
	}
	level, err := contentsPermission(where)
	if err != nil {
		return err
	}
	if slices.Index(permissionLevels, level) > slices.Index(permissionLevels, w.Permissions) {
		w.Permissions = level
	}
	w.Pushes = w.Pushes || level == "write"

	if name, ok := memberValue(job, "name").(string); ok && name != "" {
		id = name // under which the job reports
	}
	w.Jobs = append(w.Jobs, id)

	switch e := memberValue(job, "environment").(type) {
	case string:
		w.Environments = append(w.Environments, e)
	case *canon.Object:
		name, ok := memberValue(e, "name").(string)
		if !ok {
			return workflowFault("has an environment without a name, in job %.100q", id)
		}
		w.Environments = append(w.Environments, name)
	}

	w.addUse(job) // of a whole workflow
	w.addJobInputs(job, scopes{job, root})
	if _, shared := job.Get("secrets"); shared {
		w.SecretsReferenced = true // handed to that workflow, by name or all of them
	}
	steps, ok := memberValue(job, "steps").(canon.Array)
	if _, there := job.Get("steps"); there && !ok {
		return workflowFault("has steps that are no list, in job %.100q", id)
	}
	for _, s := range steps {
		step, ok := s.(*canon.Object)
		if !ok {
			return workflowFault("has a step that is no mapping, in job %.100q", id)
		}
		w.addStep(step)
		w.addScripts(step, scopes{step, job, root})
	}
	return nil
}

func contentsPermission(where *canon.Object) (string, error) {
	v, there := where.Get("permissions")
	if !there || v == nil {
		return "unset", nil
	}
	level := ""
	switch p := v.(type) {
	case string:
		level = map[string]string{"read-all": "read", "write-all": "write"}[p]
	case *canon.Object: // unnamed permissions are none
		level = "none"
		if c, named := p.Get("contents"); named {
			level, _ = c.(string)
		}
	}
	if level == "none" || level == "read" || level == "write" {
		return level, nil
	}
	return "", workflowFault("has permissions that do not exist")
}

func (w *Workflow) addUse(o *canon.Object) {
	use, ok := memberValue(o, "uses").(string)
	if !ok {
		return
	}
	if !isPinned(use) {
		w.UnpinnedActions = append(w.UnpinnedActions, use)
	}
	// actions/checkout, and actions modelled on it, take the revision to check out from these
	// inputs.
	for _, name := range []string{"ref", "repository"} {
		w.UntrustedCheckout = w.UntrustedCheckout || slices.ContainsFunc(stepInputs(memberValue(o, "with"), name), mayBeHead)
	}
}

var (
	pinnedAction = regexp.MustCompile(`^[^@\s]+@[0-9a-f]{40}$`)
	pinnedImage  = regexp.MustCompile(`^docker://[^@\s]+@sha256:[0-9a-f]{64}$`)
)

// isPinned reports whether use always runs the same code: the repository's own code, a commit, or
// an image by its digest.
func isPinned(use string) bool {
	if strings.HasPrefix(use, "docker://") {
		return pinnedImage.MatchString(use)
	}
	return strings.HasPrefix(use, "./") || pinnedAction.MatchString(use)
}

var (
	gitPush    = regexp.MustCompile(`\bgit(?:(?:\s|\\\n)+-\S+(?:(?:\s|\\\n)+[^-\s\\]\S*)?)*(?:\s|\\\n)+push\b`)
	isCheckout = regexp.MustCompile(`(?i)^actions/checkout(?:@|$)`)
)

func (w *Workflow) addStep(step *canon.Object) {
	w.addUse(step)
	if run, ok := memberValue(step, "run").(string); ok {
		w.Pushes = w.Pushes || gitPush.MatchString(run)
		w.UntrustedCheckout = w.UntrustedCheckout || mayFetchHead(run, memberValue(step, "env"))
	}
	use, _ := memberValue(step, "uses").(string)
	if !isCheckout.MatchString(use) {
		return
	}
	persists := stepInputs(memberValue(step, "with"), "persist-credentials")
	switch {
	case len(persists) == 0 || slices.ContainsFunc(persists, isTrue): // the action's default is true
		w.PersistCredentials = "enabled"
	case w.PersistCredentials == "absent":
		w.PersistCredentials = "disabled"
	}
}

// isTrue reports whether an input is not plainly false.
func isTrue(v canon.Value) bool {
	s, _ := v.(string)
	return !strings.EqualFold(s, "false")
}

var (
	namedSecret  = regexp.MustCompile(`(?i)\bsecrets\s*\.\s*([a-z_][a-z0-9_]*)`)
	wholeSecrets = regexp.MustCompile(`(?i)\bsecrets\s*(?:[^.\sa-z0-9_]|$)`)
)

// refersToSecrets reports whether the workflow names a secret other than the token that every run
// is given, or takes the secrets as a whole.
func refersToSecrets(v canon.Value) bool {
	return anyText(v, func(s string) bool {
		for _, m := range namedSecret.FindAllStringSubmatch(s, -1) {
			if !strings.EqualFold(m[1], "GITHUB_TOKEN") {
				return true
			}
		}
		for _, e := range expression.FindAllString(s, -1) {
			if wholeSecrets.MatchString(e) {
				return true
			}
		}
		return false
	})
}

// anyText reports whether found returns true for one of the texts in v, keys included.
func anyText(v canon.Value, found func(string) bool) bool {
	switch v := v.(type) {
	case string:
		return found(v)
	case canon.Array:
		return slices.ContainsFunc(v, func(e canon.Value) bool { return anyText(e, found) })
	case *canon.Object:
		for k, e := range v.All() {
			if found(k) || anyText(e, found) {
				return true
			}
		}
	}
	return false
}

// memberValue returns the value of a key, or nil.
func memberValue(o *canon.Object, key string) canon.Value {
	v, _ := o.Get(key)
	return v
}
