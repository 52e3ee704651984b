-- name: InsertAliasMove :one
insert into alias_moves (id, model_id, alias, version, previous_version, via, promotion_id, tenant, actor, request_id, traceparent, reason, digest, state, attempts, next_attempt_at, created_at)
values (@id, @model_id, @alias, @version, @previous_version, @via, @promotion_id, @tenant, @actor, @request_id, @traceparent, @reason, @digest, 'moving', 0,
    now() + make_interval(secs => @lease_seconds), now())
returning *;

-- name: DueAliasMoves :many
select * from alias_moves where state = 'moving' and (next_attempt_at <= now() or @every::bool) order by created_at limit 20;

-- name: PlannedAliasMoves :many
select * from alias_moves where state = 'moving' and model_id = @model_id;

-- name: DelayAliasMove :exec
update alias_moves set attempts = attempts + 1, error = @error, next_attempt_at = now() + make_interval(secs => @seconds)
where id = @id and state = 'moving';

-- name: FinishAliasMove :execrows
update alias_moves set state = @state, error = @error, finished_at = now() where id = @id and state = 'moving';

-- name: CurrentHolder :one
select * from alias_history where model_id = @model_id and alias = @alias and until_at is null;

-- name: CurrentHolders :many
select * from alias_history where until_at is null order by model_id, alias;

-- name: CloseHolder :exec
update alias_history set until_at = @now where model_id = @model_id and alias = @alias and until_at is null;

-- name: InsertHolder :exec
insert into alias_history (id, model_id, alias, version, previous_version, from_at, actor, via, promotion_id, digest)
values (@id, @model_id, @alias, @version, @previous_version, @now, @actor, @via, @promotion_id, @digest);

-- name: RecordHolderDigest :execrows
update alias_history set digest = @digest where id = @id and until_at is null and digest is null;

-- name: ListHolders :many
select * from alias_history
where owned_by(model_id, @tenant::text)
  and (sqlc.narg(model_id)::text is null or model_id = sqlc.narg(model_id))
  and (sqlc.narg(alias)::text is null or alias = sqlc.narg(alias))
  and (sqlc.narg(before)::uuid is null or id < sqlc.narg(before))
  and (not @holding::bool or until_at is null and version is not null)
order by id desc
limit @max_rows;

-- name: HolderAt :one
select * from alias_history
where owned_by(model_id, @tenant::text) and model_id = @model_id and alias = @alias and from_at <= @at and (until_at is null or until_at > @at)
order by from_at desc limit 1;

-- name: GetAliasMove :one
select * from alias_moves where id = @id;

-- name: FormerHolder :one
-- The last version other than the present one that held the alias; with version, that one if it ever did.
select * from alias_history
where model_id = @model_id and alias = @alias and version is not null and version <> @present::text
  and (sqlc.narg(version)::text is null or version = sqlc.narg(version))
order by id desc limit 1;
