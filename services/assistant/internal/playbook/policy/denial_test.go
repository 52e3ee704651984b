package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// FuzzDenials checks that, for any log, the denials found pass the closed patterns, stay bounded, and survive a round
// trip through the server's message.
func FuzzDenials(f *testing.F) {
	for _, seed := range []string{
		`User "system:serviceaccount:shop:app" cannot list resource "pods" in API group "" in the namespace "shop"`,
		`pods "x" is forbidden: User "system:serviceaccount:shop:app" cannot get resource "pods/log" in API group "" in the namespace "shop"`,
		`{"message":"nodes is forbidden: User \"system:serviceaccount:shop:app.v2\" cannot watch resource \"nodes\" in API group \"metrics.k8s.io\" at the cluster scope"}`,
		`User "system:serviceaccount:shop:app" cannot escalate resource "roles" in API group "rbac.authorization.k8s.io" at the cluster scope`,
		`User "system:serviceaccount:shop:app" cannot list resource "*" in API group "*" at the cluster scope`,
		"User \"system:serviceaccount:shop:app\" cannot list resource \"pods\n\" in API group \"\" at the cluster scope",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, log string) {
		all := findDenials(log)
		if len(all) > engine.MostDenials {
			t.Errorf("%d denials; want len(all) <= engine.MostDenials", len(all))
		}
		for _, d := range all {
			for _, part := range []string{d.account.Namespace, d.account.Name, d.verb, d.group, d.resource, d.subresource, d.name, d.namespace} {
				if strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
					t.Errorf(`%q in %+v; want strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789.-") == ""`, part, d)
				}
			}
			if d.account.Namespace == "" || d.account.Name == "" || d.resource == "" || !slices.Contains(strings.Split(verbPart, "|"), d.verb) {
				t.Errorf(`incomplete: %+v; want d.account.Namespace != "" && d.account.Name != "" && d.resource != "" && slices.Contains(strings.Split(verbPart, "|"), d.verb)`, d)
			}
			d.name = ""
			for _, message := range []string{d.message(), strings.ReplaceAll(d.message(), `"`, `\"`)} {
				if back := findDenials("prefix " + message); len(back) != 1 || back[0] != d {
					t.Errorf("%s reads back as %+v, want %+v", message, back, d)
				}
			}
		}
	})
}
