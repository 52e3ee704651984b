package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// grants are the rights of an account in a namespace or, with an empty one, in the cluster.
type grants struct {
	rules []rbacv1.PolicyRule
	bound []string // bindings and their roles, for people
	lost  []string // bindings whose role does not exist
}

// grantsOf looks the account up in the bindings of the snapshot.
func (x *Index) grantsOf(account engine.Name, namespace string) grants {
	var g grants
	add := func(kind, binding, of string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		if !slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return meansAccount(s, account, of) }) {
			return
		}
		rules, ok := x.rulesOf(role, of)
		text := fmt.Sprintf("%s %s with the %s %s", kind, engine.QuoteCode(binding), role.Kind, engine.QuoteCode(role.Name))
		if !ok {
			g.lost = append(g.lost, text)
			return
		}
		g.rules = append(g.rules, rules...)
		// Every account has some discovery rights, which are not worth mentioning.
		if !strings.HasPrefix(role.Name, "system:") {
			g.bound = append(g.bound, text)
		}
	}
	for i := range x.RoleBindings {
		if b := &x.RoleBindings[i]; namespace != "" && b.Namespace == namespace {
			add("RoleBinding", b.Name, namespace, b.RoleRef, b.Subjects)
		}
	}
	for i := range x.ClusterBindings {
		b := &x.ClusterBindings[i]
		add("ClusterRoleBinding", b.Name, "", b.RoleRef, b.Subjects)
	}
	slices.Sort(g.bound)
	slices.Sort(g.lost)
	return g
}

// meansAccount reports whether a subject of a binding is the account, by name or through one of the groups that include
// every service account.
func meansAccount(s rbacv1.Subject, account engine.Name, namespace string) bool {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return s.Name == account.Name && cmp.Or(s.Namespace, namespace) == account.Namespace
	case rbacv1.UserKind:
		return s.Name == "system:serviceaccount:"+account.Namespace+":"+account.Name
	case rbacv1.GroupKind:
		return s.Name == "system:serviceaccounts" || s.Name == "system:serviceaccounts:"+account.Namespace || s.Name == "system:authenticated"
	}
	return false
}

// rulesOf returns the rules of a role; false if roles were read and it does not exist.
func (x *Index) rulesOf(r rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, bool) {
	if r.Kind == "ClusterRole" {
		for i := range x.ClusterRoles {
			if x.ClusterRoles[i].Name == r.Name {
				return x.ClusterRoles[i].Rules, true
			}
		}
		return nil, x.Unread["clusterroles"]
	}
	for i := range x.Roles {
		if x.Roles[i].Name == r.Name && x.Roles[i].Namespace == namespace {
			return x.Roles[i].Rules, true
		}
	}
	return nil, x.Unread["roles"]
}

// rule returns a rule with only the refused right.
func (d denial) rule() rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{APIGroups: []string{d.group}, Resources: []string{d.full()}, Verbs: []string{d.verb}}
	if d.name != "" && slices.Contains([]string{"get", "update", "patch", "delete"}, d.verb) {
		r.ResourceNames = []string{d.name}
	}
	return r
}

// farReaching reports whether a right to the resource can be turned into further rights.
func (d denial) farReaching() bool {
	switch d.resource {
	case "secrets", "roles", "rolebindings", "clusterroles", "clusterrolebindings", "certificatesigningrequests",
		"validatingwebhookconfigurations", "mutatingwebhookconfigurations":
		return true
	}
	return slices.Contains([]string{"exec", "attach", "portforward", "proxy", "token", "ephemeralcontainers", "approval"}, d.subresource)
}

