package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// resources are the plural names and API groups of kinds that rules name.
var resources = map[string][2]string{
	"pod": {"", "pods"}, "deployment": {"apps", "deployments"}, "statefulset": {"apps", "statefulsets"}, "daemonset": {"apps", "daemonsets"}, "replicaset": {"apps", "replicasets"},
	"job": {"batch", "jobs"}, "cronjob": {"batch", "cronjobs"}, "service": {"", "services"}, "ingress": {"networking.k8s.io", "ingresses"}, "gateway": {"gateway.networking.k8s.io", "gateways"}, "httproute": {"gateway.networking.k8s.io", "httproutes"}, "route": {"gateway.networking.k8s.io", "httproutes"}, "node": {"", "nodes"},
	"namespace": {"", "namespaces"}, "configmap": {"", "configmaps"}, "secret": {"", "secrets"}, "persistentvolumeclaim": {"", "persistentvolumeclaims"},
	"persistentvolume": {"", "persistentvolumes"}, "event": {"", "events"}, "horizontalpodautoscaler": {"autoscaling", "horizontalpodautoscalers"},
	"poddisruptionbudget": {"policy", "poddisruptionbudgets"}, "networkpolicy": {"networking.k8s.io", "networkpolicies"}, "serviceaccount": {"", "serviceaccounts"},
	"resourcequota": {"", "resourcequotas"}, "role": {"rbac.authorization.k8s.io", "roles"}, "rolebinding": {"rbac.authorization.k8s.io", "rolebindings"},
	"clusterrole": {"rbac.authorization.k8s.io", "clusterroles"}, "clusterrolebinding": {"rbac.authorization.k8s.io", "clusterrolebindings"},
}

// WhoCan lists who is bound to a role that allows a verb on a kind. It reads bindings
// alone: other authorizers and group membership are not in the cluster.
func WhoCan(v View, verb, kind string) string {
	named, ok := resources[kind]
	if !ok || verb == "" {
		return "Say what is to be allowed on which kind, for example: who can delete pods in shop?\n"
	}
	allows := func(rules []rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return len(r.ResourceNames) == 0 && hasOrAny(r.Verbs, verb) && hasOrAny(r.APIGroups, named[0]) && hasOrAny(r.Resources, named[1])
		})
	}
	roles, clusterRoles := map[[2]string]bool{}, map[string]bool{}
	for i := range v.Roles {
		roles[[2]string{v.Roles[i].Namespace, v.Roles[i].Name}] = allows(v.Roles[i].Rules)
	}
	for i := range v.ClusterRoles {
		clusterRoles[v.ClusterRoles[i].Name] = allows(v.ClusterRoles[i].Rules)
	}
	found := map[[4]string]bool{}
	bind := func(scope, binding string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		if ref.Kind == "ClusterRole" && !clusterRoles[ref.Name] || ref.Kind == "Role" && !roles[[2]string{scope, ref.Name}] {
			return
		}
		for _, s := range subjects {
			name := s.Name
			if s.Kind == rbacv1.ServiceAccountKind {
				name = s.Namespace + "/" + s.Name
			}
			found[[4]string{s.Kind, name, scope, binding}] = true
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
	t := newTable("Who", "Name", "Where", "By binding")
	for _, f := range slices.SortedFunc(maps.Keys(found), func(a, b [4]string) int {
		return cmp.Or(cmp.Compare(a[2], b[2]), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]), cmp.Compare(a[3], b[3]))
	}) {
		where := "everywhere"
		if f[2] != "" {
			where = "namespace " + tableCell(f[2])
		}
		t.add(f[0], tableCell(f[1]), where, tableCell(f[3]))
	}
	what := verb + " " + named[1]
	text := t.under("By their role bindings these may "+what+" "+v.where()+":", "No role binding that could be read lets anybody "+what+" "+v.where()+".")
	var unread []string
	for _, k := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
		if v.Unread[k] {
			unread = append(unread, k)
		}
	}
	if len(unread) > 0 {
		text += "\nNot read, so somebody may be missing: " + strings.Join(unread, ", ") + ".\n"
	}
	return text
}

func hasOrAny(list []string, want string) bool {
	return slices.Contains(list, want) || slices.Contains(list, "*")
}
