package playbook_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
)

const noSuchHost = "dial tcp: lookup queu on 10.96.0.10:53: no such host\n"

// TestObjectAnswers is about troubles that no container shows by itself.
func TestObjectAnswers(t *testing.T) {
	t.Parallel()
	checkAnswers(t, []answerCase{
		{"a11_absent_class", "", playbook.ClaimUnbound, "", []string{"storage class `fast-ssd` does not exist", "classes that exist are `slow`, `standard`", "warehouse-0", "20Gi"}, []string{"node"}},
		{"a12_quota", "", playbook.QuotaExceeded, operation.Scale, []string{"quota `team-a`", "`pods` used 2 of 2", "no scheduler has seen them"}, []string{"pending", "node"}},
		{"limit_range", "", playbook.LimitRangeViolated, operation.SetResources, []string{"maximum memory per Container is 1Gi", "limit 2Gi", "`sizes`"}, []string{"quota", "scheduled"}},
		{"a16_ingress_port", "", playbook.IngressBackend, operation.Patch, []string{"port `8081` of service `storefront`", "`80 (http)`"}, []string{"restart", "certificate"}},
		{"a17_policy", "", playbook.PolicyBlocks, operation.Patch, []string{"`api-callers`", "`role=frontend`", "endpoints exist, 1 ready pod", "`role=backend`", "A consequence"}, []string{"selector"}},
		{"wrong_name", noSuchHost, playbook.NameResolution, "", []string{"no service `queu` in namespace `crm`", "nearest that exists is `queue`", "QUEUE_ADDR"}, []string{"policy"}},
		{"a18_namespace", "", playbook.StuckTerminating, "", []string{"`backups.example/archive`", "owner", "deployment `backups-operator` in namespace `tools` (scaled to 0)", "2 hours ago", "as the last step"}, []string{"What helps: Take", "kubectl"}},
		{"a19_node_not_ready", "", playbook.NodeTrouble, operation.Cordon, []string{"Node `node-1`", "Unknown since 2026-01-02T11:21:00Z (39 minutes ago)", "`shop/edge-abcde`", "last renewed its lease"}, []string{"container `edge`", "service `edge` in namespace"}},
		{"a20_no_requests", "", playbook.AutoscalerIdle, "", []string{"no cpu request has container `web`", "miss the cpu request"}, []string{"maxim", "metrics-server"}},
		{"a21_budget", "", playbook.BudgetDeadlock, "", []string{"deadlock: this PDB", "minAvailable `2`", "healthy 2 of 2", "node `node-1`, which is cordoned"}, []string{"delete"}},
	})
}
