package dispatch

import (
	"fmt"
	"sync"
	"time"

	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
)

// Admission limits the dispatches of this process that wait for the orchestrator,
// so that requests do not pile up when it is slow.
type Admission struct {
	total, perTenant int

	mu      sync.Mutex // guards those below
	running int
	tenants map[string]int
}

// NewAdmission allows total concurrent dispatches, and perTenant of each tenant.
func NewAdmission(total, perTenant int) *Admission {
	return &Admission{total: total, perTenant: perTenant, tenants: map[string]int{}}
}

// Enter admits a dispatch, until leave is called; the error is 429 admission_full.
func (a *Admission) Enter(tenant string) (leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.tenants[tenant] >= a.perTenant:
		return nil, fault.AdmissionFull.New(fmt.Sprintf("%d dispatches of your tenant already wait on the orchestrator; try again shortly.", a.perTenant)).After(time.Second)
	case a.running >= a.total:
		return nil, fault.AdmissionFull.New(fmt.Sprintf("%d dispatches already wait on the orchestrator; try again shortly.", a.total)).After(time.Second)
	}
	a.running++
	a.tenants[tenant]++
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.running--
		if a.tenants[tenant]--; a.tenants[tenant] == 0 {
			delete(a.tenants, tenant)
		}
	}), nil
}
