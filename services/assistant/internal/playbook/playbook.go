package playbook

import (
	"slices"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/application"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/certificate"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/gateway"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/network"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/policy"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/release"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/storage"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/workload"
)

// Diagnose finds the problems in a namespace, or with an empty one everywhere. Causes come first and contain their
// consequences; pods of one workload with one problem are one finding.
func Diagnose(s *engine.Snapshot, namespace string) []engine.Finding {
	x := engine.NewIndex(s)
	n, p, v := network.New(x), policy.New(x), storage.New(x)
	w := workload.New(x, n, p, v)
	return engine.Diagnose(x, namespace, w.Checks(), v.Checks(), n.Checks(), p.Checks(), gateway.New(x).Checks(), certificate.New(x).Checks(), application.New(x).Checks(), release.New(x).Checks())
}

// Findings is Diagnose, run once for all callers that share one snapshot; see [engine.Snapshot.DiagnoseOnce].
func Findings(s *engine.Snapshot, namespace string) []engine.Finding {
	return s.DiagnoseOnce(namespace, func() []engine.Finding { return Diagnose(s, namespace) })
}

// Meant explains settings that may be intentional and yet answer a user's question; see [workload.Index.Meant].
func Meant(s *engine.Snapshot) []engine.Finding {
	x := engine.NewIndex(s)
	n, p, v := network.New(x), policy.New(x), storage.New(x)
	return slices.Concat(n.ClosedServices(), n.NamelessPods(), n.IdleCertificates(), application.New(x).Drifted(), workload.New(x, n, p, v).Meant())
}

// Conclude finds causes in the logs of running pods; see [workload.Index.Conclude].
func Conclude(s *engine.Snapshot, messages []workload.Message) []engine.Finding {
	if len(messages) == 0 {
		return nil
	}
	x := engine.NewIndex(s)
	n, p, v := network.New(x), policy.New(x), storage.New(x)
	return workload.New(x, n, p, v).Conclude(messages)
}
