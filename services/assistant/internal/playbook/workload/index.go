// Package workload explains what is wrong with pods, their controllers and their nodes.
package workload

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/network"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/policy"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/storage"
)

// Index finds the objects of a snapshot; each of its tables is built on first use.
type Index struct {
	*engine.Index
	network *network.Index
	policy  *policy.Index
	storage *storage.Index

	left         map[nodeKind]resource.Quantity
	nodesByName  func() []*corev1.Node
	newestPlaced func() map[string]time.Time // by scheduler: creation time of the newest pod that it placed
	keepers      map[string]string           // by finalizer
}

// New returns the index of this package over x, for one diagnosis.
func New(x *engine.Index, n *network.Index, p *policy.Index, s *storage.Index) *Index {
	own := &Index{Index: x, network: n, policy: p, storage: s}
	own.makeTables()
	return own
}

func (x *Index) makeTables() {
	x.left = map[nodeKind]resource.Quantity{}
	x.nodesByName = sync.OnceValue(func() []*corev1.Node { return sortedNodes(x.Nodes) })
	x.newestPlaced = sync.OnceValue(func() map[string]time.Time { return newestPlaced(x.Pods) })
	x.keepers = map[string]string{}
}

// Checks returns the checks of this package.
func (x *Index) Checks() engine.Checks {
	return engine.Checks{
		Pods:    engine.BindPodChecks(x, checkCrashLoops, checkMemory, checkImagePulls, checkReferences, checkPending, checkUnseenPods, checkResourceClaims, checkLiveness, checkReadiness, checkEphemeralStorage, checkInitContainers, checkLingering, checkReadinessGates),
		Objects: engine.BindObjectChecks(x, checkTerminating, checkNodes, checkFullQuotas, checkDatabases, checkAutoscalers, checkBudgets, checkJobs, checkCronJobs, checkRollouts, checkAPIs, checkStatefulSets),
	}
}
