// Package compliance keeps how model versions are classified, and where what
// proves it lies. The technical file is named, not read: it is in the model
// repository or beside it.
package compliance

import (
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// maxPath bounds the path of a technical file, in bytes.
const maxPath = 512

var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Service keeps the records. They belong to the tenant that wrote them; those of
// tenant platform are everybody's, where they have none of their own.
type Service struct {
	Store    *store.Store
	Registry *registry.Registry
	Now      func() time.Time
}

// key is that of a record within a tenant.
type key struct {
	Model   string `json:"model"`
	Version string `json:"version"`
}

// List serves GET /compliance.
func (s *Service) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[key](c)
	if err != nil {
		return err
	}
	from := page.Start()
	p, _ := auth.FromContext(ctx)
	rows, err := s.Store.ListCompliance(ctx, store.ListComplianceParams{
		Tenant: p.Tenant, ModelID: wire.OptionalText(registry.ID(c.QueryParam("model"))), AfterModel: from.Model, AfterVersion: from.Version, MaxRows: page.Fetch(),
	})
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.Compliance) key { return key{r.ModelID, r.Version} })
	out := api.ComplianceList{Items: make([]api.Compliance, 0, len(rows)), NextCursor: next}
	for _, r := range rows {
		out.Items = append(out.Items, view(r))
	}
	return c.JSON(http.StatusOK, out)
}

// Put serves PUT /compliance/{model}/{version}.
func (s *Service) Put(c echo.Context) error {
	ctx := c.Request().Context()
	var body api.ComplianceInput
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	row, err := check(c.Param("version"), body)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	row.ModelID = registry.ID(c.Param("model"))
	if err := s.Registry.RequireKnown(ctx, s.Store.Queries, p.Tenant, row.ModelID); err != nil {
		return err
	}
	var after store.Compliance
	row.Tenant, row.Now, row.UpdatedBy = p.Tenant, s.Now(), p.Name
	if err := s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		var details map[string]any
		if after, details, err = store.Replace(ctx, tx, store.Record[store.Compliance]{
			Key: "compliance:" + p.Tenant + ":" + row.ModelID,
			Get: func() (store.Compliance, error) {
				return tx.GetCompliance(ctx, store.GetComplianceParams{Tenant: p.Tenant, ModelID: row.ModelID, Version: row.Version})
			},
			Put:  func() (store.Compliance, error) { return tx.PutCompliance(ctx, row) },
			Told: func(r store.Compliance) any { return view(r) },
		}); err != nil {
			return err
		}
		return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "compliance.set", event.Model(row.ModelID), event.OK, details))
	}); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, view(after))
}

func check(version string, b api.ComplianceInput) (store.PutComplianceParams, error) {
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
		if out.Provenance = &h; !hash.MatchString(h) {
			bad("must be 64 hexadecimal digits", "body", "provenanceHash")
		}
	}
	return out, fault.InvalidAll(faults)
}

// validPath says whether s names a file below wherever it is looked for, on any
// system: neither a backslash nor a drive leads out.
func validPath(s string) bool {
	return fs.ValidPath(s) && s != "." && len(s) <= maxPath && !strings.ContainsAny(s, `\:`) &&
		strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func view(r store.Compliance) api.Compliance {
	return api.Compliance{
		Tenant: r.Tenant, Model: r.ModelID, Version: r.Version, RiskClass: api.RiskClass(r.RiskClass), TechnicalFile: r.TechnicalFile,
		Provenance: r.Provenance, UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: r.UpdatedBy,
	}
}
