-- name: LockKeys :exec
-- For what may have no row to lock, until the transaction ends; the sorted order keeps two from a deadlock.
select pg_advisory_xact_lock(hashtextextended(k, 0)) from (select unnest(@keys::text[]) k order by 1) keys;

-- name: InsertNotice :exec
insert into notices (id, commit_msg, changed_files) values (@id, @commit_msg, @changed_files);

-- name: InsertApproval :one
insert into approvals (id, kind, origin, tenant, model_id, dataset_name, status, commit_sha, notice_id,
    promotion_id, requested_by, requested_at, expires_at, updated_at, updated_by, requesters, person_unknown, traceparent)
values (@id, @kind, @origin, @tenant, @model_id, @dataset_name, 'pending', @commit_sha, @notice_id,
    @promotion_id, @requested_by, @now, @expires_at, @now, @requested_by, @requesters, @person_unknown, @traceparent)
returning *;

-- name: UndecidedRetrains :many
-- What is pending or being approved for these models.
select * from approvals
where tenant = @tenant and kind = 'retrain' and status in ('pending', 'approving') and model_id = any(@model_ids::text[])
for update;

-- name: UndecidedRetrain :many
select * from approvals
where tenant = @tenant and kind = 'retrain' and status in ('pending', 'approving') and model_id = @model_id
order by id desc
for update;

-- name: LockApproval :one
select * from approvals where id = @id and tenant = @tenant for update;

-- name: GetApproval :one
select sqlc.embed(a), coalesce(n.commit_msg, '') as commit_msg, coalesce(n.changed_files, '{}')::text[] as changed_files
from approvals a left join notices n on n.id = a.notice_id
where a.id = @id and a.tenant = @tenant;

-- name: GetApprovalOfAnyTenant :one
select * from approvals where id = @id;

-- name: GetApprovalOfPromotion :one
select * from approvals where promotion_id = @promotion_id for update;

-- name: TraceOfPromotion :one
-- The trace that the promotion was opened in; empty if it has none.
select coalesce(max(traceparent), '')::text from approvals where promotion_id = @promotion_id;

-- name: ListApprovals :many
select sqlc.embed(a), coalesce(n.commit_msg, '') as commit_msg, coalesce(n.changed_files, '{}')::text[] as changed_files
from approvals a left join notices n on n.id = a.notice_id
where a.tenant = @tenant
  and (sqlc.narg(status)::text is null or a.status = sqlc.narg(status))
  and (sqlc.narg(before)::uuid is null or a.id < sqlc.narg(before))
order by a.id desc
limit @max_rows;

-- name: SetApprovalStatus :one
-- Moves a record from one state to another; no row when it is not in the first any more.
update approvals
set status = @to_status, dataset_name = coalesce(sqlc.narg(dataset_name), dataset_name),
    resolved_by = sqlc.narg(resolved_by), resolved_at = sqlc.narg(resolved_at),
    prefect_run_id = sqlc.narg(prefect_run_id), reject_reason = sqlc.narg(reject_reason),
    updated_at = @now, updated_by = @updated_by
where id = @id and status = @from_status
returning *;

-- name: ExpireApprovals :many
-- Retrains only: a promotion expires together with its record.
update approvals set status = 'expired', reject_reason = @reason, updated_at = @now, updated_by = 'system:expiry'
where id in (
    select a.id from approvals a
    where a.kind = 'retrain' and a.status = 'pending' and a.expires_at <= @now
    order by a.id limit 500 for update skip locked)
returning *;

-- name: PendingApprovals :one
select count(*) as pending, min(requested_at)::timestamptz as oldest from approvals where status = 'pending' having count(*) > 0;

-- name: AddRequesters :one
-- Somebody else asked for what is pending already.
update approvals set requesters = @requesters, person_unknown = @person_unknown, updated_at = @now, updated_by = @updated_by
where id = @id and status = 'pending'
returning *;

-- name: FirstApproval :one
-- The first of the two who have to approve; no row when it is not pending.
update approvals set first_approver = @first_approver, first_approved_at = @now, dataset_name = coalesce(sqlc.narg(dataset_name), dataset_name),
    updated_at = @now, updated_by = @first_approver::text
where id = @id and status = 'pending'
returning *;
