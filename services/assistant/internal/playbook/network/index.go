// Package network explains what is wrong with services, ingresses, network policies and name resolution.
package network

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Index finds the objects of a snapshot; each of its tables is built on first use.
type Index struct {
	*engine.Index

	nameServing func() nameServing
	callers     func() map[*corev1.Service][]string
	nearby      func() *engine.Chooser[*near]
	limiting    func() *policyTable
	closest     map[string]closest     // of labels: see nearTo
	hosts       map[hostKey][]address  // by values of variables
	asks        map[*corev1.Pod][]call // by pod
}

// New returns the index of this package over x, for one diagnosis.
func New(x *engine.Index) *Index {
	own := &Index{Index: x}
	own.makeTables()
	return own
}

func (x *Index) makeTables() {
	x.nameServing = sync.OnceValue(x.findNameServer)
	x.callers = sync.OnceValue(x.callerTable)
	x.nearby = sync.OnceValue(x.nearTable)
	x.limiting = sync.OnceValue(x.policyTable)
	x.closest = map[string]closest{}
	x.hosts = map[hostKey][]address{}
	x.asks = map[*corev1.Pod][]call{}
}

// Checks returns the checks of this package.
func (x *Index) Checks() engine.Checks {
	return engine.Checks{
		Pods:    engine.BindPodChecks(x, checkLookups, checkVariables, checkResolvers),
		Objects: engine.BindObjectChecks(x, checkServices, checkAddresses, checkIngresses, checkIngressIntent, checkCertificates, checkPolicies, checkNameServer),
	}
}
