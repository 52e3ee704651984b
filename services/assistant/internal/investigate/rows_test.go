package investigate_test

import "testing"

const unsetLog = "INFO starting\nFATAL DATABASE_URL is not set\n"

// TestQuestionsOfTheTable asks the rows A1 to A24 of the acceptance table verbatim.
func TestQuestionsOfTheTable(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		row, query, log string
		files           []string
		must, not       []string
	}{
		{"A1", "why does api crash?", unsetLog, []string{"a1_empty_variable"}, []string{"Deployment `api`", "DATABASE_URL", "FATAL DATABASE_URL is not set"}, []string{"delete pod"}},
		{"A2", "why does api crash?", "", []string{"a2_command_not_in_image"}, []string{"/bin/serve", "127"}, []string{"log"}},
		{"A3", "why restarts?", "", []string{"a3_out_of_memory"}, []string{"137", "64Mi"}, []string{"probe"}},
		{"A4", "why not starting?", "", []string{"a4_absent_tag"}, []string{"shop/web:2.4.0", "no matter of credentials (auth)"}, []string{"2.4.1"}},
		{"A5", "why not starting?", "", []string{"a5_registry_refuses"}, []string{"pull credentials"}, []string{"tag"}},
		{"A6", "why not starting?", "", []string{"a6_absent_configmap"}, []string{"settlements-config", "was searched"}, []string{"image"}},
		{"A7", "why not starting?", "", []string{"a7_secret_key"}, []string{"DB_URL", "DATABASE_URL"}, []string{"hunter2"}},
		{"A8", "why not starting?", "", []string{"a8_volume_key"}, []string{"portal.yaml", "ConfigMap exists"}, []string{"does not exist"}},
		{"A9", "why pending?", "", []string{"a9_asks_too_much"}, []string{"short of 45Gi", "node-2"}, []string{"taint"}},
		{"A10", "why pending?", "", []string{"a10_all_tainted"}, []string{"gpu=only:NoSchedule", "toleration"}, []string{"memory"}},
		{"A11", "why pending?", "", []string{"a11_absent_class"}, []string{"storage class"}, []string{"taint"}},
		{"A12", "where are my pods?", "", []string{"a12_quota"}, []string{"quota"}, []string{"the scheduler"}},
		{"A13", "why restarts?", "", []string{"a13_liveness_path"}, []string{"liveness probe", "`/health`"}, []string{"OOM"}},
		{"A14", "no traffic, why?", "", []string{"a14_probe_port"}, []string{"9999", "8080", "no endpoints"}, []string{"DNS"}},
		{"A15", "no traffic, why?", "", []string{"a15_selector"}, []string{"version=v2", "version=v1"}, []string{"NetworkPolicy"}},
		{"A16", "503, why?", "", []string{"a16_ingress_port"}, []string{"port"}, []string{"restart"}},
		{"A17", "cannot connect", "", []string{"a17_policy"}, []string{"role=frontend", "endpoint"}, []string{"the selector of the service"}},
		{"A18", "why terminating?", "", []string{"a18_namespace"}, []string{"finalizer"}, nil},
		{"A19", "what is wrong?", "", []string{"a19_node_not_ready"}, []string{"Node `"}, nil},
		{"A20", "why no scaling?", "", []string{"a20_no_requests"}, []string{"request"}, []string{"raise max"}},
		{"A21", "why is drain stuck?", "", []string{"a21_budget"}, []string{"disruption"}, []string{"delete pdb", "kubectl delete"}},
		{"A22", "why Init:0/1?", "waiting for db:5432", []string{"a22_init_waits"}, []string{"init container"}, nil},
		{"A23", "app gets 403", `User "system:serviceaccount:crm:app" cannot list resource "pods"`, []string{"a23_account_without_binding"}, nil, []string{"cluster-admin"}},
		{"A24", "what is wrong in shop?", unsetLog, []string{"a1_empty_variable", "a4_absent_tag", "a15_selector"}, []string{"3 things are wrong", "**1. Deployment `api`", "**2. Deployment `web`", "**3. Service `catalog`"}, []string{"**4."}},
	} {
		t.Run(row.row, func(t *testing.T) {
			t.Parallel()
			s := readFixture(t, row.log, row.files...)
			for _, scope := range []string{"", namespaceOf(s)} {
				a := askOnce(t, toolsOn(s), scope, row.query)
				checkAnswer(t, row.query, a, row.must, row.not)
				if len(a.write) > 0 {
					t.Errorf("a question wants to write: %v", a.write)
				}
			}
		})
	}
}
