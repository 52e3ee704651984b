-- name: InsertPromotion :one
insert into promotions (id, tenant, model_id, version, from_alias, to_alias, state, origin, conditions, previous_version,
    flow_run_id, requested_by, requested_at, reason, expires_at, updated_at, updated_by, requesters, person_unknown, digest)
values (@id, @tenant, @model_id, @version, @from_alias, @to_alias, 'pending', @origin, @conditions, @previous_version,
    @flow_run_id, @requested_by, @now, @reason, @expires_at, @now, @requested_by, @requesters, @person_unknown, @digest)
returning *;

-- name: GetPromotion :one
select * from promotions where id = @id and tenant = @tenant;

-- name: GetPromotionOfAnyTenant :one
select * from promotions where id = @id;

-- name: LockPromotion :one
select * from promotions where id = @id for update;

-- name: PendingPromotions :many
select * from promotions where model_id = @model_id and to_alias = @to_alias and state = 'pending' for update;

-- name: LatestPromotion :one
select * from promotions
where tenant = @tenant and model_id = @model_id and version = @version and to_alias = @to_alias
order by id desc limit 1;

-- name: ListPromotions :many
select sqlc.embed(p), a.id as approval_id
from promotions p join approvals a on a.promotion_id = p.id
where p.tenant = @tenant
  and (sqlc.narg(model_id)::text is null or p.model_id = sqlc.narg(model_id))
  and (sqlc.narg(state)::text is null or p.state = sqlc.narg(state))
  and (sqlc.narg(before)::uuid is null or p.id < sqlc.narg(before))
order by p.id desc
limit @max_rows;

-- name: SetPromotionState :one
update promotions
set state = @to_state, decided_by = coalesce(sqlc.narg(decided_by), decided_by), decided_at = coalesce(sqlc.narg(decided_at), decided_at),
    reason = coalesce(sqlc.narg(reason), reason), updated_at = @now, updated_by = @updated_by
where id = @id and state = @from_state
returning *;

-- name: AddPromotionRequesters :one
update promotions set requesters = @requesters, person_unknown = @person_unknown, updated_at = @now, updated_by = @updated_by
where id = @id and state = 'pending'
returning *;

-- name: RecordPromotionDigest :exec
-- Of a promotion that was opened before its files had one.
update promotions set digest = @digest where id = @id and state = 'pending' and digest is null;

-- name: RecordDigestOfPending :exec
-- As RecordPromotionDigest, for every promotion of a version.
update promotions set digest = @digest where model_id = @model_id and version = @version and state = 'pending' and digest is null;

-- name: OverduePromotions :many
select * from promotions where state = 'pending' and expires_at <= @now order by id limit 500 for update skip locked;

-- name: ApprovalOfPromotion :one
select id from approvals where promotion_id = @promotion_id;

-- name: FirstPromotionApproval :one
update promotions set first_approver = @first_approver, first_approved_at = @now, updated_at = @now, updated_by = @first_approver::text
where id = @id and state = 'pending'
returning *;
