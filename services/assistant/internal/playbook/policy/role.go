package policy

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/yaml"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// leastRole writes a role with exactly the refused rights, or only the binding if an existing role has exactly such
// rules.
func leastRole(x *Index, all []denial, namespace string) string {
	account := all[0].account
	text := "If the program is meant to do this, give its account this right; rights are not written from here."
	if slices.ContainsFunc(all, denial.farReaching) {
		text += " It is a far-reaching one, from which others can be made: ask first whether the program needs it."
	}
	if account.Name == "default" {
		text += " Every pod in the namespace that names no account uses this one: give the workload a separate account."
	}
	kind := "Role"
	if namespace == "" {
		kind = "ClusterRole"
	}
	role, there := x.fitting(all, namespace)
	var objects []engine.Members
	if !there {
		role = x.unused(account.Name+"-access", namespace)
		objects = append(objects, rbacObject(kind, role, namespace, engine.Members{"rules": rulesFor(all)}))
	}
	objects = append(objects, rbacObject(kind+"Binding", x.unused(account.Name+"-access", namespace), namespace, engine.Members{
		"roleRef":  engine.Members{"apiGroup": rbacv1.GroupName, "kind": kind, "name": role},
		"subjects": []any{engine.Members{"kind": "ServiceAccount", "name": account.Name, "namespace": account.Namespace}},
	}))
	return text + "\n\n" + formatManifest(objects...)
}

// unused returns a name that no existing role or binding has: applying the manifest to an existing one would remove its
// subjects.
func (x *Index) unused(want, namespace string) string {
	taken := map[string]bool{}
	for i := range x.Roles {
		taken[x.Roles[i].Name] = taken[x.Roles[i].Name] || x.Roles[i].Namespace == namespace
	}
	for i := range x.RoleBindings {
		taken[x.RoleBindings[i].Name] = taken[x.RoleBindings[i].Name] || x.RoleBindings[i].Namespace == namespace
	}
	if namespace == "" {
		for i := range x.ClusterRoles {
			taken[x.ClusterRoles[i].Name] = true
		}
		for i := range x.ClusterBindings {
			taken[x.ClusterBindings[i].Name] = true
		}
	}
	free := want
	for n := 2; taken[free]; n++ {
		free = want + "-" + strconv.Itoa(n)
	}
	return free
}

func rbacObject(kind, role, namespace string, o engine.Members) engine.Members {
	meta := engine.Members{"name": role}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	o["apiVersion"], o["kind"], o["metadata"] = rbacv1.SchemeGroupVersion.String(), kind, meta
	return o
}

// formatManifest formats objects as YAML, in a Markdown block.
func formatManifest(objects ...engine.Members) string {
	var parts []string
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return ""
		}
		parts = append(parts, strings.TrimRight(string(text), "\n"))
	}
	return "    " + strings.ReplaceAll(strings.Join(parts, "\n---\n"), "\n", "\n    ")
}

// rulesFor returns one rule for each resource, with all its verbs.
func rulesFor(all []denial) []any {
	type key struct{ group, resource, name string }
	verbs := map[key][]string{}
	for _, d := range all {
		k := key{group: d.group, resource: d.full()}
		if names := d.rule().ResourceNames; len(names) > 0 {
			k.name = names[0]
		}
		verbs[k] = append(verbs[k], d.verb)
	}
	var rules []any
	for _, k := range slices.SortedFunc(maps.Keys(verbs), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.name, b.name))
	}) {
		slices.Sort(verbs[k])
		rule := engine.Members{"apiGroups": []string{k.group}, "resources": []string{k.resource}, "verbs": slices.Compact(verbs[k])}
		if k.name != "" {
			rule["resourceNames"] = []string{k.name}
		}
		rules = append(rules, rule)
	}
	return rules
}

// fitting returns a role of the namespace that grants all denied requests and whose rules name only the requested
// resources.
func (x *Index) fitting(all []denial, namespace string) (string, bool) {
	var fit []string
	for i := range x.Roles {
		r := &x.Roles[i]
		if r.Namespace != namespace || !operation.ValidName(r.Name) {
			continue
		}
		wide := slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.Verbs, rbacv1.VerbAll) || slices.ContainsFunc(rule.Resources, func(resource string) bool {
				return !slices.ContainsFunc(all, func(d denial) bool { return d.full() == resource })
			})
		})
		covers := !slices.ContainsFunc(all, func(d denial) bool {
			ok, _ := validation.Covers(r.Rules, []rbacv1.PolicyRule{d.rule()})
			return !ok
		})
		if covers && !wide {
			fit = append(fit, r.Name)
		}
	}
	if len(fit) == 0 {
		return "", false
	}
	return slices.Min(fit), true
}
