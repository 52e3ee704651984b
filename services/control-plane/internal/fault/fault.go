// Package fault is the control plane's table of errors: one row per stable code.
package fault

import (
	"net/http"
	"strings"

	"github.com/mlp-platform/platform/libs/problem"
)

// The kinds, by status.
var (
	UnknownModel          = problem.Kind{Code: "unknown_model", Status: http.StatusBadRequest, Title: "Unknown model"}
	UnknownDataset        = problem.Kind{Code: "unknown_dataset", Status: http.StatusBadRequest, Title: "Unknown dataset"}
	NoDataset             = problem.Kind{Code: "no_dataset", Status: http.StatusBadRequest, Title: "Model without dataset"}
	InvalidIdempotencyKey = problem.Kind{Code: "invalid_idempotency_key", Status: http.StatusBadRequest, Title: "Invalid idempotency key"}

	MalformedPayload = problem.Kind{Code: "malformed_payload", Status: http.StatusBadRequest, Title: "Malformed payload"}

	InvalidWebhookProof = problem.Kind{Code: "invalid_webhook_proof", Status: http.StatusUnauthorized, Title: "Invalid webhook proof"}

	OwnRequest     = problem.Kind{Code: "own_request", Status: http.StatusForbidden, Title: "Own request"}
	SecondApprover = problem.Kind{Code: "second_approver_required", Status: http.StatusForbidden, Title: "Second approver required"}

	ModelNotFound      = problem.Kind{Code: "model_not_found", Status: http.StatusNotFound, Title: "No such model"}
	RepositoryNotFound = problem.Kind{Code: "repository_not_found", Status: http.StatusNotFound, Title: "No such model repository"}
	ReadmeNotFound     = problem.Kind{Code: "readme_not_found", Status: http.StatusNotFound, Title: "No README"}
	RunNotFound        = problem.Kind{Code: "run_not_found", Status: http.StatusNotFound, Title: "No such run"}
	ApprovalNotFound   = problem.Kind{Code: "approval_not_found", Status: http.StatusNotFound, Title: "No such approval"}
	NoPendingApproval  = problem.Kind{Code: "no_pending_approval", Status: http.StatusNotFound, Title: "No pending approval"}
	VersionNotFound    = problem.Kind{Code: "version_not_found", Status: http.StatusNotFound, Title: "No such version"}
	PolicyNotFound     = problem.Kind{Code: "policy_not_found", Status: http.StatusNotFound, Title: "No promotion policy"}
	AliasNotFound      = problem.Kind{Code: "alias_not_found", Status: http.StatusNotFound, Title: "No such alias"}
	NoPreviousVersion  = problem.Kind{Code: "no_previous_version", Status: http.StatusNotFound, Title: "No previous version"}
	PromotionNotFound  = problem.Kind{Code: "promotion_not_found", Status: http.StatusNotFound, Title: "No such promotion"}

	ChangeNotFound = problem.Kind{Code: "change_not_found", Status: http.StatusNotFound, Title: "No such guarded change"}

	BudgetNotFound = problem.Kind{Code: "budget_not_found", Status: http.StatusNotFound, Title: "No such budget"}
	JobNotFound    = problem.Kind{Code: "job_not_found", Status: http.StatusNotFound, Title: "No such job"}

	ImageNotFound   = problem.Kind{Code: "image_not_found", Status: http.StatusNotFound, Title: "No such image"}
	DiffUnavailable = problem.Kind{Code: "diff_unavailable", Status: http.StatusNotFound, Title: "No diff"}

	EndpointNotFound = problem.Kind{Code: "endpoint_not_found", Status: http.StatusNotFound, Title: "No such endpoint"}
	CardNotFound     = problem.Kind{Code: "card_not_found", Status: http.StatusNotFound, Title: "No model card"}

	EvalConflict        = problem.Kind{Code: "eval_conflict", Status: http.StatusConflict, Title: "Evaluation run recorded before"}
	IdempotencyConflict = problem.Kind{Code: "idempotency_conflict", Status: http.StatusConflict, Title: "Idempotency key used before"}
	CommandInProgress   = problem.Kind{Code: "command_in_progress", Status: http.StatusConflict, Title: "Command in progress"}
	RetrainInFlight     = problem.Kind{Code: "retrain_in_flight", Status: http.StatusConflict, Title: "Retrain in flight"}
	ApprovalInProgress  = problem.Kind{Code: "approval_in_progress", Status: http.StatusConflict, Title: "Approval in progress"}
	ApprovalChanged     = problem.Kind{Code: "approval_changed", Status: http.StatusConflict, Title: "Approval changed"}
	AlreadyDecided      = problem.Kind{Code: "already_decided", Status: http.StatusConflict, Title: "Already decided"}
	RunEnded            = problem.Kind{Code: "run_ended", Status: http.StatusConflict, Title: "Run has ended"}
	VersionMismatch     = problem.Kind{Code: "version_mismatch", Status: http.StatusConflict, Title: "Version of another run"}
	PromotionDenied     = problem.Kind{Code: "promotion_denied", Status: http.StatusConflict, Title: "Promotion denied"}
	RollbackDenied      = problem.Kind{Code: "rollback_denied", Status: http.StatusConflict, Title: "Rollback denied"}
	ArtifactChanged     = problem.Kind{Code: "artifact_changed", Status: http.StatusConflict, Title: "Files changed"}
	AliasMoved          = problem.Kind{Code: "alias_moved", Status: http.StatusConflict, Title: "Alias moved"}
	AliasBusy           = problem.Kind{Code: "alias_busy", Status: http.StatusConflict, Title: "Alias being moved"}
	JobAmbiguous        = problem.Kind{Code: "job_ambiguous", Status: http.StatusConflict, Title: "Job of several clusters"}

	SyncInProgress = problem.Kind{Code: "sync_in_progress", Status: http.StatusConflict, Title: "Sync in progress"}

	AuditEmpty       = problem.Kind{Code: "audit_empty", Status: http.StatusConflict, Title: "Empty audit ledger"}
	AuditUnverified  = problem.Kind{Code: "audit_unverified", Status: http.StatusConflict, Title: "Audit ledger does not verify"}
	AuditNothingOpen = problem.Kind{Code: "audit_nothing_open", Status: http.StatusConflict, Title: "No open failure of the audit ledger"}
	AuditKeyMissing  = problem.Kind{Code: "audit_key_missing", Status: http.StatusServiceUnavailable, Title: "No audit signing key"}
	TenantNotFound   = problem.Kind{Code: "tenant_not_found", Status: http.StatusNotFound, Title: "No such tenant"}

	AdmissionFull = problem.Kind{Code: "admission_full", Status: http.StatusTooManyRequests, Title: "Too many dispatches at once"}

	OrchestratorUnreachable = problem.Kind{Code: "orchestrator_unreachable", Status: http.StatusBadGateway, Title: "Orchestrator unreachable"}
	OrchestratorRejected    = problem.Kind{Code: "orchestrator_rejected", Status: http.StatusBadGateway, Title: "Orchestrator refused"}
	TrackerUnreachable      = problem.Kind{Code: "tracker_unreachable", Status: http.StatusBadGateway, Title: "Tracker unreachable"}
	TrackerRejected         = problem.Kind{Code: "tracker_rejected", Status: http.StatusBadGateway, Title: "Tracker refused"}

	ModelRepoUnreachable = problem.Kind{Code: "modelrepo_unreachable", Status: http.StatusBadGateway, Title: "Model repository unreachable"}

	CoordinatorUnavailable = problem.Kind{Code: "coordinator_unavailable", Status: http.StatusServiceUnavailable, Title: "Coordinator unavailable"}
	DispatchTargetMissing  = problem.Kind{Code: "dispatch_target_missing", Status: http.StatusServiceUnavailable, Title: "Dispatch target missing"}
	WebhookSecretMissing   = problem.Kind{Code: "webhook_secret_missing", Status: http.StatusServiceUnavailable, Title: "Webhook secret not set"}
	WebhooksBusy           = problem.Kind{Code: "webhooks_busy", Status: http.StatusServiceUnavailable, Title: "Too many deliveries at once"}
	StoreUnavailable       = problem.Kind{Code: "store_unavailable", Status: http.StatusServiceUnavailable, Title: "State store unavailable"}
)

// Invalid returns a 422 that names one field by its path in the request.
func Invalid(msg string, loc ...string) *problem.Error {
	return problem.Validation.New(strings.Join(loc, ".") + ": " + msg + ".").WithErrors(problem.Field{Loc: loc, Msg: msg})
}

// InvalidAll returns a 422 for all faults found; nil if there are none.
func InvalidAll(fields []problem.Field) error {
	switch len(fields) {
	case 0:
		return nil
	case 1:
		return Invalid(fields[0].Msg, fields[0].Loc...)
	}
	parts := make([]string, 0, len(fields))
	for _, f := range fields {
		parts = append(parts, strings.Join(f.Loc, ".")+": "+f.Msg)
	}
	return problem.Validation.New(strings.Join(parts, "; ") + ".").WithErrors(fields...)
}
