package guard_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// TestPermissionTable walks the table of roles row by row, twice: by the row alone and
// by an operation that falls into it.
func TestPermissionTable(t *testing.T) {
	t.Parallel()
	const yes, approval, asks, refused = guard.Allow, guard.Approval, guard.AlwaysAsk, guard.Refuse
	spec := map[string]any{"containers": []any{map[string]any{"name": "app", "image": "a:1"}}}
	pod := func(spec map[string]any) map[string]any { return map[string]any{"spec": spec} }
	newImage := pod(map[string]any{"containers": []any{map[string]any{"name": "app", "image": "a:2"}}})
	moreCPU := pod(map[string]any{"containers": []any{map[string]any{"name": "app", "image": "a:1", "resources": map[string]any{"limits": map[string]any{"cpu": "2"}}}}})
	with := func(key string, value any) map[string]any {
		return pod(map[string]any{"containers": spec["containers"], key: value})
	}
	hostPath := []any{map[string]any{"name": "h", "hostPath": map[string]any{"path": "/etc"}}}
	context := func(key string, value any) map[string]any {
		return pod(map[string]any{"containers": []any{map[string]any{"name": "app", "image": "a:1", "securityContext": map[string]any{key: value}}}})
	}
	scale, restart := operation.Operation{Verb: operation.Scale}, operation.Operation{Verb: operation.Restart}
	patch, del := operation.Operation{Verb: operation.Patch}, operation.Operation{Verb: operation.Delete}
	for _, tc := range []struct {
		name          string
		row           guard.Row
		admin, op, ro guard.Answer
		op1           operation.Operation
		ref           operation.Ref
		before, after map[string]any
	}{
		{"list", guard.Read, yes, yes, yes, operation.Operation{Verb: operation.List}, deployment, nil, nil},
		{"logs", guard.Read, yes, yes, yes, operation.Operation{Verb: operation.Logs}, deployment, nil, nil},
		{"metrics", guard.Read, yes, yes, yes, operation.Operation{Verb: operation.QueryPrometheus}, deployment, nil, nil},
		{"dry run of a delete", guard.Read, yes, yes, yes, operation.Operation{Verb: operation.Delete, DryRun: true}, deployment, nil, nil},
		{"scale", guard.MediumWrite, approval, approval, refused, scale, deployment, pod(spec), pod(spec)},
		{"restart", guard.MediumWrite, approval, approval, refused, restart, deployment, pod(spec), pod(spec)},
		{"delete", guard.HighWrite, approval, refused, refused, del, deployment, pod(spec), nil},
		{"image", guard.ImageOrResources, asks, asks, refused, operation.Operation{Verb: operation.SetImage}, deployment, pod(spec), newImage},
		{"image by patch", guard.ImageOrResources, asks, asks, refused, patch, deployment, pod(spec), newImage},
		{"resources by patch", guard.ImageOrResources, asks, asks, refused, patch, deployment, pod(spec), moreCPU},
		{"privileged", guard.PrivilegeGain, asks, refused, refused, patch, deployment, pod(spec), context("privileged", true)},
		{"host path", guard.PrivilegeGain, asks, refused, refused, patch, deployment, pod(spec), with("volumes", hostPath)},
		{"host network", guard.PrivilegeGain, asks, refused, refused, patch, deployment, pod(spec), with("hostNetwork", true)},
		{"capabilities", guard.PrivilegeGain, asks, refused, refused, patch, deployment, pod(spec), context("capabilities", map[string]any{"add": []any{"NET_ADMIN"}})},
		{"service account", guard.PrivilegeGain, asks, refused, refused, patch, deployment, pod(spec), with("serviceAccountName", "boss")},
		{"protected namespace", guard.Forbidden, refused, refused, refused, scale, deploymentIn("kube-system"), pod(spec), pod(spec)},
		{"protected namespace itself", guard.Forbidden, refused, refused, refused, del, newRef("", "Namespace", "", "kube-system"), pod(spec), nil},
		{"Secret", guard.Forbidden, refused, refused, refused, patch, newRef("", "Secret", "shop", "x"), pod(spec), pod(spec)},
		{"ServiceAccount", guard.Forbidden, refused, refused, refused, patch, newRef("", "ServiceAccount", "shop", "x"), pod(spec), pod(spec)},
		{"Role", guard.Forbidden, refused, refused, refused, patch, newRef("rbac.authorization.k8s.io", "Role", "shop", "x"), pod(spec), pod(spec)},
		{"ClusterRoleBinding", guard.Forbidden, refused, refused, refused, del, newRef("rbac.authorization.k8s.io", "ClusterRoleBinding", "", "x"), pod(spec), nil},
		{"webhook", guard.Forbidden, refused, refused, refused, patch, newRef("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "", "x"), pod(spec), pod(spec)},
		{"CSR", guard.Forbidden, refused, refused, refused, patch, newRef("certificates.k8s.io", "CertificateSigningRequest", "", "x"), pod(spec), pod(spec)},
		{"APIService", guard.Forbidden, refused, refused, refused, patch, newRef("apiregistration.k8s.io", "APIService", "", "x"), pod(spec), pod(spec)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for role, want := range map[guard.Role]guard.Answer{guard.Admin: tc.admin, guard.Operator: tc.op, guard.Readonly: tc.ro, "": refused, "root": refused} {
				if got := guard.Permit(role, tc.row); got != want {
					t.Errorf("row %s, role %q: %s, want %s", tc.row, role, got, want)
				}
				v := policy.Judge(singleCase(role, tc.op1, tc.ref, tc.before, tc.after))
				if v.Answer != want || v.Answer == refused && (v.Code == "" || v.Reason == "") {
					t.Errorf("role %q: %+v, want %s", role, v, want)
				}
				if want == refused && role != "" && role != "root" || role == guard.Admin {
					if v.Row != tc.row {
						t.Errorf("role %q: row %s, want %s", role, v.Row, tc.row)
					}
				}
			}
		})
	}
}

// TestRouteRows covers the rows of the table that are not operations.
func TestRouteRows(t *testing.T) {
	t.Parallel()
	for _, row := range []guard.Row{guard.OthersSessions, guard.MintDemoKeys} {
		for role, want := range map[guard.Role]guard.Answer{guard.Admin: guard.Allow, guard.Operator: guard.Refuse, guard.Readonly: guard.Refuse, "": guard.Refuse} {
			if got := guard.Permit(role, row); got != want {
				t.Errorf("%s for %q: %s, want %s", row, role, got, want)
			}
		}
	}
	if got := guard.Permit(guard.Admin, "no such row"); got != guard.Refuse {
		t.Errorf("an unknown row is %s; want %v", got, guard.Refuse)
	}
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		answer               guard.Answer
		beforehand, fourEyes bool
		want                 bool
	}{
		{guard.Allow, false, true, false},
		{guard.Refuse, false, true, false},
		{guard.Approval, false, false, true},
		{guard.Approval, true, false, false},
		{guard.Approval, true, true, true},
		{guard.AlwaysAsk, false, false, true},
		{guard.AlwaysAsk, true, false, true},
		{guard.Answer(99), true, false, true},
	} {
		if got := (guard.Verdict{Answer: tc.answer}).Prompts(tc.beforehand, tc.fourEyes); got != tc.want {
			t.Errorf("%s, beforehand %t, four eyes %t: prompts %t; want got == %v", tc.answer, tc.beforehand, tc.fourEyes, got, tc.want)
		}
	}
}

