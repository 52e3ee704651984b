package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// resources are the plural names and API groups of the kinds in rules.
var resources = map[string][2]string{
	"pod": {"", "pods"}, "deployment": {"apps", "deployments"}, "statefulset": {"apps", "statefulsets"}, "daemonset": {"apps", "daemonsets"}, "replicaset": {"apps", "replicasets"},
	"job": {"batch", "jobs"}, "cronjob": {"batch", "cronjobs"}, "service": {"", "services"}, "ingress": {"networking.k8s.io", "ingresses"}, "gateway": {"gateway.networking.k8s.io", "gateways"}, "httproute": {"gateway.networking.k8s.io", "httproutes"}, "route": {"gateway.networking.k8s.io", "httproutes"}, "node": {"", "nodes"},
	"namespace": {"", "namespaces"}, "configmap": {"", "configmaps"}, "secret": {"", "secrets"}, "persistentvolumeclaim": {"", "persistentvolumeclaims"},
	"persistentvolume": {"", "persistentvolumes"}, "event": {"", "events"}, "horizontalpodautoscaler": {"autoscaling", "horizontalpodautoscalers"},
	"poddisruptionbudget": {"policy", "poddisruptionbudgets"}, "networkpolicy": {"networking.k8s.io", "networkpolicies"}, "serviceaccount": {"", "serviceaccounts"},
	"resourcequota": {"", "resourcequotas"}, "role": {"rbac.authorization.k8s.io", "roles"}, "rolebinding": {"rbac.authorization.k8s.io", "rolebindings"},
	"clusterrole": {"rbac.authorization.k8s.io", "clusterroles"}, "clusterrolebinding": {"rbac.authorization.k8s.io", "clusterrolebindings"},
}

// Grant is a subject that a binding allows something.
type Grant struct {
	Kind, Name string // of the subject; a service account is namespace/name
	Namespace  string // where it applies; empty: everywhere
	Binding    string
}

// ResourceNamed returns the API group and plural name of a kind, which may be given in the singular or plural.
func ResourceNamed(kind string) (group, plural string, ok bool) {
	if named, ok := resources[kind]; ok {
		return named[0], named[1], true
	}
	for _, named := range resources {
		if named[1] == kind {
			return named[0], named[1], true
		}
	}
	return "", "", false
}

// Grants lists the subjects bound to a role that allows a verb on the kind with this API group and plural name.
func (v View) Grants(verb, group, plural string) []Grant {
	allows := func(rules []rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return len(r.ResourceNames) == 0 && hasOrAny(r.Verbs, verb) && hasOrAny(r.APIGroups, group) && hasOrAny(r.Resources, plural)
		})
	}
	roles, clusterRoles := map[[2]string]bool{}, map[string]bool{}
	for i := range v.Roles {
		roles[[2]string{v.Roles[i].Namespace, v.Roles[i].Name}] = allows(v.Roles[i].Rules)
	}
	for i := range v.ClusterRoles {
		clusterRoles[v.ClusterRoles[i].Name] = allows(v.ClusterRoles[i].Rules)
	}
	found := map[Grant]bool{}
	bind := func(scope, binding string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		if ref.Kind == "ClusterRole" && !clusterRoles[ref.Name] || ref.Kind == "Role" && !roles[[2]string{scope, ref.Name}] {
			return
		}
		for _, s := range subjects {
			name := s.Name
			if s.Kind == rbacv1.ServiceAccountKind {
				name = s.Namespace + "/" + s.Name
			}
			found[Grant{s.Kind, name, scope, binding}] = true
		}
	}
	for i := range v.RoleBindings {
		if b := &v.RoleBindings[i]; v.in(b) {
			bind(b.Namespace, b.Name, b.RoleRef, b.Subjects)
		}
	}
	for i := range v.ClusterBindings {
		b := &v.ClusterBindings[i]
		bind("", b.Name, b.RoleRef, b.Subjects)
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b Grant) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Binding, b.Binding))
	})
}

// WhoCan lists the subjects bound to a role that allows a verb on a kind. It reads only bindings: other authorizers and
// group membership are not in the cluster.
func WhoCan(v View, verb, kind string) string {
	group, plural, ok := ResourceNamed(kind)
	if !ok || verb == "" {
		return "Name a verb and a kind, for example: who can delete pods in shop?\n"
	}
	t := newTable("Who", "Name", "Where", "By binding")
	for _, g := range v.Grants(verb, group, plural) {
		where := "everywhere"
		if g.Namespace != "" {
			where = "namespace " + tableCell(g.Namespace)
		}
		t.add(g.Kind, tableCell(g.Name), where, tableCell(g.Binding))
	}
	what := verb + " " + plural
	text := t.under("By their role bindings these may "+what+" "+v.where()+":", "No role binding that could be read lets anybody "+what+" "+v.where()+".").String()
	var unread []string
	for _, k := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
		if v.Unread[k] {
			unread = append(unread, k)
		}
	}
	if len(unread) > 0 {
		text += "\nNot read, so subjects may be missing: " + strings.Join(unread, ", ") + ".\n"
	}
	return text
}

func hasOrAny(list []string, want string) bool {
	return slices.Contains(list, want) || slices.Contains(list, "*")
}
