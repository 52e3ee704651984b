package approval

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/command"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// Limits of a change notice.
const (
	MaxModels    = 500
	MaxFiles     = 10_000
	maxPath      = 4096
	maxMessage   = 64 << 10
	maxFaultsOut = 20 // the first errors of a long list are enough
)

// API serves change notices and approvals.
type API struct{ Service *Service }

var commit = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`)

// Changes serves POST /api/changes.
func (a API) Changes(c echo.Context) error {
	ctx := c.Request().Context()
	var body api.ChangeNotice
	if err := wire.Decode(c, &body); err != nil {
		return err
	}
	n, err := parseNotice(body)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	noted, err := a.Service.Note(ctx, p, n)
	if err != nil {
		return err
	}
	out := api.ChangeResult{
		Created: orEmpty(noted.Created), Existing: orEmpty(noted.Existing), Superseded: orEmpty(noted.Superseded), Warnings: []string{},
	}
	for _, m := range n.Models {
		if _, ok := a.Service.Registry.Find(m); !ok {
			out.Warnings = append(out.Warnings, fmt.Sprintf("model %s is not in the model repository; its record cannot be approved until it is", m))
		}
	}
	return c.JSON(http.StatusOK, out)
}

func orEmpty(ids []uuid.UUID) []uuid.UUID {
	if ids == nil {
		return []uuid.UUID{}
	}
	return ids
}

// parseNotice validates a change notice; duplicate models count once.
func parseNotice(b api.ChangeNotice) (Notice, error) {
	var faults []problem.Field
	bad := func(msg string, loc ...string) {
		if len(faults) < maxFaultsOut {
			faults = append(faults, problem.Field{Loc: append([]string{"body"}, loc...), Msg: msg})
		}
	}
	n := Notice{CommitSHA: b.CommitSha, ChangedFiles: []string{}, Origin: "ci"}
	switch {
	case len(b.ModelIds) == 0:
		bad("must name 1 to 500 models", "model_ids")
	case len(b.ModelIds) > MaxModels:
		bad(fmt.Sprintf("names %d models; at most %d", len(b.ModelIds), MaxModels), "model_ids")
	default:
		for i, id := range b.ModelIds {
			if !registry.ValidName(id) {
				bad(registry.NameRule, "model_ids", fmt.Sprint(i))
			} else if id = registry.ID(id); !slices.Contains(n.Models, id) {
				n.Models = append(n.Models, id)
			}
		}
	}
	if !commit.MatchString(b.CommitSha) {
		bad("must be 1 to 128 letters, digits, '.', '_', '/' or '-'", "commit_sha")
	}
	if b.CommitMsg != nil {
		if n.CommitMsg = *b.CommitMsg; len(n.CommitMsg) > maxMessage {
			bad(fmt.Sprintf("is longer than %d bytes", maxMessage), "commit_msg")
		}
	}
	if b.ChangedFiles != nil {
		if n.ChangedFiles = *b.ChangedFiles; len(n.ChangedFiles) > MaxFiles {
			bad(fmt.Sprintf("names %d files; at most %d", len(n.ChangedFiles), MaxFiles), "changed_files")
		} else {
			for i, f := range n.ChangedFiles {
				if f == "" || len(f) > maxPath {
					bad(fmt.Sprintf("must be 1 to %d bytes", maxPath), "changed_files", fmt.Sprint(i))
				}
			}
		}
	}
	return n, fault.InvalidAll(faults)
}

// List serves GET /approvals.
func (a API) List(c echo.Context) error {
	ctx := c.Request().Context()
	page, err := wire.PageOf[uuid.UUID](c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	q := store.ListApprovalsParams{Tenant: p.Tenant, Before: page.After, MaxRows: page.Fetch()}
	if v := c.QueryParam("status"); v != "" {
		if !api.ApprovalStatus(v).Valid() {
			return fault.Invalid("must be pending, approving, approved, rejected or expired", "query", "status")
		}
		q.Status = &v
	}
	rows, err := a.Service.Store.ListApprovals(ctx, q)
	if err != nil {
		return err
	}
	rows, next := wire.CutPage(page, rows, func(r store.ListApprovalsRow) uuid.UUID { return r.Approval.ID })
	if next != nil {
		c.Response().Header().Set("X-Next-Cursor", *next)
	}
	out := make([]api.Approval, 0, len(rows))
	for _, r := range rows {
		out = append(out, toApproval(r.Approval, r.CommitMsg, r.ChangedFiles))
	}
	return c.JSON(http.StatusOK, out)
}

// Get serves GET /approvals/{id}.
func (a API) Get(c echo.Context) error {
	ctx := c.Request().Context()
	id, err := wire.PathID(c, fault.ApprovalNotFound)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	row, err := a.Service.Store.GetApproval(ctx, store.GetApprovalParams{ID: id, Tenant: p.Tenant})
	switch {
	case store.None(err):
		return fault.ApprovalNotFound.New("There is no such approval in your tenant; GET /approvals lists them.")
	case err != nil:
		return err
	}
	return c.JSON(http.StatusOK, toApproval(row.Approval, row.CommitMsg, row.ChangedFiles))
}

// ApproveModel serves POST /approve/{model}.
func (a API) ApproveModel(c echo.Context) error {
	return a.approve(c, Which{Model: registry.ID(c.Param("model"))})
}

// ApproveByID serves POST /approvals/{id}/approve.
func (a API) ApproveByID(c echo.Context) error {
	id, err := wire.PathID(c, fault.ApprovalNotFound)
	if err != nil {
		return err
	}
	return a.approve(c, Which{ID: id})
}

func (a API) approve(c echo.Context, w Which) error {
	ctx := c.Request().Context()
	var body api.ApproveRequest
	if err := wire.DecodeOptional(c, &body); err != nil {
		return err
	}
	d, err := parseDecision(body)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	got, err := a.Service.Approve(ctx, p, w, d)
	if err != nil {
		return err
	}
	out := api.ApproveResult{
		ModelId: got.Record.ModelID, ApprovalId: got.Record.ID, Status: api.ApprovalStatus(got.Record.Status),
		FlowRunId: wire.OptionalText(got.FlowRunID), PromotionId: got.Record.PromotionID,
	}
	if got.Record.Status == Pending {
		yes := true
		out.SecondApprovalNeeded = &yes
	}
	if got.FlowRunID != "" {
		out.StatusUrl = wire.OptionalText(command.StatusURL(got.FlowRunID))
	}
	return c.JSON(http.StatusOK, out)
}

func parseDecision(b api.ApproveRequest) (Decision, error) {
	var d Decision
	var faults []problem.Field
	bad := func(msg, name string) { faults = append(faults, problem.Field{Loc: []string{"body", name}, Msg: msg}) }
	if b.DatasetName != nil {
		if d.Dataset = *b.DatasetName; !registry.ValidName(d.Dataset) {
			bad(registry.NameRule, "dataset_name")
		}
	}
	if b.BackendName != nil {
		if d.Backend = string(*b.BackendName); !b.BackendName.Valid() {
			bad("must be public_archive, object_store, dataplane or local", "backend_name")
		}
	}
	if b.Reason != nil {
		if d.Reason = *b.Reason; len(d.Reason) > wire.MaxReason {
			bad(fmt.Sprintf("is longer than %d bytes", wire.MaxReason), "reason")
		}
	}
	d.Shown = b.ApprovalId
	return d, fault.InvalidAll(faults)
}

// RejectModel serves POST /reject/{model}.
func (a API) RejectModel(c echo.Context) error {
	return a.reject(c, Which{Model: registry.ID(c.Param("model"))})
}

// RejectByID serves POST /approvals/{id}/reject.
func (a API) RejectByID(c echo.Context) error {
	id, err := wire.PathID(c, fault.ApprovalNotFound)
	if err != nil {
		return err
	}
	return a.reject(c, Which{ID: id})
}

func (a API) reject(c echo.Context, w Which) error {
	ctx := c.Request().Context()
	reason, err := wire.Reason(c)
	if err != nil {
		return err
	}
	p, _ := auth.FromContext(ctx)
	got, err := a.Service.Reject(ctx, p, w, reason)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.RejectResult{
		ModelId: got.Record.ModelID, ApprovalId: got.Record.ID, Status: api.ApprovalStatus(got.Record.Status),
	})
}

func toApproval(a store.Approval, msg string, files []string) api.Approval {
	return api.Approval{
		Id: a.ID, Kind: api.ApprovalKind(a.Kind), Origin: api.ApprovalOrigin(a.Origin), ModelId: a.ModelID, DatasetName: a.DatasetName,
		Status: api.ApprovalStatus(a.Status), CommitSha: a.CommitSha, CommitMsg: msg, ChangedFiles: files, Tenant: a.Tenant,
		RequestedBy: a.RequestedBy, ResolvedBy: a.ResolvedBy, RequestedAt: a.RequestedAt.UTC(), ResolvedAt: wire.UTC(a.ResolvedAt),
		PrefectRunId: a.PrefectRunID, RejectReason: a.RejectReason, PromotionId: a.PromotionID, ExpiresAt: wire.UTC(a.ExpiresAt),
		UpdatedAt: a.UpdatedAt.UTC(), UpdatedBy: a.UpdatedBy,
		Requesters: a.Requesters, PersonUnknown: a.PersonUnknown, FirstApprover: a.FirstApprover,
	}
}
