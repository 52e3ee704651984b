-- name: InsertGuardedChange :one
insert into guarded_changes (id, kind, target, old, new, state, tenant, requested_by, requested_at, person_unknown, expires_at)
values (@id, @kind, @target, sqlc.narg(old), sqlc.narg(new), 'pending', @tenant, @requested_by, @now, @person_unknown, @expires_at)
returning *;

-- name: PendingGuardedChange :one
select * from guarded_changes where kind = @kind and target = @target and state = 'pending' for update;

-- name: OverdueGuardedChanges :many
select * from guarded_changes where state = 'pending' and expires_at <= @now order by id limit 500 for update skip locked;

-- name: LockGuardedChange :one
select * from guarded_changes where id = @id and tenant in (@tenant::text, 'platform') for update;

-- name: ListGuardedChanges :many
select * from guarded_changes
where tenant in (@tenant::text, 'platform')
  and (sqlc.narg(state)::text is null or state = sqlc.narg(state))
  and (sqlc.narg(before)::uuid is null or id < sqlc.narg(before))
order by id desc
limit @max_rows;

-- name: EndGuardedChange :one
update guarded_changes set state = @to_state, decided_by = @decided_by, decided_at = @now, reason = sqlc.narg(reason)
where id = @id and state = 'pending'
returning *;

-- name: FirstGuardedApproval :one
update guarded_changes set first_approver = @first_approver where id = @id and state = 'pending'
returning *;

-- name: GuardedSettings :many
select * from guarded_settings order by name;

-- name: PutGuardedSetting :exec
insert into guarded_settings (name, value, updated_at, updated_by) values (@name, @value, @now, @updated_by)
on conflict (name) do update set value = @value, updated_at = @now, updated_by = @updated_by;

-- name: GetGuardedChange :one
select * from guarded_changes where id = @id;
