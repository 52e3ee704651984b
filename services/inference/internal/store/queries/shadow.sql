-- name: AllShadowRules :many
-- One statement, so that rules and revision are of the same moment. Without rules there is one row without a model.
select v.revision, s.model, s.alias, s.percent
from traffic_revision v
left join shadow_rules s on true;

-- name: ShadowRule :one
select model, alias, percent, updated_at, updated_by from shadow_rules where model = sqlc.arg(model);

-- name: ShadowRules :many
select model, alias, percent, updated_at, updated_by
from shadow_rules
where model > sqlc.arg(after_model)::text
order by model
limit sqlc.arg(most);

-- name: SetShadowRule :exec
insert into shadow_rules (model, alias, percent, updated_at, updated_by)
values (sqlc.arg(model), sqlc.arg(alias), sqlc.arg(percent), sqlc.arg(updated_at), sqlc.arg(updated_by))
on conflict (model) do update set alias = excluded.alias, percent = excluded.percent, updated_at = excluded.updated_at, updated_by = excluded.updated_by;

-- name: DeleteShadowRule :execrows
delete from shadow_rules where model = sqlc.arg(model);
