package flag

import (
	"crypto/sha256"
	"slices"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
)

// The kill switches: when one is off the backend itself refuses, admins included.
const (
	CopilotDrawer = "copilotDrawer"
	ToolProxy     = "toolProxy"
)

// definition is one flag. Empty tenants and roles mean all.
type definition struct {
	name, description string
	standard          bool // without an override
	tenants           []string
	roles             []caller.Role
	percentage        int // of the subjects that pass tenants and roles
	tags              []string
}

var definitions = []definition{
	{name: "mlopsConsole", description: "Model registry and promotion pages", standard: true, percentage: 100},
	{name: "facilityConsole", description: "Facility pages", standard: true, percentage: 100},
	{name: "llmopsConsole", description: "LLM endpoint and evaluation pages", standard: true, percentage: 100},
	{name: "finopsConsole", description: "Cost, budget and carbon pages", standard: true, percentage: 100},
	{name: "commandPalette", description: "Command palette and search", standard: true, percentage: 100},
	{name: CopilotDrawer, description: "Copilot; off, the backend refuses its questions", standard: true, percentage: 100, tags: []string{"kill-switch"}},
	{name: ToolProxy, description: "Proxy to the tools; off, the backend refuses it", standard: true, percentage: 100, tags: []string{"kill-switch"}},
	{name: "incidentTimeline", description: "Incident timeline", percentage: 50, tags: []string{"beta"}},
}

func find(name string) (definition, bool) {
	i := slices.IndexFunc(definitions, func(d definition) bool { return d.name == name })
	if i < 0 {
		return definition{}, false
	}
	return definitions[i], true
}

// evaluation is the value of a flag for one caller, and the rule that decided it.
type evaluation struct {
	enabled bool
	reason  api.OFREPFlagReason
}

// evaluate decides: an override beats the default; off is off for everybody; on is on for admins; others must
// pass tenants, roles and then the rollout.
func (d definition) evaluate(who caller.Caller, override *bool) evaluation {
	value := d.standard
	if override != nil {
		value = *override
	}
	targeted := len(d.tenants) > 0 || len(d.roles) > 0
	switch {
	case !value:
		return evaluation{false, api.DISABLED}
	case !targeted && d.percentage >= 100:
		return evaluation{true, api.STATIC}
	case who.Role == caller.Admin:
		return evaluation{true, api.TARGETINGMATCH}
	case len(d.roles) > 0 && !slices.Contains(d.roles, who.Role), len(d.tenants) > 0 && !slices.Contains(d.tenants, who.Tenant):
		return evaluation{false, api.TARGETINGMATCH}
	case d.percentage < 100:
		return evaluation{bucketOf(d.name, who.Subject) < d.percentage, api.SPLIT}
	}
	return evaluation{true, api.TARGETINGMATCH}
}

// bucketOf returns a subject's bucket in a flag's rollout, 0 to 99: the same on every replica and at every login.
func bucketOf(flag, subject string) int {
	rest := 0
	for _, b := range sha256.Sum256([]byte(flag + ":" + subject)) {
		rest = (rest<<8 + int(b)) % 100 // the digest as a big-endian integer, modulo 100
	}
	return rest
}
