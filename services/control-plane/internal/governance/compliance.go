package governance

import (
	"io/fs"
	"regexp"
	"strings"
	"time"
	"unicode"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// maxTechnicalFilePath limits the path of a technical file, in bytes.
const maxTechnicalFilePath = 512

var hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Classifications stores the records. A record belongs to the tenant that wrote it; records of tenant platform apply to
// every tenant without its own.
type Classifications struct {
	store    *store.Store
	registry *registry.Registry
	now      func() time.Time
}

// complianceKey is the key of a record within a tenant.
type complianceKey struct {
	Model   string `json:"model"`
	Version string `json:"version"`
}

func checkComplianceInput(version string, b api.ComplianceInput) (store.PutComplianceParams, error) {
	var faults []problem.Field
	bad := func(msg string, loc ...string) { faults = append(faults, problem.Field{Loc: loc, Msg: msg}) }
	out := store.PutComplianceParams{Version: version, RiskClass: string(b.RiskClass), TechnicalFile: b.TechnicalFilePath}
	if !wire.Label(version) {
		bad(wire.LabelRule, "path", "version")
	}
	if !b.RiskClass.Valid() {
		bad("must be minimal, limited, high or prohibited", "body", "riskClass")
	}
	if b.TechnicalFilePath != nil && !validPath(*b.TechnicalFilePath) {
		bad("must be the relative path of a file, with / between names and without . and .., at most 512 bytes", "body", "technicalFilePath")
	}
	if b.ProvenanceHash != nil {
		h := strings.ToLower(*b.ProvenanceHash)
		if out.Provenance = &h; !hashPattern.MatchString(h) {
			bad("must be 64 hexadecimal digits", "body", "provenanceHash")
		}
	}
	return out, fault.InvalidAll(faults)
}

// validPath reports whether s is a path that stays below its base folder on any system: neither a backslash nor a drive
// leads out.
func validPath(s string) bool {
	return fs.ValidPath(s) && s != "." && len(s) <= maxTechnicalFilePath && !strings.ContainsAny(s, `\:`) &&
		strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func viewCompliance(r store.Compliance) api.Compliance {
	return api.Compliance{
		Tenant: r.Tenant, Model: r.ModelID, Version: r.Version, RiskClass: api.RiskClass(r.RiskClass), TechnicalFile: r.TechnicalFile,
		Provenance: r.Provenance, UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: r.UpdatedBy,
	}
}
