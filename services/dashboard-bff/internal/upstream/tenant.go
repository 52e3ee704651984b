package upstream

import "github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"

// SharedTenant marks what belongs to no tenant and may be read by all.
const SharedTenant = "platform"

// VisibleTo reports whether a caller may see what belongs to owner. The services filter by tenant themselves; an answer
// made with a credential of their own would hold another tenant's.
func VisibleTo(who caller.Caller, owner string) bool {
	return owner == who.Tenant || owner == SharedTenant
}
