-- name: ListAutoRetrain :many
select * from auto_retrain where model_id > @after::text and owned_by(model_id, @tenant::text) order by model_id limit @max_rows;

-- name: EnabledAutoRetrain :many
select * from auto_retrain where enabled and (sqlc.narg(model_id)::text is null or model_id = sqlc.narg(model_id))
  and (sqlc.narg(tenant)::text is null or owned_by(model_id, sqlc.narg(tenant)::text)) order by model_id;

-- name: GetAutoRetrain :one
select * from auto_retrain where model_id = @model_id;

-- name: LockAutoRetrain :one
select * from auto_retrain where model_id = @model_id for update;

-- name: PutAutoRetrain :one
insert into auto_retrain (model_id, enabled, dataset_name, min_z, cooldown_seconds, gate, kind, updated_at, updated_by)
values (@model_id, @enabled, @dataset_name, @min_z, @cooldown_seconds, @gate, @kind, @now, @updated_by)
on conflict (model_id) do update set enabled = @enabled, dataset_name = @dataset_name, min_z = @min_z,
    cooldown_seconds = @cooldown_seconds, gate = @gate, kind = @kind, updated_at = @now, updated_by = @updated_by
returning *;

-- name: ClaimTrigger :exec
update auto_retrain set claim = @claim, claim_until = @claim_until, claim_tenant = @claim_tenant, claim_by = @claim_by,
    claim_dataset = @claim_dataset, claim_z = @claim_z
where model_id = @model_id;

-- name: ReleaseTrigger :exec
-- Lets go of a claim that led to nothing. Its id stays for the next try of the same, since the
-- orchestrator may have taken the run without our hearing of it.
update auto_retrain set claim_until = null where model_id = @model_id and claim = @claim;

-- name: ListTriggered :many
select model_id, triggered_at from auto_retrain_stamps where tenant = @tenant and model_id = any(@models::text[]);

-- name: GetTriggered :one
select triggered_at from auto_retrain_stamps where model_id = @model_id and tenant = @tenant;

-- name: SetTriggered :exec
with stamped as (
    insert into auto_retrain_stamps (model_id, tenant, triggered_at) values (@model_id, @tenant, @now)
    on conflict (model_id, tenant) do update set triggered_at = @now
)
update auto_retrain set last_outcome = @outcome, claim = null, claim_until = null,
    claim_tenant = null, claim_by = null, claim_dataset = null, claim_z = null
where auto_retrain.model_id = @model_id;

-- name: SetTriggerOutcome :execrows
update auto_retrain set last_outcome = @outcome where model_id = @model_id and last_outcome is distinct from @outcome;

-- name: OpenDriftWork :one
-- The newest run that drift led to and that has not ended, without its id where it is another tenant's;
-- or 'dispatching', or nothing.
select coalesce(
    (select case when r.tenant = @tenant then r.flow_run_id else 'foreign' end
        from runs r where r.model_id = @model_id and r.origin = 'drift' and not r.terminal order by r.id desc limit 1),
    (select 'dispatching' from commands c where c.model_id = @model_id and c.kind = 'retrain' and c.status = 'dispatching'
        and c.request ->> 'origin' = 'drift' limit 1), '')::text as work;

-- name: WaitingRetrain :one
select id from approvals
where tenant = @tenant and kind = 'retrain' and status in ('pending', 'approving') and model_id = @model_id
order by id desc limit 1;
