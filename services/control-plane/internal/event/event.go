// Package event builds the control plane's outbox events: the payloads of the job,
// approval, deploy and event namespaces, and the audit fact of each action.
package event

import (
	"maps"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
)

// PlatformTenant owns facts that belong to no tenant; every tenant may read them.
const PlatformTenant = "platform"

// Source names this service in the audit ledger.
const Source = "control-plane"

// Outcomes of an audit fact.
const (
	OK     = "ok"
	Denied = "denied"
	Failed = "failed"
)

// Job is the data of job.dispatched, started, completed, failed, cancelled,
// crashed and lost; each carries the fields it knows.
type Job struct {
	Model      string             `json:"model"`
	Dataset    string             `json:"dataset"`
	FlowRunID  string             `json:"flow_run_id"`
	Origin     string             `json:"origin,omitempty"`
	ApprovalID *uuid.UUID         `json:"approval_id,omitempty"`
	CommitSHA  *string            `json:"commit_sha,omitempty"`
	RunID      *string            `json:"run_id,omitempty"`
	Version    *string            `json:"version,omitempty"`
	Metrics    map[string]float64 `json:"metrics,omitempty"`
	Reason     *string            `json:"reason,omitempty"`
}

// JobStarted is the data of job.started; run_id is null if the run began no run in the tracker.
type JobStarted struct {
	Model     string  `json:"model"`
	RunID     *string `json:"run_id"`
	FlowRunID string  `json:"flow_run_id"`
	Dataset   string  `json:"dataset"`
}

// Approval is the data of approval.created, approved, rejected, expired and dispatch_failed.
type Approval struct {
	ID          uuid.UUID `json:"id"`
	Kind        string    `json:"kind"`
	Model       string    `json:"model"`
	CommitSHA   string    `json:"commit_sha,omitempty"`
	RequestedBy string    `json:"requested_by"`
	ResolvedBy  *string   `json:"resolved_by,omitempty"`
	FlowRunID   *string   `json:"flow_run_id,omitempty"`
	Reason      *string   `json:"reason,omitempty"`
}

// AliasChanged is the data of deploy.alias_changed; version is null if the alias was removed.
type AliasChanged struct {
	Model           string  `json:"model"`
	Alias           string  `json:"alias"`
	Version         *string `json:"version"`
	PreviousVersion *string `json:"previous_version"`
	Via             string  `json:"via"`
	// Digest of the files admitted with the alias, if the gate evaluated any.
	Digest *string `json:"digest,omitempty"`
}

// Promotion is the data of deploy.promoted and promotion_denied.
type Promotion struct {
	Model       string     `json:"model"`
	Version     string     `json:"version"`
	From        string     `json:"from"`
	To          string     `json:"to"`
	PromotionID *uuid.UUID `json:"promotion_id,omitempty"`
	Reasons     []string   `json:"reasons,omitempty"`
}

// FreshnessChanged is the data of event.freshness_changed.
type FreshnessChanged struct {
	Model    string `json:"model"`
	Status   string `json:"status"`
	Previous string `json:"previous"`
}

// Of builds an event; subject is the id of the object that it concerns.
func Of(tenant, actor, namespace, name, subject string, payload any) outbox.Event {
	return outbox.Event{Tenant: tenant, Namespace: namespace, Name: name, SubjectID: subject, Actor: actor, Payload: payload}
}

// Audit builds the audit fact that actor performed action on target, such as "model:JPCP", or was refused.
func Audit(tenant, actor, action, target, outcome string, details map[string]any) outbox.Event {
	if details == nil {
		details = map[string]any{}
	}
	return outbox.Audit(outbox.AuditFact{
		Tenant: tenant, Actor: actor, Action: action, Target: target, Outcome: outcome, Source: Source, Details: details,
	})
}

// Shared is Audit for an action on an object without a tenant, such as a platform-wide setting: every tenant may read
// the actor and the actor's tenant.
func Shared(tenant, actor, action, target, outcome string, details map[string]any) outbox.Event {
	merged := map[string]any{"actor_tenant": tenant}
	maps.Copy(merged, details)
	return Audit(PlatformTenant, actor, action, target, outcome, merged)
}

// Model is the audit target of a model.
func Model(id string) string { return "model:" + id }
