-- name: InsertCommand :one
insert into commands (id, kind, tenant, principal, key_hash, body_hash, orchestrator_key, model_id, dataset_name, request,
    approval_id, status, attempt, owner, lease_until, created_at, updated_at)
values (@id, @kind, @tenant, @principal, @key_hash, @body_hash, @orchestrator_key, @model_id, @dataset_name, @request,
    @approval_id, 'dispatching', 1, @owner, now() + make_interval(secs => @lease_seconds), now(), now())
returning *;

-- name: GetCommand :one
select * from commands where id = @id;

-- name: FindCommand :one
select * from commands where tenant = @tenant and principal = @principal and key_hash = @key_hash;

-- name: LockCommand :one
select * from commands where tenant = @tenant and principal = @principal and key_hash = @key_hash for update;

-- name: ForgetCommand :exec
delete from commands where id = @id and status <> 'dispatching';

-- name: RestartCommand :one
-- A failed command goes again under its own orchestrator key.
update commands set status = 'dispatching', attempt = attempt + 1, owner = @owner, error = null,
    lease_until = now() + make_interval(secs => @lease_seconds), updated_at = now()
where id = @id and status = 'failed'
returning *;

-- name: SettleCommand :execrows
update commands set status = @status, flow_run_id = @flow_run_id, response = @response, error = @error, updated_at = now()
where id = @id and attempt = @attempt and status = 'dispatching';

-- name: ClaimCommands :many
-- Takes over commands whose owner let the lease pass or, where everyone else is known to be dead,
-- whose owner is another.
update commands set attempt = attempt + 1, owner = @owner, lease_until = now() + make_interval(secs => @lease_seconds), updated_at = now()
where id in (
    select c.id from commands c
    where c.status = 'dispatching' and (c.lease_until < now() or (@others::bool and c.owner <> @owner))
    order by c.created_at limit 20 for update skip locked)
returning *;

-- name: DeleteOldCommands :execrows
delete from commands where id in (
    select c.id from commands c where c.status <> 'dispatching' and c.created_at < now() - interval '30 days' order by c.created_at limit 1000);