func TestPrecheck(t *testing.T) {
	t.Parallel()
	label := operation.Operation{Verb: operation.Label, Namespace: "kube-system"}
	for _, tc := range []struct {
		name string
		role guard.Role
		op   operation.Operation
		code string
	}{
		{"write in a protected namespace", guard.Admin, label, "protected_namespace"},
		{"read in a protected namespace", guard.Readonly, operation.Operation{Verb: operation.List, Namespace: "kube-system"}, ""},
		{"read in a hidden namespace", guard.Admin, operation.Operation{Verb: operation.List, Namespace: "vault"}, "not_found"},
		{"operator deletes", guard.Operator, operation.Operation{Verb: operation.Delete, Namespace: "shop"}, "role_too_low"},
		{"operator sets resources", guard.Operator, operation.Operation{Verb: operation.SetResources}, ""},
		{"readonly scales", guard.Readonly, operation.Operation{Verb: operation.Scale}, "role_too_low"},
		{"readonly rehearses", guard.Readonly, operation.Operation{Verb: operation.Scale, DryRun: true}, ""},
		{"unknown verb", guard.Operator, operation.Operation{Verb: "exec"}, "role_too_low"},
	} {
		if v := policy.Precheck(tc.role, tc.op); v.Code != tc.code || (v.Answer == guard.Refuse) != (tc.code != "") {
			t.Errorf("%s: %+v, want %q", tc.name, v, tc.code)
		}
	}
}
