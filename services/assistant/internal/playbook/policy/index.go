// Package policy explains what quotas, limit ranges, roles and webhooks prevent.
package policy

import (
	"sync"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// Index finds the objects of a snapshot; each of its tables is built on first use.
type Index struct {
	*engine.Index

	rejected func() []rejection
}

// New returns the index of this package over x, for one diagnosis.
func New(x *engine.Index) *Index {
	own := &Index{Index: x}
	own.makeTables()
	return own
}

func (x *Index) makeTables() {
	x.rejected = sync.OnceValue(x.rejections)
}

// Checks returns the checks of this package.
func (x *Index) Checks() engine.Checks {
	return engine.Checks{
		Objects: engine.BindObjectChecks(x, checkQuotas, checkLimitRanges, checkDenials, checkAccounts, checkAdmission),
	}
}
