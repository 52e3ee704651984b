-- name: ListPolicies :many
select * from policies
where removed_at is null and model_id > @after::text and owned_by(model_id, @tenant::text)
order by model_id
limit @max_rows;

-- name: GetPolicy :one
select * from policies where model_id = @model_id and removed_at is null;

-- name: LockPolicy :one
select * from policies where model_id = @model_id and removed_at is null for update;

-- name: SeedPolicy :execrows
insert into policies (model_id, metric, operator, threshold, from_alias, to_alias, enabled, require_eval, approval_mode, updated_at, updated_by)
values (@model_id, @metric, @operator, @threshold, 'Staging', 'Production', true, false, @approval_mode, @now, 'system:registry')
on conflict (model_id) do nothing;

-- name: PutPolicy :one
insert into policies (model_id, metric, operator, threshold, from_alias, to_alias, enabled, require_eval, approval_mode, updated_at, updated_by)
values (@model_id, @metric, @operator, @threshold, @from_alias, @to_alias, @enabled, @require_eval, @approval_mode, @now, @updated_by)
on conflict (model_id) do update set metric = @metric, operator = @operator, threshold = @threshold, from_alias = @from_alias,
    to_alias = @to_alias, enabled = @enabled, require_eval = @require_eval, approval_mode = @approval_mode,
    updated_at = @now, updated_by = @updated_by, removed_at = null
returning *;

-- name: RemovePolicy :execrows
update policies set removed_at = @now, updated_at = @now, updated_by = @updated_by where model_id = @model_id and removed_at is null;
