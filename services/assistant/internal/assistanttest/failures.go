// Package assistanttest is the assistant's test kit: helpers shared by the tests of several packages.
package assistanttest

import "github.com/mlp-platform/platform/services/assistant/internal/fault"

// Failures returns every failure that an error event may report. TestFailures of package fault keeps the list complete.
func Failures() []fault.Failure {
	return []fault.Failure{
		fault.ClusterUnreachable, fault.ClusterForbidden, fault.MetricsUnavailable, fault.LogsUnavailable, fault.EngineFailed,
		fault.ModelUnavailable, fault.ContextOverflow, fault.BudgetSpent, fault.TurnTimeout, fault.Superseded, fault.Interrupted, fault.SessionDeleted,
		fault.ShuttingDown, fault.StreamStore, fault.InternalFailure,
	}
}
