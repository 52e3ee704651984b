-- name: TrafficRevision :one
select revision from traffic_revision;

-- name: AllTrafficRules :many
-- One statement, so that rules and revision are of the same moment. Without rules there is one row without a model.
select v.revision, t.model, t.rules
from traffic_revision v
left join traffic_rules t on true;

-- name: RaiseTrafficRevision :one
-- Its lock makes one change follow another, so that revisions become visible in their order.
update traffic_revision set revision = revision + 1 returning revision;

-- name: TrafficRule :one
select model, rules, updated_at, updated_by from traffic_rules where model = sqlc.arg(model);

-- name: TrafficRules :many
select model, rules, updated_at, updated_by
from traffic_rules
where model > sqlc.arg(after_model)::text
order by model
limit sqlc.arg(most);

-- name: SetTrafficRule :exec
insert into traffic_rules (model, rules, updated_at, updated_by)
values (sqlc.arg(model), sqlc.arg(rules), sqlc.arg(updated_at), sqlc.arg(updated_by))
on conflict (model) do update set rules = excluded.rules, updated_at = excluded.updated_at, updated_by = excluded.updated_by;

-- name: DeleteTrafficRule :execrows
delete from traffic_rules where model = sqlc.arg(model);
