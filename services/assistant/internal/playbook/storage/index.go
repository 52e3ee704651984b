// Package storage explains what is wrong with volumes and claims.
package storage

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Index finds the objects of a snapshot; each of its tables is built on first use.
type Index struct {
	*engine.Index

	Users func() map[engine.Name][]*corev1.Pod
}

// New returns the index of this package over x, for one diagnosis.
func New(x *engine.Index) *Index {
	own := &Index{Index: x}
	own.makeTables()
	return own
}

func (x *Index) makeTables() {
	x.Users = sync.OnceValue(x.userTable)
}

// Checks returns the checks of this package.
func (x *Index) Checks() engine.Checks {
	return engine.Checks{
		Pods:    engine.BindPodChecks(x, checkAttachments),
		Objects: engine.BindObjectChecks(x, checkClaims),
	}
}
