-- name: OwnerOf :one
select owner_of(@model::text)::text as tenant;

-- name: ListOwners :many
select model_id, tenant from model_owners where owned_by(model_id, @tenant::text) and model_id > @after::text order by model_id limit @max_rows;

-- name: PutOwners :exec
insert into model_owners (model_id, tenant, updated_at)
select unnest(@models::text[]), unnest(@tenants::text[]), @now::timestamptz
on conflict (model_id) do update set tenant = excluded.tenant, updated_at = excluded.updated_at
where model_owners.tenant <> excluded.tenant;
