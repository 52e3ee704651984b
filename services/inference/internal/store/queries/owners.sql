-- name: Owners :many
select model, tenant from model_owners order by model;

-- name: SetOwner :exec
insert into model_owners (model, tenant) values (sqlc.arg(model), sqlc.arg(tenant))
on conflict (model) do update set tenant = excluded.tenant;

-- name: KeepOwners :exec
-- Forgets the models that are not named.
delete from model_owners where model <> all(sqlc.arg(models)::text[]);