// checkDenials explains AccessForbidden: programs whose requests the API server refused, and would still refuse.
func checkDenials(x *Index) []engine.Finding {
	type scope struct {
		account   engine.Name
		namespace string
	}
	asked := map[scope][]denial{}
	pods := map[scope][]string{}
	of := map[scope][]string{}
	for _, pod := range x.LivingPods {
		for _, d := range x.denialsOf(pod) {
			s := scope{d.account, d.namespace}
			asked[s] = append(asked[s], d)
			if !slices.Contains(pods[s], pod.Name) {
				pods[s] = append(pods[s], pod.Name)
			}
			if w := engine.RefTitle(x.WorkloadOf(pod).Ref); !slices.Contains(of[s], w) {
				of[s] = append(of[s], w)
			}
		}
	}
	var found []engine.Finding
	for s, all := range asked {
		g := x.grantsOf(s.account, s.namespace)
		all = slices.DeleteFunc(all, func(d denial) bool {
			ok, _ := validation.Covers(g.rules, []rbacv1.PolicyRule{d.rule()})
			return ok
		})
		if len(all) == 0 {
			continue // granted since
		}
		slices.SortFunc(all, denial.compare)
		f := engine.Finding{Class: engine.AccessForbidden, Confidence: engine.High, Pods: pods[s]}
		f.Object = operation.Ref{Version: "v1", Kind: "ServiceAccount", Namespace: s.account.Namespace, Name: s.account.Name}
		f.Evidence = []string{"The API server refused requests of " + strings.Join(of[s][:min(len(of[s]), 5)], ", ") + ", which acts as this account."}
		explainDenied(&f, x, slices.Compact(all), s.namespace, g)
		found = append(found, f)
	}
	return found
}

// denialsOf returns the denials of the pod's own account. A denial of another account in the log may be forged to
// obtain rights for it, and is ignored.
func (x *Index) denialsOf(pod *corev1.Pod) []denial {
	own := engine.Name{Namespace: pod.Namespace, Name: engine.AccountOf(pod)}
	var all []denial
	for _, log := range x.LogsOf(pod) {
		for _, d := range findDenials(log) {
			if d.account == own {
				all = append(all, d)
			}
		}
	}
	return all
}

// Grounds returns the accounts whose missing rights may be the reason why a pod fails.
func (x *Index) Grounds(pod *corev1.Pod) []operation.Ref {
	if len(x.denialsOf(pod)) == 0 {
		return nil
	}
	return []operation.Ref{{Version: "v1", Kind: "ServiceAccount", Namespace: pod.Namespace, Name: engine.AccountOf(pod)}}
}

func explainDenied(f *engine.Finding, x *Index, all []denial, namespace string, g grants) {
	first := all[0]
	where := "in namespace " + engine.QuoteCode(namespace)
	if namespace == "" {
		where = "in the cluster as a whole"
	}
	for i, d := range all {
		if i == 5 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("And %d more refusals.", len(all)-i))
			break
		}
		f.Evidence = append(f.Evidence, "A line from its log: "+engine.QuoteCode(d.message())+".")
	}
	var may []string
	for _, d := range all {
		text := d.verb + " " + d.full()
		if d.group != "" {
			text += " of " + d.group
		}
		if !slices.Contains(may, text) {
			may = append(may, text)
		}
	}
	f.Cause = fmt.Sprintf("The service account %s may not %s %s.", engine.QuoteCode(first.account.Name), engine.QuoteCodes(may), where)
	unread := slices.ContainsFunc([]string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, func(kind string) bool { return x.Unread[kind] })
	switch {
	case namespace != "" && namespace != first.account.Namespace && !x.sawRights(namespace):
		f.Confidence = engine.Medium
		f.Evidence = append(f.Evidence, fmt.Sprintf("The roles and bindings of namespace %s were not read, so the right was not checked.", engine.QuoteCode(namespace)))
	case unread:
		f.Confidence = engine.Medium
		f.Evidence = append(f.Evidence, "Not all roles and bindings could be read, so the right was not checked.")
	case len(g.bound) == 0 && len(g.lost) == 0:
		f.Evidence = append(f.Evidence, "Roles and bindings were checked: no binding names the account.")
	case len(g.bound) > 0:
		f.Evidence = append(f.Evidence, "The account has "+strings.Join(g.bound[:min(len(g.bound), 5)], ", ")+"; no rule of them allows it.")
	}
	for _, lost := range g.lost[:min(len(g.lost), 5)] {
		f.Evidence = append(f.Evidence, "The account has the "+lost+", which does not exist.")
	}
	f.Text = leastRole(x, all, namespace)
}

// sawRights reports whether the roles of a namespace, which may be outside the question's scope, were read.
func (x *Index) sawRights(namespace string) bool {
	return slices.ContainsFunc(x.Roles, func(r rbacv1.Role) bool { return r.Namespace == namespace }) ||
		slices.ContainsFunc(x.RoleBindings, func(b rbacv1.RoleBinding) bool { return b.Namespace == namespace })
}
